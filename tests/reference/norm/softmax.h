// softmax and log_softmax in double precision.
#pragma once

#include <algorithm>
#include <cmath>

#include "tests/cases/case.h"

namespace clnet::testing::reference {

inline Array softmax(const Array& x, int dim, bool logarithm) {
  const int axis = x.shape.normalize(dim);
  std::int64_t inner = 1;
  for (int d = axis + 1; d < x.shape.rank(); ++d) inner *= x.shape[d];
  const auto length = x.shape[axis];
  Array y(x.shape);
  for (std::int64_t line = 0; line < x.numel() / length; ++line) {
    const auto first = line / inner * length * inner + line % inner;
    double most = -INFINITY, sum = 0;
    for (std::int64_t i = 0; i < length; ++i) most = std::max(most, x[first + i * inner]);
    for (std::int64_t i = 0; i < length; ++i) sum += std::exp(x[first + i * inner] - most);
    for (std::int64_t i = 0; i < length; ++i) {
      const double value = x[first + i * inner] - most;
      y[first + i * inner] = logarithm ? value - std::log(sum) : std::exp(value) / sum;
    }
  }
  return y;
}

}  // namespace clnet::testing::reference
