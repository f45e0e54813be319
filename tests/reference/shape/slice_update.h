// Slices at a place that is a value, in double precision.
#pragma once

#include <cmath>

#include "tests/cases/case.h"

namespace clnet::testing::reference {

/// x with the elements from `start` on along `dim` replaced; what lies outside is left out.
inline Array slice_update(const Array& x, int dim, std::int64_t start, const Array& value) {
  std::int64_t inner = 1;
  for (int d = dim + 1; d < x.shape.rank(); ++d) inner *= x.shape[d];
  Array y = x;
  for (std::int64_t i = 0; i < value.numel(); ++i) {
    const auto place = i / inner % value.size(dim) + start, outer = i / inner / value.size(dim);
    if (place >= 0 && place < x.size(dim)) y[(outer * x.size(dim) + place) * inner + i % inner] = value[i];
  }
  return y;
}

/// `length` elements from `start` on along `dim`, all of them inside.
inline Array narrow(const Array& x, int dim, std::int64_t start, std::int64_t length) {
  std::int64_t inner = 1;
  for (int d = dim + 1; d < x.shape.rank(); ++d) inner *= x.shape[d];
  Array y(x.shape.with(dim, length));
  for (std::int64_t i = 0; i < y.numel(); ++i)
    y[i] = x[(i / inner / length * x.size(dim) + start + i / inner % length) * inner + i % inner];
  return y;
}

}  // namespace clnet::testing::reference
