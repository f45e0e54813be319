// Elements picked and placed by indices, one after the other.
#pragma once

#include <cmath>
#include <limits>
#include <optional>

#include "tests/cases/case.h"
#include "tests/reference/shape/shape.h"

namespace clnet::testing::reference {

/// Where the part of x begins that a line of k indices names behind `first` coordinates; none: out of range.
inline std::optional<std::int64_t> part_of(const Shape& x, const Coordinates& first, const double* indices, std::int64_t k) {
  Coordinates at = first;
  for (std::int64_t j = 0; j < k; ++j) {
    const auto extent = x[static_cast<int>(at.size())];
    auto i = static_cast<std::int64_t>(indices[j]);
    if (i < 0) i += extent;
    if (i < 0 || i >= extent) return std::nullopt;
    at.push_back(i);
  }
  at.resize(static_cast<std::size_t>(x.rank()), 0);
  return linear_index(x, at);
}

inline std::int64_t elements_behind(const Shape& x, std::int64_t dims) {
  std::int64_t count = 1;
  for (auto d = dims; d < x.rank(); ++d) count *= x[static_cast<int>(d)];
  return count;
}

inline Array gather_nd(const Array& x, const Array& indices, int batch_dims) {
  const auto k = indices.shape[-1], lines = indices.numel() / k, inner = elements_behind(x.shape, batch_dims + k);
  std::vector<std::int64_t> extents(indices.shape.begin(), indices.shape.end() - 1), lines_of = extents;
  for (auto d = batch_dims + k; d < x.shape.rank(); ++d) extents.push_back(x.shape[static_cast<int>(d)]);
  Array y{Shape(extents)};
  for (std::int64_t line = 0; line < lines; ++line) {
    auto first = coordinates(Shape(lines_of), line);
    first.resize(static_cast<std::size_t>(batch_dims));
    const auto from = part_of(x.shape, first, &indices.values[static_cast<std::size_t>(line * k)], k);
    for (std::int64_t i = 0; i < inner; ++i) y[line * inner + i] = from ? x[*from + i] : std::numeric_limits<double>::quiet_NaN();
  }
  return y;
}

/// `combine` is given what is there and what comes.
template <class Combine>
Array scatter_nd(const Array& x, const Array& indices, const Array& source, Combine combine) {
  const auto k = indices.shape[-1], inner = elements_behind(x.shape, k);
  Array y = x;
  for (std::int64_t line = 0; line < indices.numel() / k; ++line)
    if (const auto to = part_of(x.shape, {}, &indices.values[static_cast<std::size_t>(line * k)], k))
      for (std::int64_t i = 0; i < inner; ++i) y[*to + i] = combine(y[*to + i], source[line * inner + i]);
  return y;
}

/// Calls visit(place in x, place in a source with an element for each index) for what the indices name along a dimension.
template <class Visit>
void each_named(const Shape& x, int dim, const Array& indices, Visit visit) {
  std::int64_t outer = 1, inner = 1;
  for (int d = 0; d < dim; ++d) outer *= x[d];
  for (int d = dim + 1; d < x.rank(); ++d) inner *= x[d];
  const auto extent = x[dim], picks = indices.numel();
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t j = 0; j < picks; ++j) {
      auto at = static_cast<std::int64_t>(indices[j]);
      if (at < 0) at += extent;
      if (at < 0 || at >= extent) continue;
      for (std::int64_t i = 0; i < inner; ++i) visit((o * extent + at) * inner + i, (o * picks + j) * inner + i);
    }
}

}  // namespace clnet::testing::reference
