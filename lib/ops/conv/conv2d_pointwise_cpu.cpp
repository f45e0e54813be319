// 1x1 convolution for CPUs (kernels/conv/conv2d_pointwise_cpu.cl): a matrix product of the weights and an image's pixels, which
// are a row for each channel already.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "lib/ops/conv/conv2d_cpu.h"

namespace clnet::ops {

namespace {

/// Sums in registers: `columns` vectors of each of `outs` outputs.
struct PixelTile {
  std::int64_t width, outs, columns;

  explicit PixelTile(const exec::Config& config) : width(config["lanes"]), outs(config["outs"]), columns(config["columns"]) {}
  PixelTile(std::int64_t lanes, std::int64_t of_outs, std::int64_t of_columns)
      : width(lanes), outs(of_outs), columns(of_columns) {}
  std::int64_t strip() const { return columns * width; }
};

/// What fits into 32 registers or 16, with the values that are multiplied.
std::vector<PixelTile> tiles(std::int64_t width) {
  if (width == 16) return {{16, 6, 4}, {16, 9, 3}, {16, 8, 3}, {16, 14, 2}};
  return {{width, 4, 3}, {width, 6, 2}};
}

/// Half cycles per input by a model: multiply-adds, and loads of weights beside every other. Vectors beyond the last whole strip
/// are made one by one.
double cost(const Conv2dProblem& p, std::int64_t outs, const PixelTile& tile) {
  const auto vectors = ceil_div(p.pixels(), tile.width), rest = vectors % tile.columns;
  const auto strip = [&](std::int64_t columns) { return 2 * tile.outs * columns + tile.outs; };
  return static_cast<double>(ceil_div(outs, tile.outs) * (vectors / tile.columns * strip(tile.columns) + rest * strip(1))) *
         static_cast<double>(tile.width);
}

struct PointwiseBlocks {
  std::int64_t strips, panels;  ///< of them for one work-item
  std::int64_t all_strips, all_panels;
};

PointwiseBlocks cut(const Conv2dProblem& p, std::int64_t ins, std::int64_t outs, const PixelTile& tile,
                    const DeviceInfo& device) {
  PointwiseBlocks b{
      .strips = 1, .panels = 1, .all_strips = ceil_div(p.pixels(), tile.strip()), .all_panels = ceil_div(outs, tile.outs)};
  b.strips = even_piece(b.all_strips, scratch(device) / (std::max<std::int64_t>(ins, 1) * tile.strip()));
  b.panels = b.all_panels;
  const auto items = [&] { return ceil_div(b.all_strips, b.strips) * ceil_div(b.all_panels, b.panels) * p.n * p.groups; };
  // Fewer pixels mean more passes over the weights, fewer outputs more staging of the same pixels: as long as there are many.
  while (items() < wanted_items(device) && b.strips > 4) b.strips = ceil_div(b.strips, 2);
  while (items() < wanted_items(device) && b.panels > 4) b.panels = ceil_div(b.panels, 2);
  while (items() < wanted_items(device) && b.strips > 1) b.strips = ceil_div(b.strips, 2);
  return b;
}

exec::Config config_of(const PixelTile& tile, std::int64_t strips, std::int64_t panels) {
  return {{"lanes", tile.width}, {"outs", tile.outs}, {"columns", tile.columns}, {"strips", strips}, {"panels", panels}};
}

}  // namespace

std::optional<std::string> conv2d_pointwise_cpu_rejects(const Conv2dProblem& p, Conv2dDirection direction,
                                                        const DeviceInfo& device) {
  if (!device.prefers_vector_kernels) return "the device is no CPU with vectors";
  if (p.kh != 1 || p.kw != 1) return "the kernel is not 1x1";
  if (p.slices > 1) return "the images are slices of volumes";
  if (p.stride.height != 1 || p.stride.width != 1) return "the stride is not 1";
  if (p.oh != p.h || p.ow != p.w || p.top != 0 || p.left != 0) return "the input is padded";
  if (p.n == 0 || p.c == 0 || p.o == 0 || p.pixels() == 0) return "nothing to compute";
  if (direction == Conv2dDirection::backward_weights) return conv2d_backward_weights_pointwise_cpu_rejects(p, device);
  if (const auto floats = channels(p, direction).in * 2 * vector_width(device); floats > scratch(device))
    return fmt::format("its smallest block takes {} KiB of local memory", floats / 256);
  return std::nullopt;
}

std::optional<std::string> conv2d_pointwise_cpu_declines(const Conv2dProblem& p, Conv2dDirection direction,
                                                         const DeviceInfo& device) {
  if (direction == Conv2dDirection::backward_weights) return conv2d_backward_weights_pointwise_cpu_declines(p);
  const auto outs = channels(p, direction).out;
  const auto width = vector_width(device), panel = tiles(width).front().outs;
  // Measured: 7x7 pixels fill three quarters of the vectors, and take as long or longer than by vectors of channels.
  if (5 * ceil_div(p.pixels(), width) * width * ceil_div(outs, panel) * panel > 6 * outs * p.pixels())
    return "so few pixels or outputs fill too little of the registers";
  return std::nullopt;
}

std::vector<exec::Config> conv2d_pointwise_cpu_configs(const Conv2dProblem& p, Conv2dDirection direction,
                                                       const DeviceInfo& device) {
  if (direction == Conv2dDirection::backward_weights) return conv2d_backward_weights_pointwise_cpu_configs(p, device);
  const auto [ins, outs] = channels(p, direction);
  std::vector<exec::Config> result;
  for (const auto width : vector_widths(device)) {
    auto found = tiles(width);
    std::stable_sort(found.begin(), found.end(),
                     [&, made = outs](const PixelTile& a, const PixelTile& b) { return cost(p, made, a) < cost(p, made, b); });
    for (const auto& tile : found)
      if (ins * tile.strip() <= scratch(device)) {
        const auto b = cut(p, ins, outs, tile, device);
        result.push_back(config_of(tile, b.strips, b.panels));
      }
  }
  // Fewer pixels of a work-item, more of them if they fit, and fewer outputs.
  const PixelTile first(result.front());
  const auto b = cut(p, ins, outs, first, device);
  if (b.strips > 1) result.push_back(config_of(first, ceil_div(b.strips, 2), b.panels));
  if (b.strips < b.all_strips && 2 * b.strips * first.strip() * ins <= scratch(device))
    result.push_back(config_of(first, 2 * b.strips, b.panels));
  if (b.panels > 1) result.push_back(config_of(first, b.strips, ceil_div(b.panels, 2)));
  return result;
}

void conv2d_pointwise_cpu(const Conv2dProblem& p, Conv2dDirection direction, exec::Recorder& recorder) {
  if (direction == Conv2dDirection::backward_weights) return conv2d_backward_weights_pointwise_cpu(p, recorder);
  const bool backward = direction == Conv2dDirection::backward_data;
  const auto [ins, outs] = channels(p, direction);
  const PixelTile tile(recorder.config());
  const PointwiseBlocks b{.strips = recorder.config()["strips"],
                          .panels = recorder.config()["panels"],
                          .all_strips = ceil_div(p.pixels(), tile.strip()),
                          .all_panels = ceil_div(outs, tile.outs)};
  const auto packed = recorder.prepack({Shape{p.groups * b.all_panels * ins * tile.outs}, Dtype::f32}, p.weight);
  recorder.kernel("conv2d_pack_cpu", "conv2d_pack_cpu")
      .define("LANES", tile.outs)
      .in("w", p.weight)
      .out("packed", packed)
      .args({ins, outs, backward ? outs : 1, backward ? 1 : ins, 1, 1, 1, 0, 0, 1, 1, ins})
      .range({b.all_panels, 1, p.groups}, {1, 1, 1});

  auto& launch = recorder.kernel("conv2d_pointwise_cpu", "conv2d_pointwise_cpu");
  launch.define("VW", tile.width).define("COLUMNS", tile.columns).define("OUTS", tile.outs);
  launch.in("x", backward ? p.y : p.x).in("w", packed);
  if (p.has_bias()) launch.in("bias", p.bias).define("BIAS", 1);
  launch.out("y", backward ? p.x : p.y)
      .args({p.n * p.groups, p.groups, ins, outs, p.pixels(), b.all_panels, b.strips, b.panels})
      .local_memory(static_cast<std::size_t>(b.strips * tile.strip() * ins) * 4)
      .range({ceil_div(b.all_strips, b.strips), ceil_div(b.all_panels, b.panels), p.n * p.groups}, {1, 1, 1})
      .flops(p.flops())
      .detail(p.text());
  recorder.epilogue(launch, p.groups * outs, p.pixels());
}

}  // namespace clnet::ops
