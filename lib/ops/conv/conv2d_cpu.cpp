// Direct convolution for CPUs (kernels/conv/conv2d_cpu.cl): tiles of pixels by vectors of output channels, summed in registers.
// The gradient of the input is a convolution with other steps; the gradient of the weight has tiles of weights instead.
#include "lib/ops/conv/conv2d_cpu.h"

#include <fmt/format.h>

namespace clnet::ops {

namespace {

/// Columns of a block: whole rows, or pieces of single ones.
std::int64_t block_columns(std::int64_t columns, const Tile& tile) {
  return columns <= 4 * tile.block ? columns : even_piece(columns, tile.block);
}
/// How the work is cut: what a work-item makes. RB, WB, PB and CB are the kernels' names for the blocks.
struct Blocks {
  Tile tile;
  std::int64_t panels = 1, images = 1, rows_block = 1, columns_block = 1, panel_block = 1, channel_block = 1;
  std::int64_t rows = 1, columns = 1, pitch = 1;  ///< the staged windows
  std::int64_t sums_size = 0;                     ///< floats of local memory
  std::int64_t total() const { return sums_size + channel_block * pitch; }
};

/// A convolution of `in` to `out` channels per group over the grid vertical x horizontal.
Blocks cut(const Conv2dProblem& p, std::int64_t in, std::int64_t out, const Axis& vertical, const Axis& horizontal,
           const Tile& tile, const DeviceInfo& device) {
  Blocks b{.tile = tile};
  b.panels = ceil_div(out, b.tile.lanes());
  b.panel_block = b.panels;
  b.columns_block = block_columns(horizontal.count, tile);
  b.columns = horizontal.window(b.columns_block);
  const auto update = [&] {
    b.rows = vertical.window(b.rows_block);
    b.pitch = staged_pitch(b.images * b.rows, b.columns);
    const auto tiles = ceil_div(b.images * b.rows_block * b.columns_block, b.tile.pixels);
    b.sums_size = (b.channel_block < in ? b.panel_block : 1) * (tiles * b.tile.pixels + b.tile.width) * b.tile.lanes();
  };
  const auto halve = [&](std::int64_t& block, std::int64_t total) {
    block = even_piece(total, ceil_div(block, 2));
    update();
  };
  const auto items = [&] {
    return ceil_div(p.n, b.images) * p.groups * ceil_div(vertical.count, b.rows_block) *
           ceil_div(horizontal.count, b.columns_block) * ceil_div(b.panels, b.panel_block);
  };
  const auto taps = std::max<std::int64_t>(vertical.taps * horizontal.taps, 1);  // 0: such a grid is cleared, not convolved
  b.channel_block = even_piece(in, std::clamp<std::int64_t>(first_level / (taps * b.tile.lanes() + cache_line), 1, 256));
  b.rows_block = even_piece(vertical.count, tile.block / b.columns_block);
  if (b.rows_block == vertical.count && b.columns_block == horizontal.count)
    b.images = even_piece(p.n, tile.block / (vertical.count * horizontal.count));
  update();
  // Enough work-items: first fewer panels each, then fewer images, then fewer rows.
  const auto wanted = wanted_items(device);
  while (items() < wanted && b.panel_block > 1) halve(b.panel_block, b.panels);
  while (items() < wanted && b.images > 1) halve(b.images, p.n);
  while (items() < wanted && b.rows_block * b.columns_block > 2 * b.tile.pixels && b.rows_block > 1)
    halve(b.rows_block, vertical.count);
  // And what fits.
  const auto limit = scratch(device);
  while (b.sums_size > limit / 2 && b.panel_block > 1) halve(b.panel_block, b.panels);
  while (b.total() > limit && b.channel_block > 8) halve(b.channel_block, in);
  while (b.total() > limit && b.images > 1) halve(b.images, p.n);
  while (b.total() > limit && b.rows_block > 1) halve(b.rows_block, vertical.count);
  while (b.total() > limit && b.channel_block > 1) halve(b.channel_block, in);
  while (b.total() > limit && b.panel_block > 1) halve(b.panel_block, b.panels);
  return b;
}

/// Defines and local size that all the kernels have.
exec::Launch& configure(exec::Launch& launch, const Tile& tile) {
  return launch.define("VW", tile.width).define("VECTORS", tile.vectors).define("TILE", tile.pixels);
}

/// Forward, or the gradient of the input: the same with inputs and outputs exchanged.
void lower_grid(const Conv2dProblem& p, bool backward, const Grid& grid, exec::Recorder& recorder) {
  const auto in = backward ? p.group_out() : p.group_in(), out = backward ? p.group_in() : p.group_out();
  const auto& [v, h] = grid;
  const Pair image{p.h, p.w}, seen{p.oh, p.ow}, source = backward ? seen : image, target = backward ? image : seen;
  // The gradient of a strided convolution's input is made of several grids.
  const bool dense = !backward || (p.stride.height == 1 && p.stride.width == 1);
  const auto b = cut(p, in, out, v, h, Tile(recorder.config()), recorder.device());
  const auto taps = p.kh * p.kw, row = p.group_in() * taps;  // of the weight
  const auto packed =
      recorder.prepack({Shape{p.groups * b.panels * b.tile.lanes() * in * v.taps * h.taps}, Dtype::f32}, p.weight);
  recorder.kernel("conv2d_pack_cpu", "conv2d_pack_cpu")
      .define("LANES", b.tile.lanes())
      .in("w", p.weight)
      .out("packed", packed)
      .args({in, out, backward ? row : taps, backward ? taps : row, p.kw, v.taps, h.taps, v.kernel_first, h.kernel_first,
             v.kernel_step, h.kernel_step, b.channel_block})
      .range({b.panels, ceil_div(in, b.channel_block), p.groups}, {1, 1, 1});

  auto& launch = configure(recorder.kernel("conv2d_cpu", "conv2d_cpu"), b.tile);
  launch.in("x", backward ? p.y : p.x).in("w", packed);
  if (p.has_bias()) launch.in("bias", p.bias).define("BIAS", 1);
  launch.out("y", backward ? p.x : p.y);
  if (!dense) launch.scattered();
  launch.args({p.n, b.images, p.groups, in, source.height, source.width, out, target.height, target.width, v.count, h.count})
      .args({v.target_first, h.target_first, v.target_step, h.target_step, v.source_step, h.source_step})
      .args({v.taps, h.taps, v.tap_first, h.tap_first, v.tap_step, h.tap_step})
      .args({b.rows_block, b.columns_block, b.panel_block, b.channel_block, b.rows, b.columns, b.pitch})
      .local_memory(static_cast<std::size_t>(b.sums_size) * 4)
      .local_memory(static_cast<std::size_t>(b.channel_block * b.pitch) * 4)
      .range({ceil_div(b.panels, b.panel_block), ceil_div(v.count, b.rows_block) * ceil_div(h.count, b.columns_block),
              ceil_div(p.n, b.images) * p.groups},
             {1, 1, 1})
      .flops(2.0 * static_cast<double>(p.n * p.groups * out * v.count * h.count) * static_cast<double>(in * v.taps * h.taps))
      .detail(p.text());
  pass_slices(launch, p);
  if (dense)
    recorder.epilogue(launch, p.groups * out, p.slices * target.height * target.width);
  else
    recorder.decline_epilogue();
}

/// The blocks of backward weights, and into how many parts of how many images the batch is cut.
struct WeightBlocks : Blocks {
  std::int64_t parts = 1, gradient_size = 0;
  std::int64_t total() const { return Blocks::total() + gradient_size; }
};

WeightBlocks cut_weights(const Conv2dProblem& p, const Tile& tile, const DeviceInfo& device) {
  const auto taps = p.kh * p.kw;
  const auto vertical = forward_axis(p.oh, p.kh, p.stride.height, p.top, p.dilation.height);
  WeightBlocks b{Blocks{.tile = tile}};
  b.panels = ceil_div(p.group_out(), b.tile.lanes());
  b.panel_block = std::min<std::int64_t>(b.panels, 4);
  b.channel_block = even_piece(p.group_in(), std::max<std::int64_t>(8, 288 / taps));
  b.columns_block = block_columns(p.ow, tile);
  b.rows_block = even_piece(p.oh, tile.block / b.columns_block);
  b.columns = forward_axis(p.ow, p.kw, p.stride.width, p.left, p.dilation.width).window(b.columns_block);
  const auto update = [&] {
    b.rows = vertical.window(b.rows_block);
    b.pitch = staged_pitch(b.rows, b.columns);
    const auto tiles = ceil_div(b.channel_block * taps, b.tile.pixels);
    b.sums_size = b.panel_block * (tiles * b.tile.pixels + b.tile.width) * b.tile.lanes();
    b.gradient_size = b.rows_block * b.columns_block * b.tile.lanes();
  };
  const auto halve = [&](std::int64_t& block, std::int64_t total) {
    block = even_piece(total, ceil_div(block, 2));
    update();
  };
  update();
  const auto limit = scratch(device);
  while (b.sums_size > limit / 2 && b.panel_block > 1) halve(b.panel_block, b.panels);
  while (b.total() > limit && b.channel_block > 8) halve(b.channel_block, p.group_in());
  while (b.total() > limit && b.rows_block > 1) halve(b.rows_block, p.oh);
  while (b.total() > limit && b.panel_block > 1) halve(b.panel_block, b.panels);
  while (b.total() > limit && b.channel_block > 1) halve(b.channel_block, p.group_in());
  // Enough work-items: the batch in parts, as long as they take less than 64 MiB, then smaller blocks.
  const auto blocks = [&] { return p.groups * ceil_div(b.panels, b.panel_block) * ceil_div(p.group_in(), b.channel_block); };
  const auto wanted = wanted_items(device);
  const auto most = std::max<std::int64_t>(1, (std::int64_t{16} << 20) / (p.o * p.group_in() * taps));
  b.images = ceil_div(p.n, std::min({ceil_div(wanted, blocks()), most, p.n}));
  b.parts = ceil_div(p.n, b.images);
  while (blocks() * b.parts < wanted && b.panel_block > 1) halve(b.panel_block, b.panels);
  while (blocks() * b.parts < wanted && b.channel_block * taps > 2 * b.tile.pixels && b.channel_block > 1)
    halve(b.channel_block, p.group_in());
  return b;
}

void lower_weights(const Conv2dProblem& p, exec::Recorder& recorder) {
  const auto b = cut_weights(p, Tile(recorder.config()), recorder.device());
  const auto sums = weight_sums(p, b.parts, recorder);
  configure(recorder.kernel("conv2d_backward_weights_cpu", "conv2d_backward_weights_cpu"), b.tile)
      .in("x", p.x)
      .in("g", p.y)
      .out("y", sums)
      .args({p.n, b.images, p.groups, p.group_in(), p.h, p.w, p.group_out(), p.kh, p.kw, p.oh, p.ow})
      .args({p.stride.height, p.stride.width, p.top, p.left, p.dilation.height, p.dilation.width})
      .args({b.rows_block, b.columns_block, b.panel_block, b.channel_block, b.rows, b.columns, b.pitch})
      .local_memory(static_cast<std::size_t>(b.sums_size) * 4)
      .local_memory(static_cast<std::size_t>(b.channel_block * b.pitch) * 4)
      .local_memory(static_cast<std::size_t>(b.gradient_size) * 4)
      .range({ceil_div(b.panels, b.panel_block), ceil_div(p.group_in(), b.channel_block), b.parts * p.groups}, {1, 1, 1})
      .flops(p.flops())
      .detail(p.text());
  if (b.parts > 1) add_up_weight(p, sums, b.parts, recorder);
}

std::vector<Tile> tiles(const Conv2dProblem& p, Conv2dDirection direction, const DeviceInfo& device) {
  const auto pixels = direction == Conv2dDirection::backward_data ? p.h * p.w : p.oh * p.ow;
  return register_tiles(channels(p, direction).out, wanted_pixels, p.n * pixels, device);
}

/// Floats of local memory that a work-item has with this tile.
std::int64_t floats(const Conv2dProblem& p, Conv2dDirection direction, const Tile& tile, const DeviceInfo& device) {
  if (direction == Conv2dDirection::backward_weights) return cut_weights(p, tile, device).total();
  if (conv3d_cpu_serves(p, direction, device)) return conv3d_cpu_floats(p, direction, tile, device);
  const auto [in, out] = channels(p, direction);
  std::int64_t most = 0;
  for (const auto& grid : grids(p, direction == Conv2dDirection::backward_data))
    most = std::max(most, cut(p, in, out, grid.vertical, grid.horizontal, tile, device).total());
  return most;
}

}  // namespace

std::optional<std::string> conv2d_cpu_rejects(const Conv2dProblem& p, Conv2dDirection direction, const DeviceInfo& device) {
  if (!device.prefers_vector_kernels) return "the device is no CPU with vectors";
  if (p.n == 0 || p.c == 0 || p.o == 0 || p.h == 0 || p.w == 0) return "nothing to compute";
  const auto smallest = floats(p, direction, tiles(p, direction, device).front(), device);
  if (smallest > scratch(device)) return fmt::format("its smallest block takes {} KiB of local memory", smallest / 256);
  return std::nullopt;
}

std::vector<exec::Config> conv2d_cpu_configs(const Conv2dProblem& p, Conv2dDirection direction, const DeviceInfo& device) {
  std::vector<exec::Config> result;
  for (const auto& tile : tiles(p, direction, device))
    if (floats(p, direction, tile, device) <= scratch(device)) result.push_back(tile.config());
  return result;
}

void conv2d_cpu(const Conv2dProblem& problem, Conv2dDirection direction, exec::Recorder& recorder) {
  if (direction == Conv2dDirection::backward_weights) return lower_weights(problem, recorder);
  if (conv3d_cpu_serves(problem, direction, recorder.device())) return conv3d_cpu(problem, direction, recorder);
  const bool backward = direction == Conv2dDirection::backward_data;
  const auto all = grids(problem, backward);
  const auto seen = [](const Grid& grid) { return grid.vertical.taps > 0 && grid.horizontal.taps > 0; };
  if (!std::all_of(all.begin(), all.end(), seen)) {
    constexpr std::int64_t chunk = 8192;
    const auto total = problem.n * problem.c * problem.h * problem.w;
    recorder.kernel("conv2d_zero_cpu", "conv2d_zero_cpu")
        .define("VW", vector_width(recorder.device()))
        .out("y", problem.x)
        .args({total, chunk})
        .range({ceil_div(total, chunk)}, {1});
  }
  // A stride and a padding may leave nothing that sees the input.
  if (std::none_of(all.begin(), all.end(), seen)) recorder.decline_epilogue();
  for (const auto& grid : all)
    if (seen(grid)) lower_grid(problem, backward, grid, recorder);
}

}  // namespace clnet::ops
