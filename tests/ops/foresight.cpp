// What a process compiles beside the first plan of a work with sequences, for those of other lengths.
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "clnet/clnet.h"
#include "lib/cl/build_ahead.h"
#include "lib/exec/plan/cache.h"
#include "tests/support/skip.h"

using namespace clnet;

namespace {

/// Counts the kernels that somebody waits for while it lives.
struct Awaited {
  std::size_t kernels = 0;
  Awaited() {
    on_compile([this](std::size_t, std::size_t total) {
      kernels = std::max(kernels, total);
      return true;
    });
  }
  ~Awaited() { on_compile({}); }
  Awaited(const Awaited&) = delete;
  Awaited& operator=(const Awaited&) = delete;
};

/// Within the time that a busy machine takes at the lowest priority.
bool is_built_beside() {
  const auto& plans = exec::PlanCache::of(*Device::current().context());
  const auto begun = std::chrono::steady_clock::now();
  while (!plans.is_built_beside() && std::chrono::steady_clock::now() - begun < std::chrono::seconds(600))
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  return plans.is_built_beside();
}

void check_other_lengths(std::int64_t first, const std::vector<std::int64_t>& others) {
  const auto processes = ocl::build_processes(Device::current().info());
  if (processes.program.empty() || processes.count <= 1) return test::skip("a driver that compiles in the program");
  nn::TransformerEncoderLayer layer{64, 4, {.dim_feedforward = 128, .dropout = 0, .batch_first = true}};
  optim::Adam adam{layer, {.learning_rate = 1e-3}};
  const auto step = [&](std::int64_t length) { (void)adam.step(mean(square(layer(full({4, length, 64}, 0.5))))).item<float>(); };
  step(first);
  REQUIRE(is_built_beside());
  for (const auto length : others) {
    INFO("length " << length << " after " << first);
    const Awaited awaited;
    step(length);
    CHECK(awaited.kernels == 0);
  }
}

}  // namespace

TEST_CASE("after the plan of a short sequence nobody waits for the kernels of long ones") { check_other_lengths(1, {4, 9, 41}); }

TEST_CASE("after the plan of a long sequence nobody waits for the kernels of short ones") { check_other_lengths(41, {9, 4, 1}); }
