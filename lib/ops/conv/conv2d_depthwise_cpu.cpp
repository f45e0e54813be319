// Depthwise convolutions with small kernels, for CPUs (kernels/conv/conv2d_depthwise_cpu.clh and what includes it).
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "lib/exec/choose/device_class.h"
#include "lib/ops/conv/conv2d_cpu.h"

namespace clnet::ops {

namespace {

/// What a direction reads as the kernels see it: vectors of outputs {oh, ow} see a source {h, w} with `top` rows and `left`
/// columns of zeros before it. With `scatters`, the gradient of the input with steps of 2, an output is a pair of columns of the
/// result.
struct Planes {
  std::int64_t h, w, oh, ow, top, left, step;
  bool scatters;
};
Planes planes_of(const Conv2dProblem& p, Conv2dDirection direction) {
  if (direction != Conv2dDirection::backward_data) return {p.h, p.w, p.oh, p.ow, p.top, p.left, p.stride.height, false};
  if (p.stride.height == 1) return {p.oh, p.ow, p.h, p.w, p.kh - 1 - p.top, p.kw - 1 - p.left, 1, false};
  return {p.oh, p.ow, p.h, ceil_div(p.w, std::int64_t{2}), p.top, p.left, 1, true};
}

/// What is summed at a time, as the kernels call it.
struct Strips {
  std::int64_t vector_rows, vectors;  ///< a vector of sums is so many rows
  std::int64_t rows, seen, made;      ///< of a strip; floats of its source, and in local memory
  bool unrolled;
};

/// KiB of a strip, with what is made of it, in the first-level cache.
constexpr std::int64_t likely_window = 13;
/// Vectors of sums of a plane that are unrolled as a whole, so that nothing is decided at run time.
constexpr std::int64_t most_unrolled = 16;

/// So many rows of all planes together take as long as a row of single elements, on some cores.
constexpr std::int64_t rows_for_an_end = 1024;
/// Planes of fewer elements are no long ends.
constexpr std::int64_t large_end = 512;

/// Vectors of sums, or for the weight's gradient of what they are made of, that registers hold.
std::int64_t most_vectors(std::int64_t width) { return width == 16 ? 8 : 4; }
/// Rows of taps whose sums registers hold.
std::int64_t tap_rows(const Conv2dProblem& p, std::int64_t width) {
  const std::int64_t sums = width == 16 ? 25 : 9;
  return std::clamp<std::int64_t>(sums / p.kw, 1, p.kh);
}

/// With so many vectors of sums, or as many as the model says.
Strips cut(const Conv2dProblem& p, Conv2dDirection direction, std::int64_t width, std::int64_t window,
           std::optional<std::int64_t> of_vectors = {}) {
  const auto planes = planes_of(p, direction);
  const bool weights = direction == Conv2dDirection::backward_weights;
  Strips s{};
  const auto across = ceil_div(planes.ow, width);
  const auto update = [&](std::int64_t rows) {
    const auto seen = planes.scatters ? rows / 2 + p.kh : (rows - 1) * planes.step + p.kh;
    const auto row = planes.scatters ? 2 * planes.ow : planes.ow;
    s.rows = rows;
    s.seen = std::min(seen, planes.h) * planes.w;
    s.made = (ceil_div(rows, s.vector_rows) * s.vector_rows) * row + 2 * width;
    return s.seen + s.made <= (window << 10) / 4;
  };
  s.vector_rows = std::max<std::int64_t>(1, width / planes.w);
  const bool may_unroll = !planes.scatters && ceil_div(planes.oh, s.vector_rows) * across <= most_unrolled;
  if (planes.step != 1 || planes.w != planes.ow || !may_unroll || !update(planes.oh)) s.vector_rows = 1;
  // Products, and vectors loaded for them: the more rows are made together, the more share one.
  const auto cost = [&](std::int64_t vectors) {
    return ceil_div(planes.oh, vectors * s.vector_rows) * p.kw *
           (vectors * p.kh + planes.step * (vectors - 1) * s.vector_rows + p.kh);
  };
  const auto most = weights ? most_vectors(width) / 2 : most_vectors(width);
  s.vectors = 1;
  for (std::int64_t vectors = 2; vectors <= most && vectors * s.vector_rows < planes.oh + s.vector_rows; ++vectors)
    if (cost(vectors) <= cost(s.vectors)) s.vectors = vectors;
  if (of_vectors) s.vectors = *of_vectors;
  s.unrolled = !planes.scatters && ceil_div(planes.oh, s.vector_rows) * across <= most_unrolled;
  // The kernels sum single elements in the first strip of all and in the last one: these are short where there are few rows in
  // all.
  const auto step = planes.scatters ? 2 : s.vectors;
  const bool is_whole = s.unrolled || planes.oh * planes.ow < large_end;
  const auto most_rows = is_whole ? planes.oh : std::max(2 * step, p.n * p.c * planes.oh / rows_for_an_end);
  // The weight's gradient takes whole planes: what is made are its sums.
  if ((update(planes.oh) && planes.oh <= most_rows) || weights) {
    if (planes.scatters) update(ceil_div(planes.oh, std::int64_t{2}) * 2);
    return s;
  }
  s.unrolled = false;
  auto pieces = std::int64_t{2};
  while ((!update(ceil_div(ceil_div(planes.oh, pieces), step) * step) || s.rows > most_rows) && s.rows > step) ++pieces;
  return s;
}

}  // namespace

std::optional<std::string> conv2d_depthwise_cpu_rejects(const Conv2dProblem& p, Conv2dDirection direction,
                                                        const DeviceInfo& device) {
  constexpr std::int64_t most_taps = 7, most_step = 2;
  if (!device.prefers_vector_kernels) return "the device is no CPU with vectors";
  if (p.group_in() != 1 || p.group_out() != 1) return "not depthwise";
  if (p.kh > most_taps || p.kw > most_taps) return fmt::format("a kernel of {}x{} is not small", p.kh, p.kw);
  if (p.dilation.height != 1 || p.dilation.width != 1) return "it is dilated";
  if (p.stride.height != p.stride.width || p.stride.height > most_step) return "its steps are not 1x1 or 2x2";
  if (p.n == 0 || p.h * p.w == 0 || p.oh * p.ow == 0) return "nothing to compute";
  const auto planes = planes_of(p, direction);
  if (planes.top < 0 || planes.left < 0) return "its padding is negative";
  const auto right = (p.ow - 1) * p.stride.width + p.kw - p.left - p.w;
  if (std::max(p.left, right) >= p.kw) return "its padding is as wide as the kernel";
  if (direction == Conv2dDirection::backward_weights) return std::nullopt;
  if (const auto floats = cut(p, direction, vector_width(device), likely_window).made; floats > scratch(device))
    return fmt::format("its smallest strip takes {} KiB of local memory", floats / 256);
  return std::nullopt;
}

std::vector<exec::Config> conv2d_depthwise_cpu_configs(const Conv2dProblem& p, Conv2dDirection direction,
                                                       const DeviceInfo& device) {
  std::vector<exec::Config> result;
  const auto planes = planes_of(p, direction);
  auto widths = vector_widths(device);
  // Rows that fit half a vector; and longer ones than a vector, if a wide one takes as long as its halves: taps lie at odd
  // places, where every load of a wide one reads two lines of the cache.
  const auto in_halves = [&] {
    const auto& kind = exec::device_class(device);
    return kind.instruction(16) >= 2 * kind.instruction(8);
  };
  if (planes.ow <= 8 || (planes.ow > 16 && in_halves())) std::reverse(widths.begin(), widths.end());
  const auto add = [&](std::int64_t width, std::int64_t vectors, std::int64_t window) {
    const bool fits =
        direction == Conv2dDirection::backward_weights || cut(p, direction, width, window, vectors).made <= scratch(device);
    if (fits) result.push_back({{"lanes", width}, {"vectors", vectors}, {"window", window}});
  };
  for (const auto width : widths) add(width, cut(p, direction, width, likely_window).vectors, likely_window);
  const auto first = widths.front();
  const auto likely = cut(p, direction, first, likely_window);
  if (!planes.scatters) {
    if (likely.vectors > 1) add(first, ceil_div(likely.vectors, std::int64_t{2}), likely_window);
    if (2 * likely.vectors <= most_vectors(first) && likely.vectors * likely.vector_rows < planes.oh)
      add(first, 2 * likely.vectors, likely_window);
  }
  for (const auto window : {likely_window / 2, likely_window * 2})
    if (cut(p, direction, first, window).rows != likely.rows) add(first, likely.vectors, window);
  return result;
}

void conv2d_depthwise_cpu(const Conv2dProblem& p, Conv2dDirection direction, exec::Recorder& recorder) {
  const auto planes = planes_of(p, direction);
  const auto& device = recorder.device();
  const auto width = recorder.config()["lanes"];
  const auto s = cut(p, direction, width, recorder.config()["window"], recorder.config()["vectors"]);
  const bool weights = direction == Conv2dDirection::backward_weights, backward = direction == Conv2dDirection::backward_data;
  const auto* name = weights           ? "conv2d_backward_weights_depthwise_cpu"
                     : planes.scatters ? "conv2d_backward_data_depthwise_cpu"
                                       : "conv2d_depthwise_cpu";
  const auto images = ceil_div(p.n, std::min(ceil_div(wanted_items(device), p.c), p.n)), parts = ceil_div(p.n, images);
  const auto sums = weights ? weight_sums(p, parts, recorder) : exec::Ref{};
  auto& launch =
      recorder.kernel(name, name).define("VW", width).define("KH", p.kh).define("KW", p.kw).define("STEP", planes.step);
  launch.define("H", planes.h).define("W", planes.w).define("OH", planes.oh).define("OW", planes.ow);
  launch.define("TOP", planes.top).define("LEFT", planes.left).define("ROWS", s.vector_rows).define("VECTORS", s.vectors);
  if (s.unrolled) launch.define("UNROLLED", 1);
  if (weights) {
    launch.define("TAP_ROWS", tap_rows(p, width))
        .in("x", p.x)
        .in("g", p.y)
        .out("y", sums)
        .args({p.n, p.c, images})
        .range({p.c, parts}, {1, 1})
        .flops(p.flops())
        .detail(p.text());
    if (parts > 1) add_up_weight(p, sums, parts, recorder);
    return;
  }
  const auto strips = ceil_div(planes.oh, s.rows);
  const auto block = std::max<std::int64_t>(1, p.n * p.c * strips / (4 * wanted_items(device)));
  launch.define("STRIP", s.rows).define("STRIPS", strips);
  if (planes.scatters)
    launch.define("RESULT_H", p.h).define("RESULT_W", p.w);
  else if (backward)
    launch.define("FLIP", 1);
  launch.in("x", backward ? p.y : p.x).in("w", p.weight);
  if (p.has_bias()) launch.in("bias", p.bias).define("BIAS", 1);
  launch.out("y", backward ? p.x : p.y)
      .args({p.n * p.c, p.c, block})
      .local_memory(static_cast<std::size_t>(s.made) * 4)
      .range({ceil_div(p.n * p.c * strips, block)}, {1})
      .flops(p.flops())
      .detail(p.text());
  pass_slices(launch, p);
  recorder.epilogue(launch, p.c, p.slices * (backward ? p.h * p.w : p.oh * p.ow));
}

}  // namespace clnet::ops
