// Running extremes and logarithms of running sums in double precision.
#pragma once

#include <cmath>

#include "tests/reference/index/lines.h"

namespace clnet::testing::reference {

/// Indices of the largest, or smallest, elements so far: the last of equals; NaN stays.
inline std::vector<double> running_extreme(const std::vector<double>& line, bool least) {
  std::vector<double> indices;
  std::size_t best = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const bool reaches = least ? line[i] <= line[best] : line[i] >= line[best];
    if (std::isnan(line[i]) || reaches) best = i;
    indices.push_back(static_cast<double>(best));
  }
  return indices;
}

inline Arrays cummax(const Array& x, int dim, bool least) {
  if (x.numel() == 0) return {x, x};
  std::vector<std::vector<double>> values, indices;
  for (const auto& line : lines_of(x, dim)) {
    indices.push_back(running_extreme(line, least));
    auto& to = values.emplace_back();
    for (const double i : indices.back()) to.push_back(line[static_cast<std::size_t>(i)]);
  }
  return {of_lines(values, x.shape, dim), of_lines(indices, x.shape, dim)};
}

inline Array logcumsumexp(const Array& x, int dim) {
  if (x.numel() == 0) return x;
  auto lines = lines_of(x, dim);
  for (auto& line : lines) {
    double most = -INFINITY, sum = 0;
    for (auto& value : line) {
      const double larger = std::max(most, value);
      sum = (most > -INFINITY ? sum * std::exp(most - larger) : 0) + (value > -INFINITY ? std::exp(value - larger) : 0);
      most = larger;
      value = sum == 0 ? -INFINITY : most + std::log(sum);
    }
  }
  return of_lines(lines, x.shape, dim);
}

}  // namespace clnet::testing::reference
