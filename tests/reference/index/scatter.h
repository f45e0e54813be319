// scatter and scatter_add: one pick after the other.
#pragma once

#include <algorithm>

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

enum class Fold : std::uint8_t { sum, prod, mean, amax, amin };
/// All that go to one place made to one, with what is there if `own`.
inline Array scatter_reduce(const Array& x, int dim, const Array& indices, const Array& source, Fold fold, bool own) {
  Array y = x, count(x.shape);
  each_scattered(x.shape, dim, indices, [&](auto pick, auto to) {
    const bool first = count[to]++ == 0 && !own;
    const double a = y[to], b = source[pick];
    y[to] = first                                     ? b
            : fold == Fold::sum || fold == Fold::mean ? a + b
            : fold == Fold::prod                      ? a * b
            : fold == Fold::amax                      ? std::max(a, b)
                                                      : std::min(a, b);
  });
  for (std::int64_t i = 0; i < y.numel() && fold == Fold::mean; ++i)
    if (count[i] > 0) y[i] /= count[i] + (own ? 1 : 0);
  return y;
}

}  // namespace clnet::testing::reference
