// The gradient of the weight of a 1x1 convolution for CPUs (kernels/conv/conv2d_backward_weights_pointwise_cpu.cl).
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "lib/exec/choose/device_class.h"
#include "lib/ops/conv/conv2d_cpu.h"

namespace clnet::ops {

namespace {

/// Sums in registers: of each of `outs` outputs with each of `ins` inputs.
struct SumTile {
  std::int64_t width, outs, ins;

  SumTile(std::int64_t lanes, std::int64_t of_outs, std::int64_t of_ins) : width(lanes), outs(of_outs), ins(of_ins) {}
  explicit SumTile(const exec::Config& config) : width(config["lanes"]), outs(config["outs"]), ins(config["ins"]) {}
};

/// What fits into 32 registers or 16, with the values that are multiplied, and has no more outputs and inputs than there are.
std::vector<SumTile> tiles(const Conv2dProblem& p, std::int64_t width) {
  std::vector<SumTile> result;
  if (width == 16)
    result = {{16, 4, 6}, {16, 5, 5}, {16, 3, 8}, {16, 2, 12}, {16, 6, 3}, {16, 8, 2}, {16, 12, 1}, {16, 1, 12}, {16, 1, 1}};
  else
    result = {{width, 3, 4}, {width, 2, 6}, {width, 4, 2}, {width, 6, 1}, {width, 1, 6}, {width, 1, 1}};
  std::erase_if(result, [&](const SumTile& tile) { return tile.outs > p.o || tile.ins > p.c; });
  return result;
}

/// Cycles per vector of pixels by a model: multiply-adds, and loads that the caches feed half as fast.
double cost(const Conv2dProblem& p, const SumTile& tile, const DeviceInfo& device) {
  const auto all = ceil_div(p.o, tile.outs) * ceil_div(p.c, tile.ins);
  const auto each = static_cast<double>(2 * tile.outs * tile.ins + tile.outs + tile.ins);
  return static_cast<double>(all) * each * exec::device_class(device).instruction(tile.width) *
         static_cast<double>(ceil_div(p.pixels(), tile.width));
}

/// Floats of a tile's sums in local memory.
std::int64_t tile_floats(const SumTile& tile) { return ceil_div(tile.outs * tile.ins, tile.width) * tile.width; }

struct PointwiseWeightBlocks {
  std::int64_t images, outs, ins, group, chunk;
  std::int64_t parts, floats;
  bool operator==(const PointwiseWeightBlocks&) const = default;
};

/// Pixels at a time, of whose inputs so many KiB are in the second-level cache, and KiB of the sums of a work-item.
constexpr std::int64_t likely_chunk = 3136;
constexpr std::int64_t most_inputs = 384, most_sums = 160;

PointwiseWeightBlocks cut(const Conv2dProblem& p, const SumTile& tile, std::int64_t chunk, const DeviceInfo& device) {
  PointwiseWeightBlocks b{};
  // Parts of the batch that are no smaller than a chunk, and parts of the outputs.
  const auto wanted = wanted_items(device), parts = std::clamp<std::int64_t>(p.n * p.pixels() / chunk, 1, std::min(wanted, p.n));
  b.images = ceil_div(p.n, parts);
  b.parts = ceil_div(p.n, b.images);
  const auto row = ceil_div(p.c, tile.ins) * tile_floats(tile), all = ceil_div(p.o, tile.outs);
  const auto most = std::min((most_sums << 10) / 4 / row, ceil_div(all, ceil_div(wanted, b.parts)));
  b.outs = even_piece(all, most) * tile.outs;
  b.floats = b.outs / tile.outs * row;
  b.group = std::clamp<std::int64_t>(chunk / p.pixels(), 1, b.images);
  // Whole vectors, but for the last chunk.
  const auto vectors = p.pixels() / tile.width, pieces = ceil_div(p.pixels(), chunk);
  b.chunk = pieces == 1 ? p.pixels() : ceil_div(vectors, pieces) * tile.width;
  b.ins = even_piece(ceil_div(p.c, tile.ins), (most_inputs << 10) / 4 / (b.group * b.chunk * tile.ins)) * tile.ins;
  return b;
}

}  // namespace

std::optional<std::string> conv2d_backward_weights_pointwise_cpu_rejects(const Conv2dProblem& p, const DeviceInfo& device) {
  if (p.groups != 1) return "it has groups";
  const auto width = vector_width(device);
  if (p.pixels() < width) return "the pixels of an image fill no vector";
  if (const auto floats = cut(p, tiles(p, width).front(), likely_chunk, device).floats; floats > scratch(device))
    return fmt::format("its smallest block takes {} KiB of local memory", floats / 256);
  return std::nullopt;
}

std::optional<std::string> conv2d_backward_weights_pointwise_cpu_declines(const Conv2dProblem& p) {
  // Measured: rows of 14x14 pixels, most of which begin within a cache line, take up to twice as long as by vectors of channels.
  constexpr std::int64_t long_row = 512;
  if (p.pixels() < long_row) return "so few pixels are summed faster by vectors of channels";
  return std::nullopt;
}

std::vector<exec::Config> conv2d_backward_weights_pointwise_cpu_configs(const Conv2dProblem& p, const DeviceInfo& device) {
  std::vector<exec::Config> result;
  const auto add = [&](const SumTile& tile, std::int64_t chunk) {
    if (p.pixels() >= tile.width && cut(p, tile, chunk, device).floats <= scratch(device))
      result.push_back({{"lanes", tile.width}, {"outs", tile.outs}, {"ins", tile.ins}, {"chunk", chunk}});
  };
  for (const auto width : vector_widths(device)) {
    auto found = tiles(p, width);
    std::stable_sort(found.begin(), found.end(),
                     [&](const SumTile& a, const SumTile& b) { return cost(p, a, device) < cost(p, b, device); });
    for (const auto& tile : found) add(tile, likely_chunk);
  }
  const SumTile first(result.front());
  for (const auto chunk : {likely_chunk / 2, likely_chunk * 2})
    if (cut(p, first, chunk, device) != cut(p, first, likely_chunk, device)) add(first, chunk);
  return result;
}

void conv2d_backward_weights_pointwise_cpu(const Conv2dProblem& p, exec::Recorder& recorder) {
  const SumTile tile(recorder.config());
  const auto b = cut(p, tile, recorder.config()["chunk"], recorder.device());
  const auto sums = weight_sums(p, b.parts, recorder);
  recorder.kernel("conv2d_backward_weights_pointwise_cpu", "conv2d_backward_weights_pointwise_cpu")
      .define("VW", tile.width)
      .define("OUTS", tile.outs)
      .define("INS", tile.ins)
      .in("x", p.x)
      .in("g", p.y)
      .out("y", sums)
      .args({p.n, p.c, p.o, p.pixels(), b.images, b.outs, b.ins, b.group, b.chunk})
      .local_memory(static_cast<std::size_t>(b.floats) * 4)
      .range({ceil_div(p.o, b.outs), b.parts}, {1, 1})
      .flops(p.flops())
      .detail(p.text());
  if (b.parts > 1) add_up_weight(p, sums, b.parts, recorder);
}

}  // namespace clnet::ops
