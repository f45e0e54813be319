// What a process compiles beside the first plan of a work with sequences, for those of other lengths.
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "clnet/clnet.h"
#include "lib/cl/quirks.h"
#include "lib/exec/plan/cache.h"
#include "tests/support/skip.h"
#include "tests/support/temporary.h"

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
  const auto& plans = exec::PlanCache::of(*context_of(Device::current()));
  const auto begun = std::chrono::steady_clock::now();
  while (!plans.is_built_beside() && std::chrono::steady_clock::now() - begun < std::chrono::seconds(600))
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  return plans.is_built_beside();
}

void check_other_lengths(std::int64_t first, const std::vector<std::int64_t>& others) {
  if (!ocl::prebuilder_for(Device::current().info())->builds_beside(ocl::Prebuilder::Haste::soon))
    return test::skip("a driver that compiles in the program");
  nn::TransformerEncoderLayer layer{64, 4, {.dim_feedforward = 128, .dropout = 0, .batch_first = true}};
  optim::Adam adam{layer, {.learning_rate = 1e-3}};
  const auto awaited_in_step = [&](std::int64_t length) {
    const Awaited awaited;
    (void)adam.step(mean(square(layer(full({4, length, 64}, 0.5))))).item<float>();
    return awaited.kernels;
  };
  CHECK(awaited_in_step(first) > 0);
  REQUIRE(is_built_beside());
  for (const auto length : others) {
    INFO("length " << length << " after " << first);
    CHECK(awaited_in_step(length) == 0);
  }
}

/// Does this in a process of its own, which runs the same test case, with two processes to compile in and nothing on disk. The
/// driver asks for its folder once, before a test can say another.
template <class F>
void with_empty_caches(const F& f) {
  if (std::getenv("CLNET_TEST_EMPTY_CACHES")) return f();
  const test::Folder folder;
  const auto name = Catch::getResultCapture().getCurrentTestName();
  const auto command = "CLNET_TEST_EMPTY_CACHES=1 CLNET_BUILD_PROCESSES=2 POCL_CACHE_DIR='" + (folder / "pocl").string() +
                       "' CLNET_CACHE_DIR='" + (folder / "clnet").string() + "' '" +
                       std::filesystem::read_symlink("/proc/self/exe").string() + "' '" + name + "' >'" +
                       (folder / "said").string() + "' 2>&1";
  const int status = std::system(command.c_str());
  std::ostringstream said;
  said << std::ifstream(folder / "said").rdbuf();
  INFO(said.str());
  CHECK(status == 0);
}

}  // namespace

TEST_CASE("nobody is told of compiling where the kernels of a plan are there") {
  with_empty_caches([] {
    if (ocl::prebuilder_for(Device::current().info())->takes() == ocl::Prebuilder::Takes::nothing)
      return test::skip("a driver that tells nothing of what it has compiled");
    const auto awaited_for_rows = [](std::int64_t rows) {
      const Awaited awaited;
      (void)sum(exp(rand({rows, 100})) * 2.0).item<float>();
      return awaited.kernels;
    };
    CHECK(awaited_for_rows(3) > 0);
    for (const std::int64_t rows : {5, 7, 11}) CHECK(awaited_for_rows(rows) == 0);
  });
}

TEST_CASE("after the plan of a short sequence nobody waits for the kernels of long ones") {
  with_empty_caches([] { check_other_lengths(1, {4, 9, 41}); });
}

TEST_CASE("after the plan of a long sequence nobody waits for the kernels of short ones") {
  with_empty_caches([] { check_other_lengths(41, {9, 4, 1}); });
}
