// Runs the cases of an operation: every solver, every dtype, gradients against finite differences of the reference.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "clnet/device.h"
#include "clnet/error.h"
#include "tests/cases/case.h"

namespace clnet::testing {

/// Fails the current Catch test case for every mismatch. `solver_op` names the operation whose solvers are forced one after the
/// other (several: their names); empty: the operation has one way only.
void check(const std::vector<Case>& cases, const std::vector<std::string>& solver_ops = {});

/// Whether it says that a kernel of the solver that a ForceSolver asks for in `op` crashes the compiler of a driver that is known
/// for that (quirk compiler-aborts).
bool is_known_crash(const Error& error, const std::string& op, const DeviceInfo& device);

/// Runs by forced solvers. What a driver's compiler is known to crash over is left out and told; where a device chooses the
/// solver itself that is a failure.
class ForcedRuns {
 public:
  /// Whether `run` ran, with a solver of `op` forced. What else it throws is thrown, and counts for nothing.
  bool run(const std::string& op, const std::string& what, const std::function<void()>& run);
  std::size_t ran() const;
  /// Fails the test case where more than one in ten, rounded up, was left out, or all of several by one solver: such a
  /// driver has another fault.
  void check() const;

 private:
  std::map<std::string, std::size_t> ran_, left_out_;  // by solver
};

/// A tensor from an array, rounded to the dtype; the array is rounded too.
Tensor to_tensor(Array& array, Dtype dtype);
Array to_array(const Tensor& tensor);
/// Values for an input, the same at every run.
Array make_values(const Input& input, std::uint64_t seed);
Tensor make_tensor(const Shape& shape, std::uint64_t seed = 1, double low = -1, double high = 1);
/// Compiling a kernel once more for each dtype, graph or size is what takes the tests' time, so that many take a sample; with
/// CLNET_TEST_ALL=1, as .ci/nightly has it, they take all.
bool all_wanted();
/// The narrow floating dtypes in which the case of this number is checked: one of them, and the next case in the other, or both.
std::vector<Dtype> sampled_dtypes(std::size_t index);
double unit_roundoff(Dtype floating);
/// The largest difference must not exceed `tolerance` times the largest reference value (at least 1).
void compare(const std::string& what, const Array& got, const Array& want, double tolerance);

}  // namespace clnet::testing
