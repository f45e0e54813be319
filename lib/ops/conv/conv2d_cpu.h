// What the convolutions for CPUs share: how one direction's outputs see its inputs, and how the work is cut.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "lib/ops/conv/conv2d.h"
#include "lib/ops/rows.h"

namespace clnet::ops {

/// `total` cut into pieces of at most `most`, as even as can be: the length of a piece.
inline std::int64_t even_piece(std::int64_t total, std::int64_t most) {
  return ceil_div(total, ceil_div(total, std::max<std::int64_t>(most, 1)));
}

/// One dimension of one direction: which positions of the target are made, and where their taps lie in the source.
struct Axis {
  std::int64_t count = 0;                              ///< positions made
  std::int64_t target_first = 0, target_step = 1;      ///< where they go
  std::int64_t source_step = 1;                        ///< from one position to the next
  std::int64_t taps = 0, tap_first = 0, tap_step = 1;  ///< where position 0 reads
  std::int64_t kernel_first = 0, kernel_step = 1;      ///< which of the kernel's taps these are

  /// The extent of the source that `positions` of them read.
  std::int64_t window(std::int64_t positions) const {
    return taps == 0 ? 1 : (positions - 1) * source_step + (taps - 1) * std::abs(tap_step) + 1;
  }
};

inline Axis forward_axis(std::int64_t out, std::int64_t kernel, std::int64_t stride, std::int64_t pad, std::int64_t dilation) {
  return {.count = out, .source_step = stride, .taps = kernel, .tap_first = -pad, .tap_step = dilation};
}

/// The positions first, first + stride, ... of the input, each seen by the same taps.
inline Axis backward_axis(std::int64_t first, std::int64_t in, std::int64_t kernel, std::int64_t stride, std::int64_t pad,
                          std::int64_t dilation) {
  Axis axis{.count = ceil_div(in - first, stride), .target_first = first, .target_step = stride};
  const auto step = stride / std::gcd(stride, dilation);
  for (std::int64_t k = 0; k < std::min(step, kernel); ++k)
    if ((first + pad - k * dilation) % stride == 0) {
      axis.taps = ceil_div(kernel - k, step);
      axis.kernel_first = k;
      axis.kernel_step = step;
      axis.tap_first = (first + pad - k * dilation) / stride;
      axis.tap_step = -step * dilation / stride;
    }
  return axis;
}

/// The positions of both dimensions.
struct Grid {
  Axis vertical, horizontal;
};

/// What one direction makes: forward one grid, backward one for each remainder of a position by the stride.
inline std::vector<Grid> grids(const Conv2dProblem& p, bool backward) {
  const auto &s = p.stride, &d = p.dilation;
  if (!backward)
    return {{forward_axis(p.oh, p.kh, s.height, p.top, d.height), forward_axis(p.ow, p.kw, s.width, p.left, d.width)}};
  std::vector<Grid> result;
  for (std::int64_t i = 0; i < std::min(s.height, p.h); ++i)
    for (std::int64_t j = 0; j < std::min(s.width, p.w); ++j)
      result.push_back(
          {backward_axis(i, p.h, p.kh, s.height, p.top, d.height), backward_axis(j, p.w, p.kw, s.width, p.left, d.width)});
  return result;
}

/// Channels of a group that a direction sums over, and those that it makes.
struct Channels {
  std::int64_t in, out;
};
inline Channels channels(const Conv2dProblem& p, Conv2dDirection direction) {
  if (direction == Conv2dDirection::backward_data) return {p.group_out(), p.group_in()};
  return {p.group_in(), p.group_out()};
}

/// What is kept in registers: `pixels` broadcast values times `vectors` vectors of `width` channels. `block`: of how many pixels,
/// or tiles of Winograd's, a work-item takes the sums at a time, if the caches hold them.
struct Tile {
  std::int64_t width, vectors, pixels, block;

