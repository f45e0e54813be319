#pragma once

#include <fmt/format.h>

#include <algorithm>

#include "tests/reference/matmul/matmul.h"

namespace clnet::testing {

inline Case matmul_case(const Shape& a, const Shape& b, const MatmulOptions& options = {}) {
  Case result;
  result.name = fmt::format("matmul {}{} x {}{}", to_string(a), options.transpose_a ? "'" : "", to_string(b),
                            options.transpose_b ? "'" : "");
  result.inputs = {{a}, {b}};
  result.run = [options](const auto& in) { return std::vector{matmul(in[0], in[1], options)}; };
  // Vectors count as a row and a column.
  result.reference = [options, a, b](const Arrays& in) {
    const Array left(a.rank() == 1 ? Shape{1, a[0]} : a, in[0].values), right(b.rank() == 1 ? Shape{b[0], 1} : b, in[1].values);
    auto product = matmul_reference(left, right, options);
    auto extents = product.shape.extents();
    if (b.rank() == 1) extents.pop_back();
    if (a.rank() == 1) extents.erase(extents.end() - (b.rank() == 1 ? 1 : 2));
    return Arrays{Array(Shape(extents), product.values)};
  };
  return result;
}

/// Leading dimensions in every order, each in both operands or in one of them only.
inline std::vector<Case> broadcast_matmul_cases() {
  std::vector<Case> cases;
  std::vector<std::int64_t> extents{2, 3, 4};
  do
    for (int kinds = 0; kinds < 27; ++kinds) {
      std::vector<std::int64_t> a, b;
      for (int d = 0, rest = kinds; d < 3; ++d, rest /= 3) {
        const auto extent = extents[static_cast<std::size_t>(d)];
        a.push_back(rest % 3 == 1 ? 1 : extent);
        b.push_back(rest % 3 == 2 ? 1 : extent);
      }
      a.insert(a.end(), {5, 6});
      b.insert(b.end(), {6, 7});
      cases.push_back(matmul_case(Shape(a), Shape(b)));
    }
  while (std::next_permutation(extents.begin(), extents.end()));
  // Tiles, few rows, few columns, and k in parts; a product of the first two shapes again among elementwise operations.
  cases.push_back(matmul_case({4, 3, 32, 40}, {4, 1, 40, 48}));
  cases.push_back(matmul_case({4, 3, 40, 32}, {4, 1, 48, 40}, {true, true}));
  cases.push_back(matmul_case({4, 3, 3, 40}, {4, 1, 40, 48}));
  cases.push_back(matmul_case({4, 3, 40, 32}, {4, 1, 32, 3}));
  cases.push_back(matmul_case({4, 3, 20, 600}, {4, 1, 600, 20}));
  for (auto& example : cases) example.gradient = false;
  auto finished = matmul_case({4, 3, 32, 40}, {4, 1, 40, 48});
  finished.name += " and a residual";
  finished.inputs.push_back({{4, 3, 32, 48}});
  finished.run = [](const auto& in) { return std::vector{relu(matmul(in[0], in[1]) + in[2])}; };
  finished.reference = [](const Arrays& in) {
    auto result = matmul_reference(in[0], in[1]);
    for (std::int64_t i = 0; i < result.numel(); ++i) result[i] = std::max(0.0, result[i] + in[2][i]);
    return Arrays{result};
  };
  finished.gradient = false;
  cases.push_back(std::move(finished));
  return cases;
}

inline Case linear_case(const Shape& x, std::int64_t out, bool bias) {
  Case result;
  result.name = fmt::format("linear {} to {}{}", to_string(x), out, bias ? " with bias" : "");
  result.inputs = {{x}, {{out, x[-1]}}};
  if (bias) result.inputs.push_back({{out}});
  result.run = [bias](const auto& in) { return std::vector{linear(in[0], in[1], bias ? in[2] : Tensor{})}; };
  result.reference = [x, out, bias](const Arrays& in) {
    const Array rows(Shape{x[-1] == 0 ? x[0] : x.numel() / x[-1], x[-1]}, in[0].values);
    const auto product = matmul_reference(rows, in[1], {.transpose_b = true}, bias ? &in[2] : nullptr);
    return Arrays{Array(x.with(-1, out), product.values)};
  };
  return result;
}

inline std::vector<Case> matmul_cases() {
  std::vector<Case> cases;
  // Extents that are multiples of no tile, transposed either way.
  const std::int64_t extents[][3] = {{1, 1, 1},    {1, 33, 7},  {3, 7, 17},   {7, 1, 65},
                                     {17, 65, 33}, {33, 17, 1}, {65, 100, 3}, {100, 3, 100}};
  for (const auto& [m, n, k] : extents)
    for (const bool ta : {false, true})
      for (const bool tb : {false, true})
        cases.push_back(matmul_case(ta ? Shape{k, m} : Shape{m, k}, tb ? Shape{n, k} : Shape{k, n}, {ta, tb}));
  for (const bool ta : {false, true})
    for (const bool tb : {false, true}) {
      auto example = matmul_case(ta ? Shape{300, 200} : Shape{200, 300}, tb ? Shape{150, 300} : Shape{300, 150}, {ta, tb});
      example.gradient = false;  // the reference is too slow to be evaluated hundreds of times
      cases.push_back(std::move(example));
    }
  // A long sum for a small result.
  for (const bool tb : {false, true}) {
    auto example = matmul_case({5, 3000}, tb ? Shape{20, 3000} : Shape{3000, 20}, {false, tb});
    example.gradient = false;
    example.slack = 10;  // 3000 terms
    cases.push_back(std::move(example));
  }
  // Few columns of many rows, several at a time.
  cases.push_back(matmul_case({40, 3, 50}, {50, 5}));
  cases.push_back(matmul_case({3, 40, 50}, {3, 50, 5}));
  cases.push_back(matmul_case({3, 50, 40}, {3, 5, 50}, {true, true}));
  cases.push_back(matmul_case({50, 40}, {3, 50, 5}, {true, false}));
  // Sums of one product, in rows longer than vectors.
  cases.push_back(matmul_case({3, 20, 1}, {3, 1, 45}));
  cases.push_back(matmul_case({3, 1, 20}, {45, 1}, {true, true}));
  // Batches: equal, broadcast on one side, on both, without a batch on one side.
  cases.push_back(matmul_case({4, 5, 6}, {4, 6, 7}));
  cases.push_back(matmul_case({4, 6, 5}, {4, 7, 6}, {true, true}));
  cases.push_back(matmul_case({4, 5, 6}, {1, 6, 7}));
  cases.push_back(matmul_case({4, 6, 5}, {1, 6, 7}, {true, false}));
  cases.push_back(matmul_case({1, 5, 6}, {3, 7, 6}, {false, true}));
  cases.push_back(matmul_case({5, 6}, {3, 6, 7}));
  cases.push_back(matmul_case({3, 4, 5, 6}, {6, 7}));
  cases.push_back(matmul_case({3, 4, 6, 5}, {6, 7}, {true, false}));
  cases.push_back(matmul_case({2, 1, 5, 6}, {1, 3, 6, 7}));
  cases.push_back(matmul_case({2, 3, 5, 6}, {3, 6, 7}));
  cases.push_back(matmul_case({2, 1, 4, 3, 2}, {3, 1, 2, 5}));
  cases.push_back(matmul_case({2, 3, 40, 20}, {2, 3, 20, 40}));
  // Vectors.
  cases.push_back(matmul_case({9}, {9}));
  cases.push_back(matmul_case({9}, {9, 5}));
  cases.push_back(matmul_case({9}, {5, 9}, {false, true}));
  cases.push_back(matmul_case({5, 9}, {9}));
  cases.push_back(matmul_case({9, 5}, {9}, {true, false}));
  cases.push_back(matmul_case({2, 5, 9}, {9}));
  cases.push_back(matmul_case({9}, {2, 9, 5}));
  // Nothing to add, nothing to compute.
  cases.push_back(matmul_case({3, 0}, {0, 4}));
  cases.push_back(matmul_case({0, 3}, {3, 4}));
  cases.push_back(matmul_case({3, 4}, {4, 0}));
  cases.push_back(matmul_case({0, 3, 4}, {4, 5}));

  for (const bool bias : {false, true}) {
    cases.push_back(linear_case({4, 10}, 3, bias));
    cases.push_back(linear_case({2, 3, 10}, 17, bias));
    cases.push_back(linear_case({2, 3, 1}, 37, bias));
    cases.push_back(linear_case({10}, 5, bias));
    cases.push_back(linear_case({3, 0}, 5, bias));
    auto example = linear_case({32, 700}, 100, bias);
    example.gradient = false;
    cases.push_back(std::move(example));
  }
  return cases;
}

}  // namespace clnet::testing
