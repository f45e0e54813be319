// Running products and linear recurrences in double precision.
#pragma once

#include "tests/cases/case.h"

namespace clnet::testing::reference {

/// y[i] = a[i] y[i - 1] + b[i] along a dimension; backwards: y[i] = a[i] y[i + 1] + b[i].
inline Array linear_scan(const Array& a, const Array& b, int dim, bool backwards) {
  std::int64_t inner = 1;
  for (int d = dim + 1; d < b.shape.rank(); ++d) inner *= b.shape[d];
  Array y = b;
  for (std::int64_t k = 0; k < b.numel(); ++k) {
    const auto i = backwards ? b.numel() - 1 - k : k, place = i / inner % b.shape[dim];
    if (place != (backwards ? b.shape[dim] - 1 : 0)) y[i] += a[i] * y[backwards ? i + inner : i - inner];
  }
  return y;
}

inline Array cumprod(const Array& x, int dim) {
  std::int64_t inner = 1;
  for (int d = dim + 1; d < x.shape.rank(); ++d) inner *= x.shape[d];
  Array y = x;
  for (std::int64_t i = 0; i < x.numel(); ++i)
    if (i / inner % x.shape[dim] > 0) y[i] *= y[i - inner];
  return y;
}

}  // namespace clnet::testing::reference
