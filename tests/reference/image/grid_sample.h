// grid_sample, affine_grid, roi_align and nms by their definitions, pixel by pixel.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/cases/case.h"

namespace clnet::testing::reference {

/// A place outside of the image led back into it, as the padding says.
inline double led_back(double at, std::int64_t extent, const GridSampleOptions& options) {
  const double last = static_cast<double>(extent - 1);
  if (options.padding == GridPadding::zeros) return at;
  if (options.padding == GridPadding::reflection) {
    const double low = options.align_corners ? 0 : -0.5, high = options.align_corners ? last : last + 0.5;
    if (low == high) return 0;
    // Mirrored as often as needed.
    while (at < low || at > high) at = at < low ? 2 * low - at : 2 * high - at;
  }
  return std::min(std::max(at, 0.0), last);
}

/// A pixel of channel `plane` of x, 0 outside.
inline double pixel_of(const Array& x, std::int64_t plane, double row, double column) {
  const auto height = x.shape[2], width = x.shape[3];
  if (!(row >= 0 && column >= 0 && row < static_cast<double>(height) && column < static_cast<double>(width))) return 0;
  return x[(plane * height + static_cast<std::int64_t>(row)) * width + static_cast<std::int64_t>(column)];
}

/// Keys' kernel with a = -3/4 of any distance.
inline double keys_weight(double distance) {
  const double d = std::abs(distance), a = -0.75;
  if (d <= 1) return (a + 2) * d * d * d - (a + 3) * d * d + 1;
  return d < 2 ? a * d * d * d - 5 * a * d * d + 8 * a * d - 4 * a : 0;
}

inline Array grid_sample(const Array& x, const Array& grid, const GridSampleOptions& options) {
  const auto channels = x.shape[1], height = x.shape[2], width = x.shape[3], places = grid.shape[1] * grid.shape[2];
  Array y({x.shape[0], channels, grid.shape[1], grid.shape[2]});
  const auto pixel_at = [&](double coordinate, std::int64_t extent) {
    const auto size = static_cast<double>(extent);
    return options.align_corners ? (coordinate + 1) / 2 * (size - 1) : ((coordinate + 1) * size - 1) / 2;
  };
  for (std::int64_t i = 0; i < y.numel(); ++i) {
    const auto plane = i / places, image = plane / channels, place = image * places + i % places;
    const double column = pixel_at(grid[2 * place], width), row = pixel_at(grid[2 * place + 1], height);
    if (options.mode == Interpolation::bicubic) {
      for (int r = -1; r <= 2; ++r)
        for (int c = -1; c <= 2; ++c) {
          const double at_row = std::floor(row) + r, at_column = std::floor(column) + c;
          y[i] += keys_weight(row - at_row) * keys_weight(column - at_column) *
                  pixel_of(x, plane, led_back(at_row, height, options), led_back(at_column, width, options));
        }
      continue;
    }
    const double inner_row = led_back(row, height, options), inner_column = led_back(column, width, options);
    if (options.mode == Interpolation::nearest) {
      y[i] = pixel_of(x, plane, std::nearbyint(inner_row), std::nearbyint(inner_column));
      continue;
    }
    for (int r = 0; r < 2; ++r)
      for (int c = 0; c < 2; ++c) {
        const double at_row = std::floor(inner_row) + r, at_column = std::floor(inner_column) + c;
        y[i] +=
            (1 - std::abs(inner_row - at_row)) * (1 - std::abs(inner_column - at_column)) * pixel_of(x, plane, at_row, at_column);
      }
  }
  return y;
}

/// Of volumes {N, C, D, H, W} at {N, d, h, w, 3}.
inline Array grid_sample_volume(const Array& x, const Array& grid, const GridSampleOptions& options) {
  const auto channels = x.shape[1], places = grid.numel() / grid.shape[0] / 3;
  Array y({x.shape[0], channels, grid.shape[1], grid.shape[2], grid.shape[3]});
  for (std::int64_t i = 0; i < y.numel(); ++i) {
    const auto plane = i / places, place = plane / channels * places + i % places;
    double inner[3];
    for (int d = 0; d < 3; ++d) {
      const auto size = static_cast<double>(x.shape[d + 2]), coordinate = grid[3 * place + 2 - d];
      inner[d] = options.align_corners ? (coordinate + 1) / 2 * (size - 1) : ((coordinate + 1) * size - 1) / 2;
    }
    // Every tap of a neighbourhood of 4 x 4 x 4, most with no weight.
    for (int tap = 0; tap < 64; ++tap) {
      double weight = 1;
      std::int64_t from = plane;
      bool inside = true;
      for (int d = 0; d < 3; ++d) {
        const double outer = inner[d], led = led_back(outer, x.shape[d + 2], options), step = (tap >> 2 * d & 3) - 1;
        double at = std::floor(led) + step;
        if (options.mode == Interpolation::bicubic) {
          at = led_back(std::floor(outer) + step, x.shape[d + 2], options);
          weight *= keys_weight(outer - std::floor(outer) - step);
        } else if (options.mode == Interpolation::nearest) {
          weight *= at == std::nearbyint(led) ? 1 : 0;
        } else {
          weight *= std::max(0.0, 1 - std::abs(led - at));
        }
        inside = inside && at >= 0 && at < static_cast<double>(x.shape[d + 2]);
        from = from * x.shape[d + 2] + static_cast<std::int64_t>(at);
      }
      if (inside) y[i] += weight * x[from];
    }
  }
  return y;
}

inline Array affine_grid(const Array& theta, const Shape& size, bool align_corners) {
  const int dims = size.rank() - 2;
  std::vector<std::int64_t> extents{size[0]};
  for (int d = 0; d < dims; ++d) extents.push_back(size[d + 2]);
  extents.push_back(dims);
  Array grid{Shape(extents)};
  for (std::int64_t i = 0; i < grid.numel(); ++i) {
    const auto out = i % dims;
    auto rest = i / dims;
    std::vector<double> coordinates;  // that of the last dimension first
    for (int d = dims; d-- > 0; rest /= size[d + 2]) {
      const auto extent = size[d + 2], at = rest % extent;
      const auto n = static_cast<double>(extent), k = static_cast<double>(at);
      coordinates.push_back(!align_corners ? (2 * k + 1) / n - 1 : extent > 1 ? 2 * k / (n - 1) - 1 : 0);
    }
    coordinates.push_back(1);
    for (int k = 0; k <= dims; ++k)
      grid[i] += theta[(rest * dims + out) * (dims + 1) + k] * coordinates[static_cast<std::size_t>(k)];
  }
  return grid;
}

inline Array roi_align(const Array& x, const Array& boxes, std::int64_t height, std::int64_t width,
                       const RoiAlignOptions& options) {
  const auto channels = x.shape[1], rows = x.shape[2], columns = x.shape[3];
  Array y({boxes.shape[0], channels, height, width});
  const double shift = options.aligned ? 0.5 : 0;
  const auto sample = [&](std::int64_t plane, double row, double column) {
    const auto h = static_cast<double>(rows), w = static_cast<double>(columns);
    if (row < -1 || row > h || column < -1 || column > w) return 0.0;
    row = std::min(std::max(row, 0.0), h - 1);
    column = std::min(std::max(column, 0.0), w - 1);
    double sum = 0;
    for (int r = 0; r < 2; ++r)
      for (int c = 0; c < 2; ++c) {
        const double at_row = std::floor(row) + r, at_column = std::floor(column) + c;
        sum += (1 - std::abs(row - at_row)) * (1 - std::abs(column - at_column)) * pixel_of(x, plane, at_row, at_column);
      }
    return sum;
  };
  for (std::int64_t i = 0; i < y.numel(); ++i) {
    const auto box = i / (channels * height * width), channel = i / (height * width) % channels;
    const auto plane = static_cast<std::int64_t>(boxes[box * 5]) * channels + channel;
    const auto side = [&](int which) { return boxes[box * 5 + which] * options.spatial_scale - shift; };
    const double left = side(1), top = side(2);
    double across = side(3) - left, along = side(4) - top;
    if (!options.aligned) across = std::max(across, 1.0), along = std::max(along, 1.0);
    const double part_height = along / static_cast<double>(height), part_width = across / static_cast<double>(width);
    const auto samples = [&](double part) {
      return options.sampling_ratio > 0 ? options.sampling_ratio : static_cast<std::int64_t>(std::ceil(part));
    };
    const auto down = samples(part_height), over = samples(part_width);
    for (std::int64_t r = 0; r < down; ++r)
      for (std::int64_t c = 0; c < over; ++c) {
        const double row =
            top +
            (static_cast<double>(i / width % height) + (static_cast<double>(r) + 0.5) / static_cast<double>(down)) * part_height;
        const double column =
            left + (static_cast<double>(i % width) + (static_cast<double>(c) + 0.5) / static_cast<double>(over)) * part_width;
        y[i] += sample(plane, row, column) / static_cast<double>(down * over);
      }
  }
  return y;
}

/// The best box that is left, and away with all that it overlaps, until none is left.
inline Array nms(const Array& boxes, const Array& scores, double threshold) {
  std::vector<std::int64_t> left(static_cast<std::size_t>(scores.numel()));
  std::iota(left.begin(), left.end(), 0);
  Array kept{Shape{0}};
  const auto overlap = [&](std::int64_t i, std::int64_t j) {
    double common = 1, both = 1, one = 1;
    for (int d = 0; d < 2; ++d) {
      const double low = std::max(boxes[4 * i + d], boxes[4 * j + d]),
                   high = std::min(boxes[4 * i + 2 + d], boxes[4 * j + 2 + d]);
      common *= std::max(0.0, high - low);
      one *= boxes[4 * i + 2 + d] - boxes[4 * i + d];
      both *= boxes[4 * j + 2 + d] - boxes[4 * j + d];
    }
    return common / (one + both - common);
  };
  while (!left.empty()) {
    const auto best = *std::max_element(left.begin(), left.end(), [&](auto i, auto j) { return scores[i] < scores[j]; });
    kept.values.push_back(static_cast<double>(best));
    std::erase_if(left, [&](auto i) { return i == best || overlap(best, i) > threshold; });
  }
  return {Shape{static_cast<std::int64_t>(kept.values.size())}, kept.values};
}

}  // namespace clnet::testing::reference
