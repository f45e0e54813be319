// fork(): a child forked before the first use of a device is like any process; one forked afterwards gets one clear error from
// every use of a device, and ends as it likes.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

#include "clnet/clnet.h"

using namespace clnet;

namespace {

int failures = 0;

void expect(bool right, const char* what) {
  if (right) return;
  std::fprintf(stderr, "fork: %s\n", what);
  ++failures;
}

/// Runs in a child, which ends with exit() and so with all its handlers; a hang ends by the alarm's signal.
void in_child(const char* what, const std::function<void()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    body();
    std::exit(failures);
  }
  int status = 0;
  expect(child > 0 && ::waitpid(child, &status, 0) == child, "no child");
  expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, what);
}

template <class Use>
bool refused(Use&& use) {
  try {
    use();
    return false;
  } catch (const DeviceError& error) {
    return std::string(error.what()).find("forked") != std::string::npos;
  }
}

}  // namespace

int main() {
  in_child("a child that is forked first must work", [] { expect(sum(Tensor::from({1.0F, 2.0F})).item<float>() >= 0, "sum"); });

  const Tensor x = Tensor::from({1.0F, 2.0F, 3.0F}), y = exp(x);
  y.eval();
  Device device = Device::current();
  const auto model = models::make("mlp", {1, 8, 8}, 3);
  optim::Optimizer optimizer = optim::Adam{*model};
  const auto step = [&] {
    optimizer.step(cross_entropy((*model)(rand({2, 1, 8, 8})), Tensor::from({0, 1})));
    return 0;
  };
  step();
  in_child("every use in a child must be refused, and exit() must return", [&] {
    expect(refused([&] { (void)y.to_vector<float>(); }), "reading a value");
    expect(refused([&] { (y + 1.0).eval(); }), "a new evaluation");
    expect(refused([&] { step(); }), "a training step");
    expect(refused([&] { Device::list(); }), "listing devices");
    expect(refused([&] { Device::current(); }), "the current device");
    expect(refused([&] { device.finish(); }), "waiting");
    expect(refused([&] { device.trim(); }), "trimming");
    expect(refused([&] { device.start_trace("/dev/null"); }), "tracing");
    expect(refused([&] { copy_to(Tensor::from({1.0F, 2.0F}), device).eval(); }), "an upload");
    const Tensor own = y * 2.0;  // graph is only host memory
    expect(own.numel() == 3, "making graph");
  });
  in_child("a child may drop its parent's tensors", [&] {
    Tensor taken = std::move(const_cast<Tensor&>(y));
    taken = Tensor();
    optimizer = optim::Optimizer();
  });
  expect(y.to_vector<float>().size() == 3, "the parent goes on");
  return failures;
}
