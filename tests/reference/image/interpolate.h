// interpolate() by its definition: each new element from the old ones, dimension by dimension in nested loops.
#pragma once

#include <algorithm>
#include <cmath>

#include "tests/cases/case.h"

namespace clnet::testing::reference {

/// How much of old element `k` is in new element `i`; `scale`: old elements per new one.
inline double share_of(Interpolation mode, bool align_corners, double scale, std::int64_t from, std::int64_t to, std::int64_t i,
                       std::int64_t k) {
  const auto index = static_cast<double>(i), element = static_cast<double>(k);
  const double centre = align_corners ? (to > 1 ? index * double(from - 1) / double(to - 1) : 0) : (index + 0.5) * scale - 0.5;
  const auto at_edge = [&](double place) { return std::min<double>(std::max(place, 0.0), static_cast<double>(from - 1)); };
  switch (mode) {
    case Interpolation::nearest: return element == at_edge(std::floor(static_cast<float>(i) * static_cast<float>(scale)));
    case Interpolation::nearest_exact:
      return element == at_edge(std::floor((static_cast<float>(i) + 0.5F) * static_cast<float>(scale)));
    case Interpolation::area: {
      const auto first = static_cast<std::int64_t>(std::floor(double(i * from) / double(to)));
      const auto last = static_cast<std::int64_t>(std::ceil(double((i + 1) * from) / double(to)));
      return k >= first && k < last ? 1.0 / double(last - first) : 0;
    }
    case Interpolation::bicubic: {
      double sum = 0;
      for (int tap = -1; tap <= 2; ++tap) {
        const double place = std::floor(centre) + tap, d = std::abs(centre - place);
        // Keys' kernel with a = -3/4.
        const double weight = d <= 1 ? 1.25 * d * d * d - 2.25 * d * d + 1 : -0.75 * d * d * d + 3.75 * d * d - 6 * d + 3;
        if (at_edge(place) == element) sum += weight;
      }
      return sum;
    }
    default: return std::max(0.0, 1 - std::abs(at_edge(centre) - element));
  }
}

/// The same with antialiasing, before the shares are made to add up to 1.
inline double smooth_share_of(Interpolation mode, bool align_corners, double scale, std::int64_t from, std::int64_t to,
                              std::int64_t i, std::int64_t k) {
  if (align_corners) scale = to > 1 ? double(from - 1) / double(to - 1) : 0;
  const double d = std::abs(double(k) + 0.5 - (double(i) + 0.5) * scale) / std::max(scale, 1.0);
  if (mode == Interpolation::bilinear) return std::max(0.0, 1 - d);
  // Keys' kernel with a = -1/2.
  if (d <= 1) return 1.5 * d * d * d - 2.5 * d * d + 1;
  return d <= 2 ? -0.5 * d * d * d + 2.5 * d * d - 4 * d + 2 : 0;
}

/// `scales`: old elements per new one, for each dimension behind the first two.
inline Array interpolate(const Array& x, const InterpolateOptions& options, const std::vector<std::int64_t>& to,
                         const std::vector<double>& scales) {
  const auto mode = options.mode;
  const bool align_corners = options.align_corners;
  Array result = x;
  for (std::size_t d = 0; d < to.size(); ++d) {
    const int dim = static_cast<int>(d) + 2;
    const Array old = result;
    result = Array(old.shape.with(dim, to[d]));
    std::int64_t inner = 1;
    for (int after = dim + 1; after < old.shape.rank(); ++after) inner *= old.shape[after];
    const auto from = old.shape[dim];
    for (std::int64_t at = 0; at < result.numel(); ++at) {
      const auto i = at / inner % to[d], first = at / inner / to[d] * from * inner + at % inner;
      double all = 0;
      for (std::int64_t k = 0; k < from; ++k) {
        const double share = options.antialias ? smooth_share_of(mode, align_corners, scales[d], from, to[d], i, k)
                                               : share_of(mode, align_corners, scales[d], from, to[d], i, k);
        if (share != 0) result[at] += share * old[first + k * inner];
        all += share;
      }
      if (options.antialias) result[at] /= all;
    }
  }
  return result;
}

}  // namespace clnet::testing::reference
