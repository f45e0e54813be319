// Naive pooling of any number of axes in double precision.
#pragma once

#include <cmath>
#include <limits>

#include "tests/reference/pool/pool2d.h"
#include "tests/reference/shape/shape.h"

namespace clnet::testing {

/// Calls visit(output's index, first of the plane's elements in x, elements of the plane that the window sees, how many of its
/// positions lie before the padding's end) for x {n, c, ...}.
template <class Visit>
void each_pool_window(const Shape& x, const Shape& y, const std::vector<PoolAxis>& axes, Visit visit) {
  std::vector<std::int64_t> extents(x.begin() + 2, x.end());
  const Shape plane(extents);
  for (std::int64_t o = 0; o < y.numel(); ++o) {
    const auto at = coordinates(y, o);
    std::vector<std::vector<std::int64_t>> windows;
    std::vector<std::int64_t> counts;
    std::int64_t padded = 1;
    for (std::size_t a = 0; a < axes.size(); ++a) {
      windows.push_back(axes[a].window(at[a + 2], extents[a]));
      counts.push_back(static_cast<std::int64_t>(windows.back().size()));
      std::int64_t before_end = 0;
      for (auto i : windows.back())
        if (i < extents[a] + axes[a].after) ++before_end;
      padded *= before_end;
    }
    std::vector<std::int64_t> seen;
    const Shape window(counts);
    for (std::int64_t i = 0; i < window.numel(); ++i) {
      auto where = coordinates(window, i);
      bool inside = true;
      for (std::size_t a = 0; a < axes.size(); ++a) {
        where[a] = windows[a][static_cast<std::size_t>(where[a])];
        inside = inside && where[a] >= 0 && where[a] < extents[a];
      }
      if (inside) seen.push_back(linear_index(plane, where));
    }
    visit(o, (at[0] * x[1] + at[1]) * plane.numel(), seen, padded);
  }
}

inline Shape pool_output_shape(const Shape& x, const std::vector<PoolAxis>& axes) {
  std::vector<std::int64_t> extents{x[0], x[1]};
  for (std::size_t a = 0; a < axes.size(); ++a) extents.push_back(axes[a].outputs(x[static_cast<int>(a) + 2]));
  return Shape(extents);
}

/// The largest elements, and their numbers in their planes.
inline Arrays max_pool_reference(const Array& x, const std::vector<PoolAxis>& axes) {
  Array y(pool_output_shape(x.shape, axes)), index(y.shape);
  each_pool_window(x.shape, y.shape, axes, [&](auto o, auto first, const auto& seen, auto) {
    y[o] = -std::numeric_limits<double>::infinity();
    index[o] = static_cast<double>(x.numel() / (x.size(0) * x.size(1)));
    bool any = false;
    for (auto i : seen)
      if (!any || x[first + i] > y[o] || std::isnan(x[first + i])) {
        y[o] = x[first + i];
        index[o] = static_cast<double>(i);
        any = true;
      }
  });
  return {y, index};
}

/// Sums by their number of elements (`include_pad`: and of padding), or by `divisor` where that is not 0.
inline Array avg_pool_reference(const Array& x, const std::vector<PoolAxis>& axes, bool include_pad, std::int64_t divisor = 0) {
  Array y(pool_output_shape(x.shape, axes));
  each_pool_window(x.shape, y.shape, axes, [&](auto o, auto first, const auto& seen, auto padded) {
    const auto count = divisor != 0 ? divisor : include_pad ? padded : static_cast<std::int64_t>(seen.size());
    for (auto i : seen) y[o] += x[first + i] / static_cast<double>(count);
  });
  return y;
}

/// PyTorch's: (mean of the powers * the kernel's size)^(1 / power).
inline Array lp_pool_reference(const Array& x, double power, const std::vector<PoolAxis>& axes) {
  Array y(pool_output_shape(x.shape, axes));
  double area = 1;
  for (const auto& axis : axes) area *= static_cast<double>(axis.kernel);
  each_pool_window(x.shape, y.shape, axes, [&](auto o, auto first, const auto& seen, auto padded) {
    double sum = 0;
    for (auto i : seen) sum += std::pow(x[first + i], power);
    y[o] = std::pow(sum / static_cast<double>(padded) * area, 1 / power);
  });
  return y;
}

inline Array max_unpool_reference(const Array& x, const Array& indices, const Shape& result) {
  Array y(result);
  const auto planes = x.size(0) * x.size(1), from = x.numel() / planes, to = y.numel() / planes;
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    const auto at = static_cast<std::int64_t>(indices[i]);
    if (at >= 0 && at < to) y[i / from * to + at] = x[i];
  }
  return y;
}

}  // namespace clnet::testing
