// Elements otherwise arranged: lists of the positions that each result's element comes from.
#pragma once

#include "tests/reference/shape/shape.h"

namespace clnet::testing::reference {

using Positions = std::vector<std::int64_t>;

/// start + the sum of index * step over all dimensions, for each index of `shape` in row order.
inline Positions strided(const Shape& shape, const Coordinates& steps, std::int64_t start = 0) {
  Positions result;
  result.reserve(static_cast<std::size_t>(shape.numel()));
  if (shape.numel() == 0) return result;
  Coordinates at(steps.size(), 0);
  auto position = start;
  while (true) {
    result.push_back(position);
    int d = shape.rank() - 1;
    for (; d >= 0; --d) {
      const auto dim = static_cast<std::size_t>(d);
      position += steps[dim];
      if (++at[dim] < shape[d]) break;
      position -= at[dim] * steps[dim];
      at[dim] = 0;
    }
    if (d < 0) return result;
  }
}

inline Coordinates row_major(const Shape& shape) {
  Coordinates steps(static_cast<std::size_t>(shape.rank()), 1);
  for (int d = shape.rank() - 2; d >= 0; --d)
    steps[static_cast<std::size_t>(d)] = steps[static_cast<std::size_t>(d) + 1] * shape[d + 1];
  return steps;
}

/// Where each element of `to` comes from when `from` is broadcast to it.
inline Positions broadcast_positions(const Shape& from, const Shape& to) {
  const auto own = row_major(from);
  Coordinates steps(static_cast<std::size_t>(to.rank()), 0);
  for (int back = 1; back <= from.rank(); ++back)
    if (from[-back] != 1) steps[steps.size() - static_cast<std::size_t>(back)] = own[own.size() - static_cast<std::size_t>(back)];
  return strided(to, steps);
}

inline Array take(const Array& x, const Shape& shape, const Positions& positions) {
  Array y(shape);
  for (std::size_t i = 0; i < positions.size(); ++i) y.values[i] = x[positions[i]];
  return y;
}

/// Dimension i of the result is dimension dims[i] of x.
inline Array permute(const Array& x, const Coordinates& dims) {
  const auto own = row_major(x.shape);
  std::vector<std::int64_t> extents, steps;
  for (auto dim : dims) {
    extents.push_back(x.size(static_cast<int>(dim)));
    steps.push_back(own[static_cast<std::size_t>(dim)]);
  }
  return take(x, Shape(extents), strided(Shape(extents), steps));
}

/// `count` elements along a dimension: start, start + step, ...
inline Array pick(const Array& x, int dim, std::int64_t start, std::int64_t count, std::int64_t step) {
  auto steps = row_major(x.shape);
  auto& along = steps[static_cast<std::size_t>(dim)];
  const auto first = start * along;
  along *= step;
  return take(x, x.shape.with(dim, count), strided(x.shape.with(dim, count), steps, first));
}

inline Array concat(const Arrays& parts, int dim) {
  std::int64_t extent = 0, outer = 1;
  for (const auto& part : parts) extent += part.size(dim);
  for (int d = 0; d < dim; ++d) outer *= parts[0].size(d);
  Array y(parts[0].shape.with(dim, extent));
  std::int64_t to = 0;
  for (std::int64_t i = 0; i < outer; ++i)
    for (const auto& part : parts)
      for (std::int64_t block = part.numel() / outer, j = 0; j < block; ++j) y[to++] = part[i * block + j];
  return y;
}

/// `value` around x; negative amounts take elements away.
inline Array surround(const Array& x, const Coordinates& before, const Coordinates& after, double value) {
  auto extents = x.shape.extents();
  for (std::size_t d = 0; d < extents.size(); ++d) extents[d] += before[d] + after[d];
  return make_array(Shape(extents), [&](Coordinates at) {
    for (std::size_t d = 0; d < at.size(); ++d) {
      at[d] -= before[d];
      if (at[d] < 0 || at[d] >= x.shape.extents()[d]) return value;
    }
    return x[linear_index(x.shape, at)];
  });
}

}  // namespace clnet::testing::reference
