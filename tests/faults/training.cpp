// Every call of OpenCL that a training step makes fails once. What must hold: one clnet::Error with OpenCL's code by name, or
// none where the library has another way; parameters, optimizer and statistics as before; the same step again right to the bit,
// and plans made before as good as ever.
#include <catch2/catch.hpp>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "clnet/clnet.h"
#include "clnet/opencl.h"
#include "lib/cl/check.h"
#include "lib/cl/context.h"
#include "tests/faults/layer/faults.h"

using namespace clnet;

namespace {

using State = std::map<std::string, std::vector<float>>;

/// Convolution, normalisation, dropout and Adam, on a batch that comes through the uploader.
struct Training {
  nn::Sequential model;
  optim::Adam optimizer;

  Training() : model(make()), optimizer(model, {.learning_rate = 1e-2}) {}

  static nn::Sequential make() {
    manual_seed(1);
    return nn::Sequential{nn::Conv2d{{.in_channels = 1, .out_channels = 4, .kernel_size = 3}},
                          nn::BatchNorm2d{4},
                          relu,
                          nn::Flatten{},
                          nn::Dropout{0.25},
                          nn::Linear{64, 3}};
  }

  static Tensor images(int number) {
    std::vector<float> pixels(4 * 36);
    for (std::size_t i = 0; i < pixels.size(); ++i) {
      pixels[i] = static_cast<float>((i * 37 + static_cast<std::size_t>(number) * 101) % 97) / 97.0F;
    }
    return copy_to(Tensor::from(pixels, Shape{4, 1, 6, 6}), Device::current());
  }

  /// Step `number`, which is the same whenever it is made in the same state.
  Tensor step(int number) {
    manual_seed(1000 + static_cast<std::uint64_t>(number));
    const std::vector<std::int32_t> classes{number % 3, 1, 2, 0};
    return optimizer.step(cross_entropy(model(images(number)), Tensor::from(classes, Shape{4})));
  }

  /// The outputs of another plan.
  std::vector<float> inference() {
    model.eval();
    const auto result = model(images(7)).to_vector<float>();
    model.train();
    return result;
  }

  State state() {
    State result;
    for (const auto& [name, tensor] : model.state()) result["model." + name] = tensor.to_vector<float>();
    for (const auto& [name, tensor] : optimizer.state()) result["optimizer." + name] = tensor.to_vector<float>();
    return result;
  }
};

bool same_bits(const State& a, const State& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](const auto& x, const auto& y) {
           return x.first == y.first && x.second.size() == y.second.size() &&
                  std::memcmp(x.second.data(), y.second.data(), x.second.size() * sizeof(float)) == 0;
         });
}

/// What an attempt threw; anything but clnet::Error leaves the test.
template <class Attempt>
std::optional<std::string> error_of(Attempt&& attempt) {
  try {
    attempt();
    return std::nullopt;
  } catch (const Error& error) {
    return error.what();
  }
}

/// One step with a fault in it, and again without; `reference` makes it undisturbed.
void fail_once(const faults::Call& call, long number, int step, Training& training, Training& reference) {
  INFO(call.name << " number " << number);
  const State before = training.state();
  Tensor loss;
  faults::arm(call.name, number, call.code);
  auto error = error_of([&] { loss = training.step(step); });
  const bool stepped = !error;
  if (stepped) error = error_of([&] { (void)loss.item<float>(); });
  faults::disarm();

  if (error) CHECK_THAT(*error, Catch::Contains(ocl::error_name(call.code)));
  if (!stepped) {
    CHECK(same_bits(training.state(), before));
    loss = training.step(step);
  }
  CHECK(loss.item<float>() == reference.step(step).item<float>());
  CHECK(same_bits(training.state(), reference.state()));
  CHECK(training.inference() == reference.inference());
}

/// How many calls of the name a step makes.
long calls_of_a_step(const char* name, Training& training, int step) {
  faults::arm(name, std::numeric_limits<long>::max(), CL_SUCCESS);
  (void)training.step(step).item<float>();
  return faults::disarm();
}

/// The same device with a context of its own, so that programs and plans are made anew.
class FreshDevice {
 public:
  FreshDevice() : before_(Device::current()) {
    const cl::Context context(before_.context()->device());
    const cl::CommandQueue queue(context, before_.context()->device());
    Device::set_default(opencl::wrap(context(), before_.context()->device()(), queue()));
  }
  ~FreshDevice() { Device::set_default(before_); }
  FreshDevice(const FreshDevice&) = delete;
  FreshDevice& operator=(const FreshDevice&) = delete;

 private:
  Device before_;
};

bool is_null_device() { return std::getenv("NULL_OPENCL_DEVICE") != nullptr; }

}  // namespace

TEST_CASE("a fault in a step whose plan is known") {
  Training training, reference;
  int step = 0;
  for (; step < 2; ++step) {
    CHECK(training.step(step).item<float>() == reference.step(step).item<float>());
    CHECK(training.inference() == reference.inference());
  }
  const auto memory = Device::current().memory().in_use;
  int faults_made = 0;
  for (const faults::Call& call : faults::calls()) {
    const long count = calls_of_a_step(call.name, training, step);
    (void)reference.step(step++);
    for (long number = 1; number <= count; ++number) {
      fail_once(call, number, step++, training, reference);
      ++faults_made;
    }
  }
  CHECK(faults_made > 50);
  Device::current().finish();
  CHECK(Device::current().memory().in_use <= memory + 4096);
}

TEST_CASE("a fault in a step that makes its plan and programs") {
  // Building takes its time on a device that builds.
  const long most = is_null_device() ? std::numeric_limits<long>::max() : 3;
  std::map<std::string, long> counts;
  for (const faults::Call& call : faults::calls()) {
    const FreshDevice device;
    Training cold;
    counts[call.name] = calls_of_a_step(call.name, cold, 0);
  }
  for (const faults::Call& call : faults::calls()) {
    const long count = counts[call.name], stride = std::max(1L, count / most);
    for (long number = 1; number <= count; number += stride) {
      const FreshDevice device;
      Training training, reference;
      (void)training.inference();
      fail_once(call, number, 0, training, reference);
    }
  }
}
