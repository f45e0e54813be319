// Winograd's F(2x2, 3x3) on GPUs (kernels/conv/conv2d_winograd_gpu.cl): 16 products instead of 36, for kernels of 3x3 with stride
// 1, in tiles like those of kernels/gemm_gpu.clh and in one launch.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "lib/base/env.h"
#include "lib/exec/choose/device_class.h"
#include "lib/ops/conv/conv2d.h"
#include "lib/ops/gemm_gpu.h"
#include "lib/ops/rows.h"

namespace clnet::ops {

namespace {

constexpr std::int64_t tile_out_gpu = 2, products_gpu = 16;

/// A work-group's tile of each of the 16 products, in the order of DeviceClass::tiles, and what the transforms leave of the speed
/// of a product with as many sums per item: multiply-adds are 256 of 418 instructions of a slice, 128 of 284 and 128 of 314.
constexpr std::array rated_tiles{RatedTile{{32, 32, 4, 8, 8}, 0.74}, RatedTile{{16, 32, 4, 4, 8}, 0.60},
                                 RatedTile{{16, 16, 8, 4, 4}, 0.59}};

/// Multiply-adds of a unit while memory, not a cache, moves one element: 64 to 95 by the data sheets of an H100, a 7900 XTX, a
/// 3090.
constexpr double per_element = 80;

/// The direction as a convolution of `source` that makes `target`.
struct Sides {
  std::int64_t in, out, source_height, source_width, height, width, top, left;

