// Convolution and its gradients on GPUs: products in tiles whose operands are gathered from the images as they lie.
#include "lib/ops/conv/conv2d_gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "lib/ops/conv/conv2d.h"
#include "lib/ops/gemm_gpu.h"
#include "lib/ops/rows.h"

namespace clnet::ops {

namespace {

/// The gradient of the input is a product for each remainder of a pixel's place by the stride.
std::int64_t phases(const Conv2dProblem& p) { return p.stride.height * p.stride.width; }

/// The most taps that a phase has.
std::int64_t most_taps(const Conv2dProblem& p) { return ceil_div(p.kh, p.stride.height) * ceil_div(p.kw, p.stride.width); }

/// Whether some phases have fewer taps than others, or none (kernels/conv/conv2d_phases.clh).
bool uneven(const Conv2dProblem& p) { return p.kh % p.stride.height != 0 || p.kw % p.stride.width != 0; }

/// Channels that k runs over, forward and to the input's gradient.
std::int64_t summed_channels(const Conv2dProblem& p, Conv2dDirection direction) {
  return direction == Conv2dDirection::forward ? p.group_in() : p.group_out();
}

}  // namespace

// Filling up the last slice of a tap with nothing must not cost much.
bool blocked(const Conv2dProblem& p, Conv2dDirection direction, const GemmTile& tile) {
  const auto channels = summed_channels(p, direction);
  return direction != Conv2dDirection::backward_weights && (channels % tile.k == 0 || channels >= 4 * tile.k);
}

namespace {

/// The extents as the kernel counts them.
GemmExtents filled(const Conv2dProblem& p, Conv2dDirection direction, const GemmTile& tile, std::int64_t items) {
  auto e = conv2d_extents(p, direction);
  if (direction == Conv2dDirection::backward_weights) {
    const auto fetched = tile.n * tile.k / items;
    e.n = ceil_div(p.group_in(), fetched) * fetched * p.kh * p.kw;
  } else if (blocked(p, direction, tile)) {
    const auto channels = summed_channels(p, direction);
    e.k = e.k / channels * ceil_div(channels, tile.k) * tile.k;
  }
  return e;
}

/// As wide and as deep as there are.
constexpr GemmTile widest_tile{128, 128, 16, 0, 0};

/// The lengths along k of each phase's product, up to whole slices; forward there is one.
std::vector<std::int64_t> lengths_of_phases(const Conv2dProblem& p, Conv2dDirection direction, const GemmTile& tile) {
  const auto channels = summed_channels(p, direction);
  const auto along_k = [&](std::int64_t taps) {
    const auto slices = blocked(p, direction, tile) ? ceil_div(channels, tile.k) * taps : ceil_div(channels * taps, tile.k);
    return slices * tile.k;
  };
  if (direction == Conv2dDirection::forward) return {along_k(p.kh * p.kw)};
  std::vector<std::int64_t> result;
  for (std::int64_t phase = 0; phase < phases(p); ++phase)
    result.push_back(along_k(ceil_div(p.kh - phase / p.stride.width, p.stride.height) *
                             ceil_div(p.kw - phase % p.stride.width, p.stride.width)));
  return result;
}

/// Elements of the weight in the order of the kernel, which fetches a slice ahead.
std::int64_t packed_size(const Conv2dProblem& p, Conv2dDirection direction, const GemmTile& tile) {
  const auto lengths = lengths_of_phases(p, direction, tile);
  const auto all = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  return (p.groups * ceil_div(conv2d_extents(p, direction).m, tile.m) * all + tile.k) * tile.m;
}

exec::Ref packed_weight(const Conv2dProblem& p, Conv2dDirection direction, const PackedWeight& how, const GemmTile& tile,
                        exec::Recorder& recorder) {
  const bool forward = direction == Conv2dDirection::forward;
  const auto rows = conv2d_extents(p, direction).m, taps = p.kh * p.kw, filter = p.group_in() * taps;
  const auto lengths = lengths_of_phases(p, direction, tile);
  const auto longest = *std::max_element(lengths.begin(), lengths.end());
  const auto result = recorder.prepack({Shape{packed_size(p, direction, tile)}, how.dtype}, p.weight);
  auto& launch = recorder.kernel("conv2d_pack_gpu", "conv2d_pack_gpu");
  if (how.along_k) launch.define("ALONG_K", 1);
  launch.define("TM", tile.m)
      .define("TK", tile.k)
      .in("w", p.weight)
      .out("packed", result)
      .args({p.groups, rows, summed_channels(p, direction), forward ? filter : taps, forward ? taps : filter})
      .args({p.kh, p.kw, forward ? 1 : p.stride.height, forward ? 1 : p.stride.width, blocked(p, direction, tile)})
      .range({(longest + tile.k) * tile.m, ceil_div(rows, tile.m), p.groups * static_cast<std::int64_t>(lengths.size())},
             {64, 1, 1})
      .detail(p.text());
  return result;
}

/// Parts of the products of one group in a launch that begins at `first` along k, as clnet_phase_parts() counts them.
std::int64_t parts_of_phases(const Conv2dProblem& p, std::int64_t k, std::int64_t first, const GemmCut& cut) {
  std::int64_t result = 0;
  for (std::int64_t phase = 0; phase < phases(p); ++phase) {
    const auto height = ceil_div(p.kh - phase / p.stride.width, p.stride.height);
    const auto width = ceil_div(p.kw - phase % p.stride.width, p.stride.width);
    const auto left = k / most_taps(p) * (height * width) - first;
    result += cut.whole() ? 1 : left > 0 ? std::min(cut.parts, ceil_div(left, cut.part)) : 0;
  }
  return result;
}

/// The launches, each of which begins with the operands that `start` gives it, told whether it adds to the result; the last one.
template <class Start>
exec::Launch& multiply(const Conv2dProblem& p, Conv2dDirection direction, const TiledConv& kernel, const GemmTile& tile,
                       const GemmCut& cut, std::int64_t size, exec::Recorder& recorder, const Start& start) {
  const auto e = filled(p, direction, tile, kernel.items);
  const bool phased = direction == Conv2dDirection::backward_data && uneven(p);
  for (std::int64_t round = 0;; ++round) {
    const auto of_group = phased ? parts_of_phases(p, e.k, round * cut.part, cut) : 0;
    const auto products = phased ? p.groups * of_group : e.batch * cut.parts;
    auto& launch = recorder.kernel(kernel.name, kernel.name);
    for (const auto& name : kernel.defines) launch.define(name, 1);
    if (round > 0) launch.define("ADD", 1);
    start(launch, round > 0);
    tile.define(launch);
    if (blocked(p, direction, tile)) launch.define("BLOCKED", 1).define("RAGGED", summed_channels(p, direction) % tile.k != 0);
    launch.define("KH", p.kh)
        .define("KW", p.kw)
        .define("SH", p.stride.height)
        .define("SW", p.stride.width)
        .define("DH", p.dilation.height)
        .define("DW", p.dilation.width)
        .args({p.n, p.c, p.h, p.w, p.o, p.oh, p.ow, p.group_in(), p.group_out(), p.top, p.left})
        .args({e.k, round * cut.part, cut.part, cut.parts, size})
        .range({ceil_div(e.n, tile.n) * kernel.items, ceil_div(e.m, tile.m), products}, {kernel.items, 1, 1})
        .flops(p.flops() / static_cast<double>(cut.rounds))
        .detail(fmt::format("{} in {}x{}, k in {}", p.text(), tile.m, tile.n, cut.parts * cut.rounds));
    if (phased) launch.arg(of_group);
    pass_slices(launch, p);
    if (round + 1 == cut.rounds) return launch;
  }
}

}  // namespace

GemmExtents conv2d_extents(const Conv2dProblem& p, Conv2dDirection direction) {
  const auto taps = p.kh * p.kw;
  switch (direction) {
    case Conv2dDirection::forward: return {p.group_out(), p.n * p.pixels(), p.group_in() * taps, p.groups};
    case Conv2dDirection::backward_data:
      return {p.group_in(), p.n * ceil_div(p.h, p.stride.height) * ceil_div(p.w, p.stride.width), p.group_out() * most_taps(p),
              p.groups * phases(p), static_cast<double>(p.kh * p.kw) / static_cast<double>(most_taps(p) * phases(p))};
    case Conv2dDirection::backward_weights: break;
  }
  return {p.group_out(), p.group_in() * taps, p.n * p.pixels(), p.groups};
}

std::optional<std::string> conv2d_tiles_reject(const Conv2dProblem& p, Conv2dDirection direction) {
  if (p.n == 0 || p.c == 0 || p.o == 0 || p.h == 0 || p.w == 0) return "nothing to compute";
  const bool mixed = (p.stride.height > 1 && p.dilation.height > 1) || (p.stride.width > 1 && p.dilation.width > 1);
  if (direction == Conv2dDirection::backward_data && mixed) return "taps that are apart do not follow one another in strides";
  constexpr std::int64_t most_phases = 64;
  if (direction == Conv2dDirection::backward_data && phases(p) > most_phases)
    return "so large a stride leaves few taps to each pixel";
  return std::nullopt;
}

std::optional<std::string> conv2d_gpu_rejects(const Conv2dProblem& p, Conv2dDirection direction, const DeviceInfo& device) {
  if (!has_gemm_tile(device)) return "the device takes no work-group of 64 with a tile in its local memory";
  return conv2d_tiles_reject(p, direction);
}

std::optional<std::string> conv2d_gpu_declines(const Conv2dProblem& p, Conv2dDirection direction, const DeviceInfo&) {
  constexpr std::int64_t few = 4;
  const auto e = conv2d_extents(p, direction);
  if (e.m < few || (direction == Conv2dDirection::backward_weights && e.n < few))
    return "groups of so few channels leave tiles empty";
  return std::nullopt;
}

std::vector<exec::Config> conv2d_gpu_configs(const Conv2dProblem& p, Conv2dDirection direction, const DeviceInfo& device) {
  return gemm_configs(conv2d_extents(p, direction), device);
}

double conv2d_gpu_cost(const Conv2dProblem& p, Conv2dDirection direction, const DeviceInfo& device) {
  return gemm_cost(conv2d_extents(p, direction), device);
}

void record_conv2d_tiles(const Conv2dProblem& p, Conv2dDirection direction, exec::Recorder& recorder, const TiledConv& kernel) {
  const auto tile = GemmTile::of(recorder.config());
  const bool in_slices = kernel.packed || blocked(p, direction, tile);
  const GemmCut cut(filled(p, direction, tile, kernel.items).k, recorder.config()["parts"], in_slices ? tile.k : 1);
  const auto place = [](exec::Launch& launch, std::string_view name, exec::Ref target, bool add) {
    add ? launch.inout(name, target) : launch.out(name, target);
  };
  if (direction == Conv2dDirection::backward_weights) {
    const auto total = p.weight_size();
    const auto sums = cut.rounds > 1 ? recorder.temporary({Shape{total}, Dtype::f32}) : weight_sums(p, cut.parts, recorder);
    multiply(p, direction, kernel, tile, cut, total, recorder, [&](exec::Launch& launch, bool add) {
      launch.define("WEIGHTS", 1).in("y", p.y).in("x", p.x);
      place(launch, "w", sums, add);
    });
    if (!cut.whole()) add_up_weight(p, sums, cut.parts, recorder);
    return;
  }
  const bool forward = direction == Conv2dDirection::forward;
  const auto result = forward ? p.y : p.x;
  const auto channels = forward ? p.o : p.c, inner = forward ? p.channel_size() : p.h * p.w,
             total = p.n / p.slices * channels * inner;
  const auto target = cut.whole() ? result : recorder.temporary({Shape{cut.parts, total}, Dtype::f32});
  const auto bias = p.has_bias() ? p.bias : p.weight;
  const auto weight = kernel.packed ? packed_weight(p, direction, *kernel.packed, tile, recorder) : p.weight;
  auto& last = multiply(p, direction, kernel, tile, cut, total, recorder, [&](exec::Launch& launch, bool add) {
    launch.define(forward ? "FORWARD" : "DATA", 1).in("w", weight);
    if (kernel.packed) launch.define("PACKED", 1);
    if (forward)
      launch.in("x", p.x).in("bias", bias);
    else
      launch.in("y", p.y);
    place(launch, forward ? "y" : "x", target, add);
    if (forward) launch.arg(p.has_bias() && cut.whole());
  });
  if (cut.whole()) {
    recorder.epilogue(last, channels, inner);
    return;
  }
  if (!forward && uneven(p)) {
    auto& sum = recorder.kernel("conv2d_sum_phases_gpu", "conv2d_sum_phases_gpu");
    sum.define("KH", p.kh)
        .define("KW", p.kw)
        .define("SH", p.stride.height)
        .define("SW", p.stride.width)
        .in("x", target)
        .out("y", result)
        .args({total, channels, p.h, p.w, p.top, p.left, filled(p, direction, tile, kernel.items).k, cut.part, cut.parts})
        .range({total}, {64});
    recorder.epilogue(sum, channels, inner);
    return;
  }
  auto& sum = recorder.kernel("gemm_sum_gpu", "gemm_sum_gpu");
  sum.in("x", target)
      .in("bias", bias)
      .out("c", result)
      .arg(p.has_bias() && forward)
      .args({total, total, total, channels, inner, cut.parts})
      .range({total}, {64});
  recorder.epilogue(sum, channels, inner);
}

std::optional<std::string> packed_weight_rejects(const Conv2dProblem& p, Conv2dDirection direction) {
  if (direction == Conv2dDirection::backward_weights) return "the weight is what it makes";
  if (packed_size(p, direction, widest_tile) > std::numeric_limits<std::int32_t>::max())
    return "the weights are too many when packed";
  return std::nullopt;
}

std::optional<std::string> conv2d_packed_gpu_rejects(const Conv2dProblem& p, Conv2dDirection direction,
                                                     const DeviceInfo& device) {
  if (auto reason = conv2d_gpu_rejects(p, direction, device)) return reason;
  return packed_weight_rejects(p, direction);
}

std::optional<std::string> conv2d_packed_gpu_declines(const Conv2dProblem& p, Conv2dDirection direction,
                                                      const DeviceInfo& device) {
  if (auto reason = conv2d_gpu_declines(p, direction, device)) return reason;
  if (p.readers.lasting) return std::nullopt;
  // Else it is packed in every run. So much of a product's instructions is spared at least
  // (bench/notebook/2026-11-gpu-kernels.md). Another launch is for no less than the model can tell.
  constexpr double spared = 0.03, per_element = 64;
  const auto tile = GemmTile::of(conv2d_gpu_configs(p, direction, device).front());
  const auto packing =
      cost_of_moving(static_cast<double>(p.weight_size() + packed_size(p, direction, tile)), per_element, device);
  if (static_cast<double>(p.readers.alike) * spared * conv2d_gpu_cost(p, direction, device) <= 2 * packing)
    return "packing the weight costs more than it spares";
  return std::nullopt;
}

void conv2d_packed_gpu(const Conv2dProblem& p, Conv2dDirection direction, exec::Recorder& recorder) {
  record_conv2d_tiles(p, direction, recorder,
                      {.name = "conv2d_gpu", .items = GemmTile::of(recorder.config()).items(), .packed = {{Dtype::f32, false}}});
}

void conv2d_gpu(const Conv2dProblem& p, Conv2dDirection direction, exec::Recorder& recorder) {
  record_conv2d_tiles(p, direction, recorder, {.name = "conv2d_gpu", .items = GemmTile::of(recorder.config()).items()});
}

}  // namespace clnet::ops
