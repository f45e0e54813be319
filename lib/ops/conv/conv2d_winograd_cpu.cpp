// Winograd's F(4x4, 3x3) for CPUs (kernels/conv/conv2d_winograd_cpu.cl): a quarter of the direct convolution's products, for
// kernels of 3x3 with stride 1. Tiles of inputs are transformed in the second-level cache where they fit there, else by a launch
// before.
#include "lib/ops/conv/conv2d_winograd_cpu.h"

#include <fmt/format.h>

#include "lib/base/env.h"
#include "lib/ops/conv/conv2d_cpu.h"

namespace clnet::ops {

namespace {

/// How the work is cut; RB and PB are the kernels' names for the blocks.
struct Cut {
  Tile tile;
  std::int64_t in = 0, out = 0, height = 0, width = 0;  ///< channels of the direction; the size of what is made
  std::int64_t source_height = 0, source_width = 0;     ///< and of what it is made from
  std::int64_t top = 0, left = 0;                       ///< padding of the source
  std::int64_t tile_rows = 0, tile_columns = 0, panels = 0;
  std::int64_t images = 1, rows_block = 1, panel_block = 1;
  bool fused = true;

  std::int64_t batch = 0, lanes_in = 0;  ///< images; input channels rounded up to whole vectors
  std::int64_t tiles() const { return images * rows_block * tile_columns; }
  /// From one product's values to the next: not a multiple of a cache's way, lest the 36 fall into the same lines.
  std::int64_t pitch() const { return (ceil_div((fused ? tiles() : batch * tile_rows * tile_columns) * lanes_in, 16) | 1) * 16; }
  // Scratch memory, in floats.
  std::int64_t products_size() const { return winograd_products * ceil_div(tiles(), tile.pixels) * tile.pixels * tile.lanes(); }
  std::int64_t pixels_size() const { return (winograd_out * rows_block * width + tile.width) * tile.width; }
  std::int64_t staged_size() const { return (winograd_out * rows_block + 2) * (winograd_out * tile_columns + 2) * tile.width; }
  std::int64_t total() const {
    return products_size() + pixels_size() + (fused ? winograd_products * pitch() + staged_size() : 0);
  }
  std::int64_t items() const { return ceil_div(batch, images) * ceil_div(tile_rows, rows_block) * ceil_div(panels, panel_block); }
};

/// Three quarters of the second-level cache.
std::int64_t room(const DeviceInfo& device) {
  return std::min<std::int64_t>(384 << 10, static_cast<std::int64_t>(device.local_memory / 4 * 3)) / 4;
}

/// Products of fewer tiles than that wait for the weights.
constexpr std::int64_t enough_tiles = 12;
/// Some ten microseconds: of fewer, Winograd's transforms and its second launch take what its products spare.
constexpr double fewest_flops = 2e6;
/// What a work-item takes at a time at most, where nothing else was chosen.
constexpr std::int64_t most_tiles = 48;

/// Adds rows of tiles, then images, as long as there is room.
void grow(Cut& cut, std::int64_t limit, std::int64_t wanted) {
  const auto try_with = [&](std::int64_t images, std::int64_t rows) {
    auto next = cut;
    next.images = images;
    next.rows_block = rows;
    if (next.tiles() > cut.tile.block || next.total() > limit || next.items() < wanted) return false;
    cut = next;
    return true;
  };
  while (cut.rows_block < cut.tile_rows && try_with(1, cut.rows_block + 1)) {
  }
  if (cut.rows_block == cut.tile_rows)
    while (cut.images < cut.batch && try_with(cut.images + 1, cut.rows_block)) {
    }
  cut.rows_block = even_piece(cut.tile_rows, cut.rows_block);
}

Cut cut(const Conv2dProblem& p, bool backward, const Tile& tile, const DeviceInfo& device) {
  Cut c{.tile = tile};
  c.batch = p.n;
  c.in = backward ? p.o : p.c;
  c.out = backward ? p.c : p.o;
  c.height = backward ? p.h : p.oh;
  c.width = backward ? p.w : p.ow;
  c.source_height = backward ? p.oh : p.h;
  c.source_width = backward ? p.ow : p.w;
  c.top = backward ? 2 - p.top : p.top;
  c.left = backward ? 2 - p.left : p.left;
  c.lanes_in = ceil_div(c.in, c.tile.width) * c.tile.width;
  c.tile_rows = ceil_div(c.height, winograd_out);
  c.tile_columns = ceil_div(c.width, winograd_out);
  c.panels = ceil_div(c.out, c.tile.lanes());
  c.images = c.rows_block = 1;
  c.panel_block = c.panels;
  const auto limit = room(device), wanted = wanted_items(device);
  grow(c, limit, wanted);
  if (c.total() > limit || c.tiles() < enough_tiles) {
    c.fused = false;
    c.images = c.rows_block = 1;
    c.panel_block = 1;
    grow(c, limit, wanted);
    while (c.panel_block < c.panels && c.items() >= 2 * wanted)
      c.panel_block = even_piece(c.panels, ceil_div(c.panels, ceil_div(c.panels, c.panel_block) - 1));
  } else {
    while (c.items() < wanted && c.panel_block > 1) c.panel_block = even_piece(c.panels, ceil_div(c.panel_block, 2));
  }
  return c;
}

std::vector<Tile> tiles(const Conv2dProblem& p, bool backward, const DeviceInfo& device) {
  const auto height = backward ? p.h : p.oh, width = backward ? p.w : p.ow;
  return register_tiles(backward ? p.c : p.o, most_tiles, p.n * ceil_div(height, winograd_out) * ceil_div(width, winograd_out),
                        device);
}

}  // namespace

std::optional<std::string> conv2d_winograd_cpu_rejects(const Conv2dProblem& p, Conv2dDirection direction,
                                                       const DeviceInfo& device) {
  static const bool enabled = env::flag("CLNET_WINOGRAD", true);
  if (!enabled) return "CLNET_WINOGRAD=0";
  if (!device.prefers_vector_kernels) return "the device is no CPU with vectors";
  if (p.n == 0 || p.c == 0 || p.o == 0 || p.h == 0 || p.w == 0) return "nothing to compute";
  if (p.kh != 3 || p.kw != 3) return "the kernel is not 3x3";
  if (p.stride.height != 1 || p.stride.width != 1 || p.dilation.height != 1 || p.dilation.width != 1 || p.groups != 1)
    return "it has a stride, a dilation or groups";
  if (direction == Conv2dDirection::backward_weights) return conv2d_backward_weights_winograd_cpu_rejects(p, device);
  const bool backward = direction == Conv2dDirection::backward_data;
  const auto c = cut(p, backward, tiles(p, backward, device).front(), device);
  if (c.top < 0 || c.left < 0 || c.left + c.source_width > winograd_out * c.tile_columns + 2)
    return "the padding is larger than the kernel";
  if (c.panels * winograd_products * c.in * c.tile.lanes() > winograd_indices) return "the weights are too many when transformed";
  if (c.total() > room(device)) return fmt::format("its smallest block takes {} KiB of local memory", c.total() / 256);
  return std::nullopt;
}

std::optional<std::string> conv2d_winograd_cpu_declines(const Conv2dProblem& p, Conv2dDirection direction,
                                                        const DeviceInfo& device) {
  if (direction == Conv2dDirection::backward_weights) return conv2d_backward_weights_winograd_cpu_declines(p, device);
  if (p.flops() < fewest_flops) return "directly it takes some microseconds";
  return std::nullopt;
}

std::vector<exec::Config> conv2d_winograd_cpu_configs(const Conv2dProblem& p, Conv2dDirection direction,
                                                      const DeviceInfo& device) {
  if (direction == Conv2dDirection::backward_weights) return conv2d_backward_weights_winograd_cpu_configs(device);
  const bool backward = direction == Conv2dDirection::backward_data;
  std::vector<exec::Config> result;
  for (const auto& tile : tiles(p, backward, device))
    if (cut(p, backward, tile, device).total() <= room(device)) result.push_back(tile.config());
  return result;
}

void conv2d_winograd_cpu(const Conv2dProblem& p, Conv2dDirection direction, exec::Recorder& recorder) {
  if (direction == Conv2dDirection::backward_weights) return conv2d_backward_weights_winograd_cpu(p, recorder);
  const bool backward = direction == Conv2dDirection::backward_data;
  const auto c = cut(p, backward, Tile(recorder.config()), recorder.device());
  const auto in_stride = backward ? p.c * 9 : 9, out_stride = backward ? 9 : p.c * 9;
  const auto x = backward ? p.y : p.x, y = backward ? p.x : p.y;
  const auto configure = [&](exec::Launch& launch) -> exec::Launch& {
    return launch.define("VW", c.tile.width).define("VECTORS", c.tile.vectors).define("TILE", c.tile.pixels);
  };

  const auto packed = recorder.prepack({Shape{c.panels * winograd_products * c.in * c.tile.lanes()}, Dtype::f32}, p.weight);
  const auto block = even_piece(c.in, ceil_div(c.in * c.panels, wanted_items(recorder.device())));
  configure(recorder.kernel("conv2d_winograd_pack_cpu", "conv2d_winograd_pack_cpu"))
      .in("w", p.weight)
      .out("packed", packed)
      .args({c.in, c.out, in_stride, out_stride, backward, block})
      .range({c.panels, ceil_div(c.in, block)}, {1, 1});

  auto values = x;
  if (!c.fused) {
    values = recorder.temporary({Shape{winograd_products * c.pitch()}, Dtype::f32});
    configure(recorder.kernel("conv2d_winograd_input_cpu", "conv2d_winograd_input_cpu"))
        .in("x", x)
        .out("values", values)
        .args({c.batch, c.images, c.in, c.source_height, c.source_width, c.tile_rows, c.tile_columns, c.rows_block, c.top, c.left,
               c.pitch(), c.lanes_in})
        .local_memory(static_cast<std::size_t>(c.staged_size()) * 4)
        .range({ceil_div(c.tile_rows, c.rows_block), ceil_div(c.batch, c.images), c.lanes_in / c.tile.width}, {1, 1, 1})
        .detail(p.text());
  }

  auto& launch = configure(recorder.kernel("conv2d_winograd_cpu", "conv2d_winograd_cpu"));
  launch.in("x", values).in("w", packed);
  if (p.has_bias()) launch.in("bias", p.bias).define("BIAS", 1);
  launch.out("y", y)
      .args({c.batch, c.images, c.in, c.source_height, c.source_width, c.out, c.height, c.width, c.tile_rows, c.tile_columns,
             c.rows_block, c.panel_block, c.top, c.left, c.pitch(), c.lanes_in})
      .local_memory(static_cast<std::size_t>(c.products_size()) * 4)
      .local_memory(static_cast<std::size_t>(c.pixels_size()) * 4);
  if (c.fused)
    launch.define("FUSED", 1)
        .local_memory(static_cast<std::size_t>(winograd_products * c.pitch()) * 4)
        .local_memory(static_cast<std::size_t>(c.staged_size()) * 4);
  launch.range({ceil_div(c.panels, c.panel_block), ceil_div(c.tile_rows, c.rows_block), ceil_div(c.batch, c.images)}, {1, 1, 1})
      .flops(p.flops())
      .detail(fmt::format("{} in {} tiles of {}, {} panels of {}", p.text(), c.tiles(), c.batch * c.tile_rows * c.tile_columns,
                          c.panel_block, c.panels));
  pass_slices(launch, p);
  recorder.epilogue(launch, c.out, p.slices * c.height * c.width);
}

}  // namespace clnet::ops
