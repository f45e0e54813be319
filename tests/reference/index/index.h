// index_select, gather and their gradients. x is {outer, extent, inner}, and elements are picked along the middle: the same ones
// everywhere, or (gather: indices of the result's shape) for each place its own.
#pragma once

#include <cmath>

#include "tests/cases/case.h"

namespace clnet::testing::reference {

/// Calls visit(the result's index, x's index, or -1 where the index is out of range) for every element of the result.
template <class Visit>
void each_pick(const Shape& x, int dim, const Array& indices, bool gather, Visit visit) {
  std::int64_t outer = 1, inner = 1;
  for (int d = 0; d < dim; ++d) outer *= x[d];
  for (int d = dim + 1; d < x.rank(); ++d) inner *= x[d];
  const auto picks = gather ? indices.size(dim) : indices.numel(), extent = x[dim];
  for (std::int64_t i = 0, to = 0; i < outer; ++i)
    for (std::int64_t j = 0; j < picks; ++j)
      for (std::int64_t k = 0; k < inner; ++k, ++to) {
        auto at = static_cast<std::int64_t>(indices[gather ? to : j]);
        if (at < 0) at += extent;
        visit(to, at < 0 || at >= extent ? -1 : (i * extent + at) * inner + k);
      }
}

inline Array index_select(const Array& x, int dim, const Array& indices, bool gather, const Shape& result, double outside) {
  Array y(result);
  each_pick(x.shape, dim, indices, gather, [&](auto to, auto from) { y[to] = from < 0 ? outside : x[from]; });
  return y;
}

/// The gradient of x of `shape` from the result's gradient.
inline Array index_add(const Array& g, int dim, const Array& indices, bool gather, const Shape& shape) {
  Array dx(shape);
  each_pick(shape, dim, indices, gather, [&](auto to, auto from) {
    if (from >= 0) dx[from] += g[to];
  });
  return dx;
}

}  // namespace clnet::testing::reference
