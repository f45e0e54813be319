// Running sums in double precision.
#pragma once

#include "tests/cases/case.h"

namespace clnet::testing::reference {

inline Array cumsum(const Array& x, int dim) {
  std::int64_t inner = 1;
  for (int d = dim + 1; d < x.shape.rank(); ++d) inner *= x.shape[d];
  Array y = x;
  for (std::int64_t i = 0; i < x.numel(); ++i)
    if (i / inner % x.shape[dim] > 0) y[i] += y[i - inner];
  return y;
}

}  // namespace clnet::testing::reference
