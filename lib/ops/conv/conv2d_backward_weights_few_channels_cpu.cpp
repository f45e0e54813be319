// The gradient of the weight of convolutions of few input channels, as of first layers, for CPUs
// (kernels/conv/conv2d_backward_weights_few_channels_cpu.cl): vectors of pixels, as vectors of channels need the output's
// gradient transposed.
#include <fmt/format.h>

#include "lib/exec/choose/device_class.h"
#include "lib/ops/conv/conv2d_cpu.h"

namespace clnet::ops {

namespace {

/// Sums in registers: `outs` filters by `taps` weights of each.
struct FewSums {
  std::int64_t lanes, outs, taps, window;
  FewSums(std::int64_t width, std::int64_t filters, std::int64_t weights, std::int64_t kib)
      : lanes(width), outs(filters), taps(weights), window(kib) {}
  explicit FewSums(const exec::Config& config) : FewSums(config["lanes"], config["outs"], config["taps"], config["window"]) {}
  exec::Config config() const { return {{"lanes", lanes}, {"outs", outs}, {"taps", taps}, {"window", window}}; }
};

struct FewBlocks {
  std::int64_t pitch, rows_block, rows, images, parts, filters, splits, taps, staged, sums;
  std::int64_t floats() const { return staged + taps + sums; }
};

FewBlocks cut(const Conv2dProblem& p, const FewSums& sums, const DeviceInfo& device) {
  const auto grid = grids(p, false).front();
  FewBlocks b{};
  b.pitch = row_pitch(grid.horizontal);
  b.rows_block = rows_of(grid.vertical, b.pitch, p.group_in(), sums.window);
  b.rows = grid.vertical.window(b.rows_block);
  b.staged = p.group_in() * b.rows * b.pitch + sums.lanes;
  b.taps = ceil_div(p.group_in() * p.kh * p.kw, sums.taps) * sums.taps;
  const auto wanted = wanted_items(device);
  b.images = ceil_div(p.n, std::min(ceil_div(wanted, p.groups), p.n));
  b.parts = ceil_div(p.n, b.images);
  // The sums have to fit, and where images are too few for all threads, filters are shared among them.
  const auto fit = std::max<std::int64_t>(1, (scratch(device) - b.staged - b.taps) / (sums.outs * b.taps * sums.lanes));
  const auto shared = ceil_div(p.group_out(), ceil_div(wanted, p.groups * b.parts));
  b.filters = even_piece(ceil_div(p.group_out(), sums.outs), std::min(fit, ceil_div(shared, sums.outs))) * sums.outs;
  b.splits = ceil_div(p.group_out(), b.filters);
  b.sums = b.filters * b.taps * sums.lanes;
  return b;
}

/// Whole tiles are made, of which only a part may be wanted.
double cost(const Conv2dProblem& p, const FewSums& sums, const exec::DeviceClass& kind) {
  const auto filters = ceil_div(p.group_out(), sums.outs) * sums.outs,
             weights = ceil_div(p.group_in() * p.kh * p.kw, sums.taps) * sums.taps;
  return static_cast<double>(filters * weights * ceil_div(p.ow, sums.lanes)) * kind.instruction(sums.lanes);
}

/// As many sums as registers hold with a vector of each filter and one of pixels: 32 of them, or 16.
std::vector<FewSums> choices(const Conv2dProblem& p, const DeviceInfo& device) {
  const bool many = vector_width(device) == 16;
  std::vector<FewSums> result;
  for (const auto lanes : vector_widths(device)) {
    if (lanes > p.ow) continue;
    const auto add = [&](std::int64_t outs, std::int64_t taps) { result.emplace_back(lanes, outs, taps, nchw_window); };
    add(3, many ? 9 : 4);
    add(many ? 4 : 3, many ? 6 : 3);
    add(2, many ? 12 : 5);
  }
  const auto& kind = exec::device_class(device);
  std::stable_sort(result.begin(), result.end(),
                   [&](const FewSums& a, const FewSums& b) { return cost(p, a, kind) < cost(p, b, kind); });
  if (result.empty()) return result;
  for (const auto window : {nchw_window / 2, nchw_window * 2}) {
    result.push_back(result.front());
    result.back().window = window;
  }
  return result;
}

}  // namespace

std::optional<std::string> conv2d_backward_weights_few_channels_cpu_rejects(const Conv2dProblem& p, const DeviceInfo& device) {
  if (p.c == 0) return "nothing to compute";
  const auto found = choices(p, device);
  if (found.empty()) return "rows are shorter than vectors";
  const auto floats = cut(p, found.front(), device).floats();
  if (floats > scratch(device)) return fmt::format("its smallest block takes {} KiB of local memory", floats / 256);
  return std::nullopt;
}

std::optional<std::string> conv2d_backward_weights_few_channels_cpu_declines(const Conv2dProblem& p, const DeviceInfo& device) {
  constexpr std::int64_t few = 4;
  if (p.group_in() > few) return "so many channels are summed faster by vectors of channels";
  const auto sums = choices(p, device).front();
  if (2 * ceil_div(p.ow, sums.lanes) * sums.lanes > 3 * p.ow) return "the ends of rows leave too many lanes idle";
  const auto b = cut(p, sums, device);
  const auto all = ceil_div(p.group_out(), sums.outs) * sums.outs * b.taps * sums.lanes;
  if (b.staged + b.taps + all > scratch(device))
    return "its sums do not fit the caches, and each part of them stages the images again";
  return std::nullopt;
}

std::vector<exec::Config> conv2d_backward_weights_few_channels_cpu_configs(const Conv2dProblem& p, const DeviceInfo& device) {
  std::vector<exec::Config> result;
  for (const auto& sums : choices(p, device))
    if (cut(p, sums, device).floats() <= scratch(device)) result.push_back(sums.config());
  return result;
}

void conv2d_backward_weights_few_channels_cpu(const Conv2dProblem& p, exec::Recorder& recorder) {
  const FewSums in_registers(recorder.config());
  const auto b = cut(p, in_registers, recorder.device());
  const auto bytes = [](std::int64_t floats) { return static_cast<std::size_t>(floats) * 4; };
  const auto sums = weight_sums(p, b.parts, recorder);
  recorder.kernel("conv2d_backward_weights_few_channels_cpu", "conv2d_backward_weights_few_channels_cpu")
      .define("VW", in_registers.lanes)
      .define("OUTS", in_registers.outs)
      .define("TAPS", in_registers.taps)
      .in("x", p.x)
      .in("g", p.y)
      .out("y", sums)
      .args({p.n, b.images, p.groups, p.group_in(), p.group_out(), b.filters, p.h, p.w, p.kh, p.kw, p.oh, p.ow})
      .args({p.stride.height, p.stride.width, p.top, p.left, p.dilation.height, p.dilation.width})
      .args({b.rows_block, b.rows, grids(p, false).front().horizontal.window(p.ow), b.pitch})
      .local_memory(bytes(b.staged))
      .local_memory(bytes(b.taps))
      .local_memory(bytes(b.sums))
      .range({p.groups, b.parts, b.splits}, {1, 1, 1})
      .flops(p.flops())
      .detail(p.text());
  if (b.parts > 1) add_up_weight(p, sums, b.parts, recorder);
}

}  // namespace clnet::ops
