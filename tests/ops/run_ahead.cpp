// How far the host runs ahead of the device is bounded, in bytes and in kernels.
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <fstream>
#include <future>
#include <string>
#include <vector>

#include "clnet/clnet.h"
#include "lib/cl/context.h"
#include "lib/cl/quirks.h"
#include "tests/support/memory_limit.h"

using namespace clnet;

namespace {

/// The most memory that the process held so far, in MiB.
double peak_of_process() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stod(line.substr(6)) / 1024;
  }
  return 0;
}

}  // namespace

TEST_CASE("batches from the host do not pile up before a device that is slower") {
  Device device = Device::current();
  const test::MemoryLimit limit(std::size_t{256} << 20);
  // Enough work for each batch that the host is always faster, whatever the device.
  constexpr std::int64_t features = 51200;
  const std::vector<float> values(4 * features, 0.5F);
  const Tensor weights = full({features, 16}, 1e-3).detach();
  const auto step = [&] { return sum(matmul(Tensor::from(values, Shape{4, features}), weights)); };
  for (int i = 0; i < 3; ++i) CHECK(step().item<float>() == Approx(4 * 16 * features * 0.5e-3).epsilon(1e-3));

  const auto before = peak_of_process();
  std::size_t most = 0;
  for (int i = 0; i < 1000; ++i) {
    step().eval();
    most = std::max(most, context_of(device)->host_bytes_in_flight());
  }
  device.finish();
  CHECK(most <= std::size_t{32} << 20);  // an eighth of the limit; all of it would be 800 MB
  CHECK(context_of(device)->host_bytes_in_flight() == 0);
  // llvmpipe keeps copies of its own of all that the pool holds.
  if (!ocl::has_quirk(device.info(), "llvmpipe-scalar")) CHECK(peak_of_process() < before + 150);
}

TEST_CASE("the host is at most 1088 kernels ahead of the device") {
  using namespace std::chrono_literals;
  Device device = Device::current();
  const auto context = context_of(device);
  const Tensor x = ones({8}).detach();
  const auto step = [&] { exp(x).eval(); };
  step();
  device.finish();
  // The queue is in order: nothing that is enqueued from here on begins before somebody says so.
  cl::UserEvent gate(context->context());
  const std::vector<cl::Event> wait{gate};
  cl::Event marker;
  context->queue().enqueueMarkerWithWaitList(&wait, &marker);
  const auto before = context->launches();
  constexpr int steps = 3000;
  auto host = std::async(std::launch::async, [&] {
    for (int i = 0; i < steps; ++i) step();
  });
  const auto ahead = [&] { return context->launches() - before; };
  // Until it stands still.
  std::uint64_t last = 0;
  for (int i = 0; i < 1200; ++i) {
    if (host.wait_for(100ms) == std::future_status::ready) break;
    const auto now = ahead();
    if (now == last && now > 1024) break;
    last = now;
  }
  const auto most = ahead();
  gate.setStatus(CL_COMPLETE);
  host.get();
  device.finish();
  CHECK(most > 1024);
  CHECK(most <= 1088);
  CHECK(ahead() == steps);
}
