// What order tells of a line: places, the most frequent element, quantiles.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "tests/reference/index/lines.h"

namespace clnet::testing::reference {

/// Indices in stable order, NaN last.
inline std::vector<std::size_t> order_of(const std::vector<double>& line) {
  std::vector<std::size_t> order(line.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](auto i, auto j) { return std::isnan(line[j]) ? !std::isnan(line[i]) : line[i] < line[j]; });
  return order;
}

inline std::size_t numbers_in(const std::vector<double>& line) {
  return static_cast<std::size_t>(std::count_if(line.begin(), line.end(), [](double x) { return !std::isnan(x); }));
}

inline std::size_t median(const std::vector<double>& line, bool ignores_nan) {
  const auto numbers = numbers_in(line);
  if (!ignores_nan && numbers < line.size())
    return static_cast<std::size_t>(std::find_if(line.begin(), line.end(), [](double x) { return std::isnan(x); }) -
                                    line.begin());
  return order_of(line)[numbers == 0 ? 0 : (numbers - 1) / 2];
}

inline std::size_t mode(const std::vector<double>& line) {
  std::size_t best = 0, most = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const auto count =
        static_cast<std::size_t>(std::count(line.begin() + static_cast<std::ptrdiff_t>(i) + 1, line.end(), line[i]));
    if (count > 0) continue;  // not the last one
    const auto all = static_cast<std::size_t>(std::count(line.begin(), line.end(), line[i]));
    if (all > most || (all == most && line[i] < line[best])) best = i, most = all;
  }
  return best;
}

inline double quantile(const std::vector<double>& line, double q, QuantileInterpolation interpolation, bool ignores_nan) {
  const auto numbers = numbers_in(line);
  if (numbers == 0 || (!ignores_nan && numbers < line.size())) return std::numeric_limits<double>::quiet_NaN();
  const auto order = order_of(line);
  const double rank = static_cast<float>(q) * static_cast<float>(numbers - 1), below = std::floor(rank), above = std::ceil(rank);
  const auto at = [&](double place) { return line[order[static_cast<std::size_t>(place)]]; };
  switch (interpolation) {
    case QuantileInterpolation::lower: return at(below);
    case QuantileInterpolation::higher: return at(above);
    case QuantileInterpolation::nearest: return at(std::nearbyint(rank));
    case QuantileInterpolation::midpoint: return (at(below) + at(above)) / 2;
    default: return at(below) + (rank - below) * (at(above) - at(below));
  }
}

}  // namespace clnet::testing::reference