  Sides(const Conv2dProblem& p, Conv2dDirection direction)
      : in(p.c), out(p.o), source_height(p.h), source_width(p.w), height(p.oh), width(p.ow), top(p.top), left(p.left) {
    if (direction == Conv2dDirection::forward) return;
    std::swap(in, out);
    std::swap(source_height, height);
    std::swap(source_width, width);
    top = 2 - top;
    left = 2 - left;
  }
  std::int64_t tiles(std::int64_t images) const {
    return images * ceil_div(height, tile_out_gpu) * ceil_div(width, tile_out_gpu);
  }
};

std::int64_t group_items(const GemmTile& tile) { return products_gpu * tile.items(); }
/// The two slices of both operands are as large as what is exchanged, or larger.
std::int64_t local_bytes(const GemmTile& tile) {
  return std::max(2 * tile.k * (tile.m + tile.n), 4 * tile.m / tile.rows * tile.n) * products_gpu * 4;
}

bool takes(const DeviceInfo& device, const GemmTile& tile) {
  return group_items(tile) <= static_cast<std::int64_t>(device.max_work_group_size) &&
         local_bytes(tile) <= static_cast<std::int64_t>(device.local_memory);
}

/// As that of products (lib/ops/gemm_gpu.cpp), in multiply-adds of one unit.
double cost(const Conv2dProblem& p, const Sides& s, const RatedTile& known, std::int64_t parts, const DeviceInfo& device) {
  // The transforms of a group's results take as long as so many channels.
  constexpr std::int64_t last_transform = 5;
  const auto& tile = known.tile;
  const auto groups = ceil_div(s.out, tile.m) * ceil_div(s.tiles(p.n), tile.n) * parts;
  const auto depth = ceil_div(s.in, parts) + 2 * tile.k + last_transform;
  double result = rounds_of_groups(groups, known.held, true, device) *
                  static_cast<double>(products_gpu * tile.m * tile.n * depth) / known.efficiency;
  if (parts > 1)
    result += cost_of_moving(static_cast<double>(p.n * s.out * s.height * s.width * (parts + 1)), per_element, device);
  return result;
}

struct Rated {
  double cost;
  GemmTile tile;
  std::int64_t parts;
};

/// As the device's class has it: its share of instructions, or what local memory allows, to which items also write slices.
RatedTile rated(const RatedTile& known, double share, const exec::DeviceClass& kind) {
  const auto& tile = known.tile;
  const auto rows = static_cast<double>(tile.rows), columns = static_cast<double>(tile.columns);
  const auto across = static_cast<double>(tile.m) / rows, along = static_cast<double>(tile.n) / columns;
  const double words = rows + columns + columns / across + rows / along;
  return {tile, kind.rate(share * known.efficiency, rows * columns / words), known.held};
}

/// Each tile that the device takes with its best split of the channels; the best of these first.
std::vector<Rated> choices(const Conv2dProblem& p, Conv2dDirection direction, const DeviceInfo& device) {
  const Sides s(p, direction);
  const auto& kind = exec::device_class(device);
  const auto most = most_gemm_parts(p.n * s.out * s.height * s.width);
  std::vector<Rated> result;
  for (std::size_t i = 0; i < rated_tiles.size(); ++i) {
    if (!takes(device, rated_tiles[i].tile)) continue;
    const auto known = rated(rated_tiles[i], kind.tiles[i], kind);
    const Rated whole{cost(p, s, known, 1, device), known.tile, 1};
    auto best = whole;
    for (std::int64_t parts = 2; parts <= most && parts * 4 * known.tile.k <= s.in; ++parts)
      if (const auto with = cost(p, s, known, parts, device); with < best.cost) best = {with, known.tile, parts};
    // Another launch for less than the model can tell.
    if (best.cost > 0.95 * whole.cost) best = whole;
    result.push_back(best);
  }
  std::stable_sort(result.begin(), result.end(), [](const Rated& a, const Rated& b) { return a.cost < b.cost; });
  return result;
}

}  // namespace

std::optional<std::string> conv2d_winograd_gpu_rejects(const Conv2dProblem& p, Conv2dDirection direction,
                                                       const DeviceInfo& device) {
  static const bool enabled = env::flag("CLNET_WINOGRAD", true);
  if (!enabled) return "CLNET_WINOGRAD=0";
  if (direction == Conv2dDirection::backward_weights) return "weights are summed directly";
  if (p.n == 0 || p.c == 0 || p.o == 0 || p.h == 0 || p.w == 0 || p.pixels() == 0) return "nothing to compute";
  if (p.kh != 3 || p.kw != 3) return "the kernel is not 3x3";
  if (p.stride.height != 1 || p.stride.width != 1 || p.dilation.height != 1 || p.dilation.width != 1 || p.groups != 1)
    return "it has a stride, a dilation or groups";
  const auto channels = direction == Conv2dDirection::forward ? p.c : p.o;
  if (channels > longest_gemm_sum) return fmt::format("sums of {} channels are made of blocks", channels);
  const auto padded = [](std::int64_t size, std::int64_t tile) { return ceil_div(size, tile) * tile; };
  if (products_gpu * padded(p.o, 32) * padded(p.c, 32) > std::numeric_limits<std::int32_t>::max())
    return "the weights are too many when transformed";
  if (std::none_of(rated_tiles.begin(), rated_tiles.end(), [&](const RatedTile& known) { return takes(device, known.tile); }))
    return fmt::format("the device takes no work-group of {} with {} KiB of local memory", group_items(rated_tiles[0].tile),
                       local_bytes(rated_tiles[0].tile) >> 10);
  return std::nullopt;
}

std::optional<std::string> conv2d_winograd_gpu_declines(const Conv2dProblem& p, Conv2dDirection direction,
                                                        const DeviceInfo& device) {
  if (conv2d_gpu_rejects(p, direction, device)) return std::nullopt;
  // In training the weights are transformed at every step.
  const double transform = cost_of_moving(static_cast<double>((9 + products_gpu) * p.o * p.c), per_element, device);
  if (choices(p, direction, device).front().cost + transform >= conv2d_gpu_cost(p, direction, device))
    return "its tiles and the weights' transform cost more than they save";
  return std::nullopt;
}

std::vector<exec::Config> conv2d_winograd_gpu_configs(const Conv2dProblem& p, Conv2dDirection direction,
                                                      const DeviceInfo& device) {
  std::vector<exec::Config> result;
  for (const auto& [cost, tile, parts] : choices(p, direction, device)) result.push_back(tile.config(parts));
  return result;
}

void conv2d_winograd_gpu(const Conv2dProblem& p, Conv2dDirection direction, exec::Recorder& recorder) {
  const bool forward = direction == Conv2dDirection::forward;
  const Sides s(p, direction);
  const auto tile = GemmTile::of(recorder.config());
  const GemmCut cut(s.in, recorder.config()["parts"], tile.k);
  const auto x = forward ? p.x : p.y, result = forward ? p.y : p.x;
  const auto inner = p.slices * s.height * s.width, total = p.n / p.slices * s.out * inner;

  const auto panels = ceil_div(s.out, tile.m), pairs = panels * tile.m * ceil_div(s.in, tile.k) * tile.k;
  const auto packed = recorder.prepack({Shape{products_gpu * pairs}, Dtype::f32}, p.weight);
  recorder.kernel("conv2d_winograd_pack_gpu", "conv2d_winograd_pack_gpu")
      .define("TM", tile.m)
      .define("TK", tile.k)
      .in("w", p.weight)
      .out("packed", packed)
      .args({s.in, s.out, forward ? 9 : p.c * 9, forward ? p.c * 9 : 9, !forward, pairs})
      .range({pairs}, {64});

  const auto target = cut.whole() ? result : recorder.temporary({Shape{cut.parts, total}, Dtype::f32});
  const auto bias = p.has_bias() ? p.bias : p.weight;
  auto& launch = recorder.kernel("conv2d_winograd_gpu", "conv2d_winograd_gpu");
  tile.define(launch);
  launch.in("w", packed)
      .in("x", x)
      .in("bias", bias)
      .out("y", target)
      .arg(p.has_bias() && cut.whole())
      .args({p.n, s.in, s.source_height, s.source_width, s.out, s.height, s.width, s.top, s.left, cut.part, total})
      .range({panels * group_items(tile), ceil_div(s.tiles(p.n), tile.n), cut.parts}, {group_items(tile), 1, 1})
      .flops(p.flops())
      .detail(fmt::format("{} in {}x{}, channels in {}", p.text(), tile.m, tile.n, cut.parts));
  pass_slices(launch, p);
  if (cut.whole()) {
    recorder.epilogue(launch, s.out, inner);
    return;
  }
  auto& sum = recorder.kernel("gemm_sum_gpu", "gemm_sum_gpu");
  sum.in("x", target)
      .in("bias", bias)
      .out("c", result)
      .arg(p.has_bias())
      .args({total, total, total, s.out, inner, cut.parts})
      .range({total}, {64});
  recorder.epilogue(sum, s.out, inner);
}

}  // namespace clnet::ops
