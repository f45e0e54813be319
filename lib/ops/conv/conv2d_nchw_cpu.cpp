// Convolution of groups of few input channels, for CPUs (kernels/conv/conv2d_nchw_cpu.cl): vectors of pixels of one plane, as
// there are hardly any channels to sum over, and none to sort by. Depthwise convolutions and first layers are of this kind.
#include <algorithm>
#include <vector>

#include "lib/exec/choose/device_class.h"
#include "lib/ops/conv/conv2d_cpu.h"

namespace clnet::ops {

namespace {

/// Sums in registers: vectors under each other and side by side, of so many targets.
struct PlaneSums {
  std::int64_t lanes, rows, columns, outs;
  explicit PlaneSums(const exec::Config& config)
      : lanes(config["lanes"]), rows(config["rows"]), columns(config["columns"]), outs(config["outs"]) {}
  PlaneSums(std::int64_t width, std::int64_t high, std::int64_t wide, std::int64_t targets)
      : lanes(width), rows(high), columns(wide), outs(targets) {}
};
constexpr std::int64_t most_outs = 8, most_columns = 4;

/// Twelve sums where there are 16 registers; with 32 those that cut the targets evenly, of 8 times two and 6 times four.
std::vector<PlaneSums> choices(std::int64_t outs, const DeviceInfo& device) {
  const bool many = vector_width(device) == 16;
  struct Block {
    std::int64_t targets, vectors;
  };
  std::vector<Block> blocks{{6, many ? 4 : 2}};
  if (outs < 4)
    blocks = {{1, many ? 8 : 4}};
  else if (many)
    blocks.insert(blocks.begin(), {8, 2});
  std::vector<PlaneSums> result;
  for (const auto width : vector_widths(device))
    for (const auto [targets, vectors] : blocks)
      for (auto columns = std::min(vectors, most_columns); columns >= 1; columns /= 2)
        result.emplace_back(width, vectors / columns, columns, targets);
  return result;
}

/// In cycles: whole tiles, though pixels may fill them in part only, and storing what is left of a row element by element.
double cost(const Conv2dProblem& p, bool backward, const PlaneSums& sums, const exec::DeviceClass& kind) {
  const double instruction = kind.instruction(sums.lanes);
  const auto ins = backward ? p.group_out() : p.group_in(), outs = backward ? p.group_in() : p.group_out();
  double cycles = 0;
  for (const auto& [v, h] : grids(p, backward)) {
    const auto block = rows_of(v, row_pitch(h), ins, nchw_window), tiles = ceil_div(v.count, block) * ceil_div(block, sums.rows);
    const auto across = ceil_div(h.count, sums.columns * sums.lanes), rest = h.target_step == 1 ? h.count % sums.lanes : h.count;
    const auto terms = static_cast<double>(sums.rows * sums.columns * sums.outs * ins * v.taps * h.taps);
    cycles += static_cast<double>(ceil_div(outs, sums.outs) * tiles * across) * terms * instruction +
              2 * static_cast<double>(outs * v.count * rest);
  }
  return cycles;
}

void lower_plane_grid(const Conv2dProblem& p, bool backward, const Grid& grid, exec::Recorder& recorder) {
  const auto& [v, h] = grid;
  const Pair image{p.h, p.w}, seen{p.oh, p.ow}, source = backward ? seen : image, target = backward ? image : seen;
  // The gradient of a strided convolution's input is made of several grids.
  const bool dense = !backward || (p.stride.height == 1 && p.stride.width == 1);
  const auto kernel = p.kh * p.kw, ins = backward ? p.group_out() : p.group_in(), outs = backward ? p.group_in() : p.group_out();
  const auto pitch = row_pitch(h), rows_block = rows_of(v, pitch, ins, recorder.config()["window"]), rows = v.window(rows_block);
  const auto taps = std::max<std::int64_t>(1, ins * v.taps * h.taps);
  const auto bytes = [](std::int64_t floats) { return static_cast<std::size_t>(floats) * 4; };
  const PlaneSums sums(recorder.config());
  auto& launch = recorder.kernel("conv2d_nchw_cpu", "conv2d_nchw_cpu").define("VW", sums.lanes);
  if (taps > 256) launch.define("BLOCKS", 1);  // the kernels' CLNET_BLOCK
  launch.define("ROWS", sums.rows).define("COLUMNS", sums.columns).define("OUTS", sums.outs);
  launch.in("x", backward ? p.y : p.x).in("w", p.weight);
  if (p.has_bias()) launch.in("bias", p.bias).define("BIAS", 1);
  launch.out("y", backward ? p.x : p.y);
  if (!dense) launch.scattered();
  launch
      .args({p.groups, ins, outs, backward ? p.group_in() * kernel : kernel, backward ? kernel : p.group_in() * kernel,
             p.group_out() * p.group_in() * kernel, p.kw})
      .args({source.height, source.width, target.height, target.width, v.count, h.count})
      .args({v.target_first, h.target_first, v.target_step, h.target_step, v.source_step, h.source_step})
      .args({v.taps, h.taps, v.tap_first, h.tap_first, v.tap_step, h.tap_step})
      .args({v.kernel_first, h.kernel_first, v.kernel_step, h.kernel_step})
      .args({rows_block, rows, h.window(h.count), pitch})
      .local_memory(bytes(ins * rows * pitch + sums.columns * sums.lanes))
      .local_memory(bytes(taps))
      .local_memory(bytes(taps))
      .local_memory(bytes(taps * sums.outs))
      .range({ceil_div(v.count, rows_block), p.groups, p.n}, {1, 1, 1})
      .flops(2.0 * static_cast<double>(p.n * p.groups * outs * v.count * h.count) * static_cast<double>(ins * v.taps * h.taps))
      .detail(p.text());
  pass_slices(launch, p);
  if (dense)
    recorder.epilogue(launch, p.groups * outs, p.slices * target.height * target.width);
  else
    recorder.decline_epilogue();
}

/// Whether the gradient of the weight sums tiles of several filters by their weights; lower_plane_weights sums one filter at a
/// time, of one plane.
bool sums_filters(const Conv2dProblem& p, Conv2dDirection direction, const DeviceInfo& device) {
  return direction == Conv2dDirection::backward_weights && (p.group_in() > 1 || p.group_out() >= vector_width(device));
}

struct PlaneWeightBlocks {
  std::int64_t rows_block, rows, pitch, images, parts, gradient_size, taps;
};

PlaneWeightBlocks cut_weights(const Conv2dProblem& p, const Grid& grid, std::int64_t width, std::int64_t window,
                              const DeviceInfo& device) {
  PlaneWeightBlocks b{};
  b.pitch = row_pitch(grid.horizontal);
  b.rows_block = rows_of(grid.vertical, b.pitch, 1, window);
  b.rows = grid.vertical.window(b.rows_block);
  b.images = ceil_div(p.n, std::min(ceil_div(wanted_items(device), p.groups), p.n));
  b.parts = ceil_div(p.n, b.images);
  b.gradient_size = b.rows_block * ceil_div(p.ow, width) * width;
  b.taps = ceil_div(p.kh * p.kw, 4) * 4;
  return b;
}

void lower_plane_weights(const Conv2dProblem& p, exec::Recorder& recorder) {
  const auto grid = grids(p, false).front();
  const auto width = recorder.config()["lanes"];
  const auto b = cut_weights(p, grid, width, recorder.config()["window"], recorder.device());
  const auto bytes = [](std::int64_t floats) { return static_cast<std::size_t>(floats) * 4; };
  const auto sums = weight_sums(p, b.parts, recorder);
  recorder.kernel("conv2d_backward_weights_nchw_cpu", "conv2d_backward_weights_nchw_cpu")
      .define("VW", width)
      .in("x", p.x)
      .in("g", p.y)
      .out("y", sums)
      .args({p.n, b.images, p.groups, p.group_out(), p.h, p.w, p.kh, p.kw, p.oh, p.ow})
      .args({p.stride.height, p.stride.width, p.top, p.left, p.dilation.height, p.dilation.width})
      .args({b.rows_block, b.rows, grid.horizontal.window(p.ow), b.pitch})
      .local_memory(bytes(b.rows * b.pitch + width))
      .local_memory(bytes(b.gradient_size))
      .local_memory(bytes(b.taps))
      .local_memory(bytes(p.group_out() * b.taps * width))
      .range({p.groups, b.parts}, {1, 1})
      .flops(p.flops())
      .detail(p.text());
  if (b.parts > 1) add_up_weight(p, sums, b.parts, recorder);
}

/// Floats of local memory that a work-item has at most with windows of so many KiB.
std::int64_t floats_of(const Conv2dProblem& p, Conv2dDirection direction, std::int64_t window, const DeviceInfo& device) {
  const auto width = vector_width(device), beyond = most_columns * width;
  if (direction == Conv2dDirection::backward_weights) {
    const auto b = cut_weights(p, grids(p, false).front(), width, window, device);
    return b.rows * b.pitch + b.gradient_size + b.taps * (1 + p.group_out() * width) + beyond;
  }
  const bool backward = direction == Conv2dDirection::backward_data;
  const auto ins = backward ? p.group_out() : p.group_in();
  std::int64_t result = 0;
  for (const auto& [v, h] : grids(p, backward)) {
    const auto pitch = row_pitch(h), rows = v.window(rows_of(v, pitch, ins, window));
    result = std::max(result, ins * (rows * pitch + (2 + most_outs) * v.taps * h.taps));
  }
  return result + beyond;
}

/// Half and twice the likely window, as far as they fit and cut the rows otherwise.
std::vector<std::int64_t> other_windows(const Conv2dProblem& p, Conv2dDirection direction, const DeviceInfo& device) {
  const bool backward = direction == Conv2dDirection::backward_data;
  const auto ins = direction == Conv2dDirection::backward_weights ? 1 : backward ? p.group_out() : p.group_in();
  const auto all = grids(p, backward);
  std::vector<std::int64_t> result;
  for (const auto window : {nchw_window / 2, nchw_window * 2}) {
    const bool differs = std::any_of(all.begin(), all.end(), [&](const Grid& grid) {
      const auto rows = [&](std::int64_t kib) { return rows_of(grid.vertical, row_pitch(grid.horizontal), ins, kib); };
      return rows(window) != rows(nchw_window);
    });
    if (differs && floats_of(p, direction, window, device) <= scratch(device)) result.push_back(window);
  }
  return result;
}

}  // namespace

std::optional<std::string> conv2d_nchw_cpu_rejects(const Conv2dProblem& p, Conv2dDirection direction, const DeviceInfo& device) {
  if (!device.prefers_vector_kernels) return "the device is no CPU with vectors";
  if (p.n == 0 || p.group_out() == 0) return "nothing to compute";
  if (sums_filters(p, direction, device)) return conv2d_backward_weights_few_channels_cpu_rejects(p, device);
  const auto floats = floats_of(p, direction, nchw_window, device);
  if (floats > scratch(device)) return fmt::format("its smallest block takes {} KiB of local memory", floats / 256);
  return std::nullopt;
}

std::optional<std::string> conv2d_nchw_cpu_declines(const Conv2dProblem& p, Conv2dDirection direction, const DeviceInfo& device) {
  constexpr std::int64_t few = 4, most_idle = 8;
  const auto [sources, targets] = channels(p, direction);
  if (sums_filters(p, direction, device)) return conv2d_backward_weights_few_channels_cpu_declines(p, device);
  if (direction == Conv2dDirection::backward_weights || sources <= few) return std::nullopt;
  // So few targets leave most lanes of the other kernel idle.
  if (targets * most_idle <= vector_width(device)) return std::nullopt;
  return "so many channels are summed faster by vectors of channels";
}

std::vector<exec::Config> conv2d_nchw_cpu_configs(const Conv2dProblem& p, Conv2dDirection direction, const DeviceInfo& device) {
  if (sums_filters(p, direction, device)) return conv2d_backward_weights_few_channels_cpu_configs(p, device);
  const auto& kind = exec::device_class(device);
  std::vector<exec::Config> result;
  if (direction == Conv2dDirection::backward_weights) {
    auto widths = vector_widths(device);
    const auto row = [&](auto lanes) { return static_cast<double>(ceil_div(p.ow, lanes)) * kind.instruction(lanes); };
    std::stable_sort(widths.begin(), widths.end(), [&](auto a, auto b) { return row(a) < row(b); });
    for (const auto width : widths) result.push_back({{"lanes", width}, {"window", nchw_window}});
    for (const auto window : other_windows(p, direction, device))
      result.push_back({{"lanes", widths.front()}, {"window", window}});
    return result;
  }
  const bool backward = direction == Conv2dDirection::backward_data;
  auto found = choices(backward ? p.group_in() : p.group_out(), device);
  std::stable_sort(found.begin(), found.end(), [&](const PlaneSums& a, const PlaneSums& b) {
    return cost(p, backward, a, kind) < cost(p, backward, b, kind);
  });
  const auto add = [&](const PlaneSums& sums, std::int64_t window) {
    result.push_back(
        {{"lanes", sums.lanes}, {"rows", sums.rows}, {"columns", sums.columns}, {"outs", sums.outs}, {"window", window}});
  };
  for (const auto& sums : found) add(sums, nchw_window);
  for (const auto window : other_windows(p, direction, device)) add(found.front(), window);
  return result;
}

void conv2d_nchw_cpu(const Conv2dProblem& problem, Conv2dDirection direction, exec::Recorder& recorder) {
  if (sums_filters(problem, direction, recorder.device())) return conv2d_backward_weights_few_channels_cpu(problem, recorder);
  if (direction == Conv2dDirection::backward_weights) return lower_plane_weights(problem, recorder);
  const bool backward = direction == Conv2dDirection::backward_data;
  for (const auto& grid : grids(problem, backward)) lower_plane_grid(problem, backward, grid, recorder);
}

}  // namespace clnet::ops
