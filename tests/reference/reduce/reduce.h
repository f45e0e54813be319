// Reductions in double precision: one pass over x that visits each output's elements in order.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "tests/cases/case.h"

namespace clnet::testing::reference {

/// Calls visit(output index, index along the reduced dimensions, value) for every element; returns the kept shape.
inline Shape for_each_reduced(const Array& x, const std::vector<int>& dims, bool keepdim,
                              const std::function<void(std::int64_t, std::int64_t, double)>& visit) {
  const int rank = x.shape.rank();
  std::vector<bool> reduced(static_cast<std::size_t>(rank), dims.empty());
  for (int dim : dims) reduced[static_cast<std::size_t>(dim < 0 ? dim + rank : dim)] = true;
  std::vector<std::int64_t> kept;
  for (int d = 0; d < rank; ++d) {
    if (!reduced[static_cast<std::size_t>(d)])
      kept.push_back(x.shape[d]);
    else if (keepdim)
      kept.push_back(1);
  }
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    std::int64_t rest = i, output = 0, along = 0, output_stride = 1, along_stride = 1;
    for (int d = rank - 1; d >= 0; --d) {
      const auto at = rest % x.shape[d];
      rest /= x.shape[d];
      auto& index = reduced[static_cast<std::size_t>(d)] ? along : output;
      auto& stride = reduced[static_cast<std::size_t>(d)] ? along_stride : output_stride;
      index += at * stride;
      stride *= x.shape[d];
    }
    visit(output, along, x[i]);
  }
  return Shape(kept);
}

inline Array reduce(const Array& x, const std::vector<int>& dims, bool keepdim, double start,
                    const std::function<double(double, double)>& combine) {
  Array y(for_each_reduced(x, dims, keepdim, [](auto, auto, auto) {}));
  std::fill(y.values.begin(), y.values.end(), start);
  for_each_reduced(x, dims, keepdim, [&](auto output, auto, double value) { y[output] = combine(y[output], value); });
  return y;
}

inline Array sum(const Array& x, const std::vector<int>& dims, bool keepdim) {
  return reduce(x, dims, keepdim, 0, [](double a, double b) { return a + b; });
}
inline Array mean(const Array& x, const std::vector<int>& dims, bool keepdim) {
  auto y = sum(x, dims, keepdim);
  for (auto& value : y.values) value *= static_cast<double>(y.numel()) / static_cast<double>(x.numel());
  return y;
}
inline Array prod(const Array& x, const std::vector<int>& dims, bool keepdim) {
  return reduce(x, dims, keepdim, 1, [](double a, double b) { return a * b; });
}
inline Array max(const Array& x, const std::vector<int>& dims, bool keepdim) {
  return reduce(x, dims, keepdim, -INFINITY, [](double a, double b) { return std::max(a, b); });
}
inline Array min(const Array& x, const std::vector<int>& dims, bool keepdim) {
  return reduce(x, dims, keepdim, INFINITY, [](double a, double b) { return std::min(a, b); });
}
inline Array var(const Array& x, const std::vector<int>& dims, int correction, bool keepdim) {
  const auto center = mean(x, dims, keepdim);
  Array y(center.shape);
  for_each_reduced(x, dims, keepdim,
                   [&](auto output, auto, double value) { y[output] += (value - center[output]) * (value - center[output]); });
  const auto count = static_cast<double>(x.numel()) / static_cast<double>(y.numel());
  for (auto& value : y.values) value /= count - correction;
  return y;
}
/// The first largest of sign * x.
inline Array arg(const Array& x, int dim, bool keepdim, double sign) {
  Array y(for_each_reduced(x, {dim}, keepdim, [](auto, auto, auto) {}));
  std::vector<double> best(y.values.size(), -INFINITY);
  for_each_reduced(x, {dim}, keepdim, [&](auto output, auto along, double value) {
    auto& most = best[static_cast<std::size_t>(output)];
    if (sign * value > most) {
      most = sign * value;
      y[output] = static_cast<double>(along);
    }
  });
  return y;
}

}  // namespace clnet::testing::reference
