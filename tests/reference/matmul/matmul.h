// The product of matrices with broadcast leading dimensions, by definition.
#pragma once

#include "tests/cases/case.h"

namespace clnet::testing {

/// op(a) op(b) + bias for a and b of rank 2 or more; bias {N} or null.
inline Array matmul_reference(const Array& a, const Array& b, const MatmulOptions& options = {}, const Array* bias = nullptr) {
  const auto leading = [](const Array& x) { return Shape(std::vector<std::int64_t>(x.shape.begin(), x.shape.end() - 2)); };
  const auto batch = broadcast(leading(a), leading(b), "reference");
  const auto m = a.size(options.transpose_a ? -1 : -2), k = a.size(options.transpose_a ? -2 : -1);
  const auto n = b.size(options.transpose_b ? -2 : -1);
  auto extents = batch.extents();
  extents.push_back(m);
  extents.push_back(n);
  Array c{Shape(extents)};
  // The matrix of an operand that belongs to an index of the batch.
  const auto matrix = [&](const Array& x, std::int64_t index) {
    std::int64_t result = 0, step = 1;
    for (int dim = -1; dim >= -batch.rank(); --dim) {
      const auto at = index % batch[dim];
      index /= batch[dim];
      if (dim - 2 < -x.shape.rank()) continue;
      const auto extent = x.size(dim - 2);
      if (extent != 1) result += at * step;
      step *= extent;
    }
    return result;
  };
  for (std::int64_t i = 0; i < batch.numel(); ++i) {
    const auto at_a = matrix(a, i) * m * k, at_b = matrix(b, i) * k * n;
    for (std::int64_t row = 0; row < m; ++row)
      for (std::int64_t column = 0; column < n; ++column) {
        double sum = bias ? (*bias)[column] : 0;
        for (std::int64_t p = 0; p < k; ++p)
          sum += a[at_a + (options.transpose_a ? p * m + row : row * k + p)] *
                 b[at_b + (options.transpose_b ? column * k + p : p * n + column)];
        c[(i * m + row) * n + column] = sum;
      }
  }
  return c;
}

}  // namespace clnet::testing
