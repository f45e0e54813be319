// scatter and scatter_add: one pick after the other.
#pragma once

#include "tests/cases/case.h"
#include "tests/reference/shape/shape.h"

namespace clnet::testing::reference {

/// Calls visit(pick, the place in x that it goes to) for each in order; out of range: none.
template <class Visit>
void each_scattered(const Shape& x, int dim, const Array& indices, Visit visit) {
  for (std::int64_t pick = 0; pick < indices.numel(); ++pick) {
    Coordinates at(static_cast<std::size_t>(x.rank()));
    auto rest = pick;
    for (int d = x.rank(); d-- > 0; rest /= indices.shape[d]) at[static_cast<std::size_t>(d)] = rest % indices.shape[d];
    auto to = static_cast<std::int64_t>(indices[pick]);
    if (to < 0) to += x[dim];
    if (to < 0 || to >= x[dim]) continue;
    at[static_cast<std::size_t>(dim)] = to;
    visit(pick, linear_index(x, at));
  }
}

inline Array scatter(const Array& x, int dim, const Array& indices, const Array& source, bool add) {
  Array y = x;
  each_scattered(x.shape, dim, indices, [&](auto pick, auto to) { y[to] = source[pick] + (add ? y[to] : 0); });
  return y;
}

}  // namespace clnet::testing::reference
