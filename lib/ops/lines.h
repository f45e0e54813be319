// Lines along a dimension, as operations have them that go from one element to the next. A scalar is a line of one element.
#pragma once

#include <algorithm>
#include <cstdint>

#include "clnet/ops.h"

namespace clnet::ops {

/// A shape as {outer, extent, inner} around the dimension `dim`, from 0 on: elements of a line are `inner` apart.
struct Lines {
  std::int64_t outer = 1, extent = 1, inner = 1;

  Lines(const Shape& shape, int dim) {
    for (int d = 0; d < shape.rank(); ++d) (d < dim ? outer : d > dim ? inner : extent) *= shape[d];
  }
  std::int64_t count() const { return outer * inner; }
};

/// A scalar as a line.
inline Tensor as_line(const Tensor& x) { return x.rank() == 0 ? reshape(x, Shape{1}) : x; }

/// launch(begin, end) for no more steps along a line at once than llvmpipe's loops reach.
template <class Launch>
void in_pieces(std::int64_t steps, const Launch& launch) {
  constexpr std::int64_t most = 50000;
  for (std::int64_t begin = 0; begin < steps; begin += most) launch(begin, std::min(begin + most, steps));
}

}  // namespace clnet::ops
