// A case of an operation: inputs, the call, and an independent reference in double precision. One table of cases per operation
// (tests/cases/<op>.h) feeds the forward test on every solver and dtype, the gradient check and the benchmark.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "clnet/clnet.h"

namespace clnet::testing {

/// A tensor on the host for references: row-major, every dtype as double.
struct Array {
  Shape shape;
  std::vector<double> values;

  explicit Array(Shape s = {}) : shape(std::move(s)), values(static_cast<std::size_t>(shape.numel()), 0.0) {}
  Array(Shape s, std::vector<double> v) : shape(std::move(s)), values(std::move(v)) {}
  double& operator[](std::int64_t i) { return values[static_cast<std::size_t>(i)]; }
  double operator[](std::int64_t i) const { return values[static_cast<std::size_t>(i)]; }
  std::int64_t size(int dim) const { return shape[dim]; }
  std::int64_t numel() const { return shape.numel(); }
  /// The linear index of {i, j, ...}.
  std::int64_t index(std::initializer_list<std::int64_t> at) const {
    std::int64_t linear = 0;
    int dim = 0;
    for (auto i : at) linear = linear * shape[dim++] + i;
    return linear;
  }
  double& at(std::initializer_list<std::int64_t> where) { return (*this)[index(where)]; }
  double at(std::initializer_list<std::int64_t> where) const { return (*this)[index(where)]; }
};
using Arrays = std::vector<Array>;

/// How an input is filled: floating values are all different and none is 0, so that kinks do not disturb finite differences.
struct Input {
  Shape shape;
  double low = -1, high = 1;
  Dtype dtype = Dtype::f32;  ///< f32 stands for every floating type; others are drawn from the integers low..high
  bool differentiable = true;
};

struct Case {
  std::string name;
  std::vector<Input> inputs;
  std::function<std::vector<Tensor>(const std::vector<Tensor>&)> run;
  std::function<Arrays(const Arrays&)> reference;
  bool gradient = true;
  /// Multiplies the tolerances: for long sums and steep functions, with a reason beside it.
  double slack = 1;
  bool all_dtypes = true;  ///< also f16 and bf16
};

/// The cases of an operation that its header of tests/cases puts among those of all operations: they run on every solver and
/// dtype, with gradients. The first case is the operation's example; random programs call all of them.
struct CaseTable {
  std::string operation;  ///< in the catalogue
  std::vector<Case> (*cases)();
};
inline std::vector<CaseTable>& registered_cases() {
  static std::vector<CaseTable> all;
  return all;
}
struct RegisterCases {
  RegisterCases(const std::string& operation, std::vector<Case> (*cases)()) { registered_cases().push_back({operation, cases}); }
};

}  // namespace clnet::testing