  Tile(std::int64_t lanes_of_one, std::int64_t of_vectors, std::int64_t of_pixels, std::int64_t at_once)
      : width(lanes_of_one), vectors(of_vectors), pixels(of_pixels), block(at_once) {}
  explicit Tile(const exec::Config& config) : Tile(config["lanes"], config["vectors"], config["pixels"], config["block"]) {}
  std::int64_t lanes() const { return width * vectors; }
  exec::Config config() const { return {{"lanes", width}, {"vectors", vectors}, {"pixels", pixels}, {"block", block}}; }
};

/// The tiles worth trying for so many channels, those first that leave fewer lanes without a channel. 16 registers hold 6 x 2, 4
/// x 3 or 8 x 1 sums and their operands; the 32 of the devices with 16 lanes hold more. At last the first one with half the block
/// and twice of it, as far as there are so many pixels or tiles (`all`).
inline std::vector<Tile> register_tiles(std::int64_t channels, std::int64_t block, std::int64_t all, const DeviceInfo& device) {
  const bool many = vector_width(device) == 16;
  std::vector<Tile> result;
  for (const auto width : vector_widths(device)) {
    const auto padded = [&](std::int64_t vectors) { return ceil_div(channels, width * vectors) * width * vectors; };
    std::vector<Tile> found{{width, 2, many ? 8 : 6, block}, {width, 3, many ? 8 : 4, block}, {width, 1, 8, block}};
    if (many) found.push_back({width, 2, 12, block});
    if (channels <= width)
      std::swap(found[0], found[2]);
    else if (padded(3) < padded(2))
      std::swap(found[0], found[1]);
    result.insert(result.end(), found.begin(), found.end());
  }
  for (const auto other : {block / 2, block * 2})
    if (all > std::min(block, other)) {
      result.push_back(result.front());
      result.back().block = other;
    }
  return result;
}

/// Half of the smallest second-level caches around; what a work-item has in local memory at most, in floats.
inline constexpr std::int64_t scratch_limit = (192 << 10) / 4;
inline std::int64_t scratch(const DeviceInfo& device) {
  return std::min<std::int64_t>(scratch_limit, static_cast<std::int64_t>(device.local_memory) / 4);
}

/// So many work-items keep all cores busy to the end.
inline std::int64_t wanted_items(const DeviceInfo& device) { return 4 * static_cast<std::int64_t>(device.compute_units); }

/// Floats from one staged channel to the next: not a multiple of a cache's way, lest all channels fall into the same lines.
inline std::int64_t staged_pitch(std::int64_t rows, std::int64_t columns) { return (ceil_div(rows * columns, 16) | 1) * 16; }
/// Pixels of a block, where nothing else was chosen.
inline constexpr std::int64_t wanted_pixels = 224;
/// Weights of a panel and a cache line of each channel share the first-level cache; in floats.
inline constexpr std::int64_t first_level = (20 << 10) / 4, cache_line = 16;

/// KiB of a staged window of one plane: small enough for the first-level cache.
inline constexpr std::int64_t nchw_window = 20;

/// Columns of a window, sorted by their remainder by the step.
inline std::int64_t row_pitch(const Axis& horizontal) {
  return ceil_div(horizontal.window(horizontal.count), horizontal.source_step) * horizontal.source_step;
}

/// As many rows of `planes` planes as fit so many KiB, but some in any case.
inline std::int64_t rows_of(const Axis& vertical, std::int64_t pitch, std::int64_t planes, std::int64_t window) {
  constexpr std::int64_t some = 8;
  const auto most = ((window << 10) / 4 / (pitch * planes) - vertical.window(1)) / vertical.source_step + 1;
  return even_piece(vertical.count, std::max(some, most));
}

/// kernels/conv/conv3d_cpu.cl. Floats of local memory that a work-item has with this tile.
std::int64_t conv3d_cpu_floats(const Conv2dProblem& problem, Conv2dDirection direction, const Tile& tile,
                               const DeviceInfo& device);
void conv3d_cpu(const Conv2dProblem& problem, Conv2dDirection direction, exec::Recorder& recorder);

/// The gradient of the weight of a 1x1 convolution of which `conv2d_pointwise_cpu_rejects` says nothing else.
std::optional<std::string> conv2d_backward_weights_pointwise_cpu_rejects(const Conv2dProblem& problem, const DeviceInfo& device);
std::optional<std::string> conv2d_backward_weights_pointwise_cpu_declines(const Conv2dProblem& problem);
std::vector<exec::Config> conv2d_backward_weights_pointwise_cpu_configs(const Conv2dProblem& problem, const DeviceInfo& device);
void conv2d_backward_weights_pointwise_cpu(const Conv2dProblem& problem, exec::Recorder& recorder);

/// The gradient of the weight, of a problem of few input channels of which `conv2d_nchw_cpu_rejects` says nothing else.
std::optional<std::string> conv2d_backward_weights_few_channels_cpu_rejects(const Conv2dProblem& problem,
                                                                            const DeviceInfo& device);
std::optional<std::string> conv2d_backward_weights_few_channels_cpu_declines(const Conv2dProblem& problem,
                                                                             const DeviceInfo& device);
std::vector<exec::Config> conv2d_backward_weights_few_channels_cpu_configs(const Conv2dProblem& problem,
                                                                           const DeviceInfo& device);
void conv2d_backward_weights_few_channels_cpu(const Conv2dProblem& problem, exec::Recorder& recorder);

/// Winograd's gradient of the weight, of a problem of which `conv2d_winograd_cpu_rejects` says nothing else.
std::optional<std::string> conv2d_backward_weights_winograd_cpu_rejects(const Conv2dProblem& problem, const DeviceInfo& device);
std::optional<std::string> conv2d_backward_weights_winograd_cpu_declines(const Conv2dProblem& problem, const DeviceInfo& device);
std::vector<exec::Config> conv2d_backward_weights_winograd_cpu_configs(const DeviceInfo& device);
void conv2d_backward_weights_winograd_cpu(const Conv2dProblem& problem, exec::Recorder& recorder);

}  // namespace clnet::ops
