// The order of elements along a dimension; equal ones stay in theirs, NaN is larger than any number.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/cases/case.h"

namespace clnet::testing::reference {

inline Array argsort(const Array& x, int dim, bool descending) {
  Array order(x.shape);
  if (x.numel() == 0) return order;
  std::int64_t inner = 1;
  for (int d = dim + 1; d < x.shape.rank(); ++d) inner *= x.shape[d];
  const auto extent = x.shape[dim];
  for (std::int64_t line = 0; line < x.numel() / extent; ++line) {
    const auto base = line / inner * extent * inner + line % inner;
    std::vector<std::int64_t> places(static_cast<std::size_t>(extent));
    std::iota(places.begin(), places.end(), 0);
    const auto smaller = [](double a, double b) { return std::isnan(b) ? !std::isnan(a) : a < b; };
    std::stable_sort(places.begin(), places.end(), [&](auto i, auto j) {
      const double a = x[base + i * inner], b = x[base + j * inner];
      return descending ? smaller(b, a) : smaller(a, b);
    });
    for (std::int64_t i = 0; i < extent; ++i) order[base + i * inner] = static_cast<double>(places[static_cast<std::size_t>(i)]);
  }
  return order;
}

/// The elements at the first `count` places of an order along a dimension.
inline Array ordered(const Array& x, int dim, const Array& order, std::int64_t count) {
  Array y(x.shape.with(dim, count));
  std::int64_t inner = 1;
  for (int d = dim + 1; d < x.shape.rank(); ++d) inner *= x.shape[d];
  const auto extent = x.shape[dim];
  for (std::int64_t at = 0; at < y.numel(); ++at) {
    const auto base = at / (count * inner) * extent * inner + at % inner;
    y[at] = x[base + static_cast<std::int64_t>(order[base + at / inner % count * inner]) * inner];
  }
  return y;
}

/// The first `count` places along a dimension.
inline Array first_of(const Array& x, int dim, std::int64_t count) {
  Array places = x;
  std::int64_t inner = 1;
  for (int d = dim + 1; d < x.shape.rank(); ++d) inner *= x.shape[d];
  for (std::int64_t at = 0; at < x.numel(); ++at) places[at] = static_cast<double>(at / inner % x.shape[dim]);
  return ordered(x, dim, places, count);
}

}  // namespace clnet::testing::reference
