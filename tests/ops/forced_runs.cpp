// What the checker of cases leaves out, as a driver's compiler crashes over it.
#include <catch2/catch.hpp>
#include <string>

#include "lib/exec/choose/solver.h"
#include "tests/ops/check.h"

using namespace clnet;

TEST_CASE("only crashes over a forced solver's own kernels are left out, on drivers that are known for them") {
  const std::string crash = "conv2d_gpu crashes the compiler of Portable Computing Language 6.0, as FILE notes";
  const DeviceError own(crash + "; conv2d: solver gpu refuses: a kernel of it crashes the driver's compiler");
  DeviceInfo known;
  known.quirks = {"compiler-aborts"};
  CHECK_FALSE(testing::is_known_crash(own, "conv2d", known));
  const exec::ForceSolver force("conv2d", "gpu");
  CHECK(testing::is_known_crash(own, "conv2d", known));
  CHECK_FALSE(testing::is_known_crash(own, "matmul", known));
  // Another operation's kernel, and another error of the solver.
  CHECK_FALSE(testing::is_known_crash(DeviceError(crash), "conv2d", known));
  CHECK_FALSE(testing::is_known_crash(DeviceError("conv2d: solver gpu refuses: no"), "conv2d", known));
  CHECK_FALSE(testing::is_known_crash(own, "conv2d", {}));
}
