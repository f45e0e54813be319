// How far the host runs ahead of the device is bounded, in bytes and in kernels.
#include <catch2/catch.hpp>
#include <fstream>
#include <string>

#include "clnet/clnet.h"
#include "lib/cl/context.h"

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
  const auto limit = device.memory().limit;
  device.set_memory_limit(std::size_t{256} << 20);
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
    most = std::max(most, device.context()->host_bytes_in_flight());
  }
  device.finish();
  CHECK(most <= std::size_t{32} << 20);  // an eighth of the limit; all of it would be 800 MB
  CHECK(device.context()->host_bytes_in_flight() == 0);
  CHECK(peak_of_process() < before + 150);
  device.set_memory_limit(limit);
}
