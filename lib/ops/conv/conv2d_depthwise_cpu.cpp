// Depthwise convolutions with small kernels, for CPUs (kernels/conv/conv2d_depthwise_cpu.cl and conv2d_depthwise_small_cpu.cl).
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "lib/ops/conv/conv2d_cpu.h"

namespace clnet::ops {

namespace {

/// One pass as a correlation: result {ph, pw} of source {h, w} with `top` rows and `left` columns of zeros before it.
struct Planes {
  std::int64_t h, w, ph, pw, top, left, step;
};
Planes planes_of(const Conv2dProblem& p, bool backward) {
  if (backward) return {p.oh, p.ow, p.h, p.w, p.kh - 1 - p.top, p.kw - 1 - p.left, 1};
  return {p.h, p.w, p.oh, p.ow, p.top, p.left, p.stride.height};
}

/// Planes of few rows and vectors are all unrolled.
constexpr std::int64_t most_unrolled = 16;

/// Whole rows of a plane in a vector.
std::int64_t rows_of_vector(const Planes& planes, std::int64_t width) { return std::max<std::int64_t>(1, width / planes.w); }

/// Whether planes are made in one piece without being staged. Several rows to a vector are unrolled, as their masks differ.
bool in_one_piece(const Planes& planes, std::int64_t kw, std::int64_t width, std::int64_t window) {
  const auto rows = rows_of_vector(planes, width);
  return planes.step == 1 && planes.w == planes.pw && planes.w >= kw && planes.ph * planes.w <= (window << 10) / 8 &&
         (rows == 1 || ceil_div(planes.ph, rows) <= most_unrolled);
}

/// What is staged and summed at a time, as the kernel calls it.
struct Strips {
  std::int64_t columns, pitch, group, vectors;  ///< a vector of sums is `group` rows
  std::int64_t rows, part, floats;              ///< of a work-item; a part of its window; in local memory
};

/// KiB of a strip, with what is made of it, in the first-level cache.
constexpr std::int64_t likely_window = 26;

/// Vectors of sums that registers hold beside what they are made of.
std::int64_t most_vectors(std::int64_t width) { return width == 16 ? 8 : 4; }

/// With so many vectors of sums, or as many as the model says.
Strips cut(const Conv2dProblem& p, const Planes& planes, std::int64_t width, std::int64_t window,
           std::optional<std::int64_t> of_vectors = {}) {
  Strips s{};
  s.columns = std::min(planes.w, (planes.pw - 1) * planes.step + p.kw - planes.left);
  const auto right = (planes.pw - 1) * planes.step + p.kw - planes.left - s.columns;
  // With step 1 the zeros behind a row are those before the next.
  s.pitch = planes.step == 1 ? s.columns + std::max(planes.left, right) : planes.pw + (p.kw - 1) / planes.step;
  s.group = width == 16 && s.pitch <= width / 2 && planes.ph > 1 ? 2 : 1;
  if (s.group == 2) s.pitch = width / 2;
  // Products, and vectors loaded for them: the more rows are made together, the more share one.
  const auto cost = [&](std::int64_t vectors) {
    return ceil_div(planes.ph, vectors * s.group) * p.kw * (vectors * p.kh + planes.step * (vectors - 1) * s.group + p.kh);
  };
  s.vectors = 1;
  for (std::int64_t vectors = 2; vectors <= most_vectors(width); ++vectors)
    if (cost(vectors) <= cost(s.vectors)) s.vectors = vectors;
  if (of_vectors) s.vectors = *of_vectors;
  const auto update = [&](std::int64_t blocks) {
    const auto rows = blocks * s.vectors * s.group;
    s.rows = std::min(rows, planes.ph);
    s.part = (rows + (p.kh - 1) / planes.step) * s.pitch + width + p.kw;
    s.floats = planes.step * planes.step * s.part + rows * planes.pw + width;
  };
  const auto blocks = ceil_div(planes.ph, s.vectors * s.group);
  auto pieces = std::int64_t{1};
  for (update(blocks); s.floats > (window << 10) / 4 && pieces < blocks;) update(ceil_div(blocks, ++pieces));
  return s;
}

}  // namespace

std::optional<std::string> conv2d_depthwise_cpu_rejects(const Conv2dProblem& p, Conv2dPass pass, const DeviceInfo& device) {
  constexpr std::int64_t most_taps = 7, most_step = 2;
  if (!device.prefers_vector_kernels) return "the device is no CPU with vectors";
  if (pass == Conv2dPass::backward_weights) return "it makes no gradients of weights";
  if (p.group_in() != 1 || p.group_out() != 1) return "not depthwise";
  if (p.kh > most_taps || p.kw > most_taps) return fmt::format("a kernel of {}x{} is not small", p.kh, p.kw);
  if (p.dilation.height != 1 || p.dilation.width != 1) return "it is dilated";
  if (p.stride.height != p.stride.width || p.stride.height > most_step) return "its steps are not 1x1 or 2x2";
  const bool backward = pass == Conv2dPass::backward_data;
  if (backward && p.stride.height != 1) return "the gradient of a step of 2 is scattered";
  if (p.n == 0 || p.h * p.w == 0 || p.oh * p.ow == 0) return "nothing to compute";
  const auto planes = planes_of(p, backward);
  if (planes.top < 0 || planes.left < 0) return "its padding is negative";
  const auto right = (planes.pw - 1) * planes.step + p.kw - planes.left - planes.w;
  if (std::max(planes.left, right) >= p.kw) return "its padding is as wide as the kernel";
  if (const auto floats = cut(p, planes, vector_width(device), likely_window).floats; floats > scratch(device))
    return fmt::format("its smallest strip takes {} KiB of local memory", floats / 256);
  return std::nullopt;
}

std::optional<std::string> conv2d_depthwise_cpu_declines(const Conv2dProblem& p, Conv2dPass pass, const DeviceInfo& device) {
  constexpr std::int64_t long_row = 64;
  const auto planes = planes_of(p, pass == Conv2dPass::backward_data);
  if (planes.step != 1 || planes.pw < long_row || planes.pw % vector_width(device) != 0) return std::nullopt;
  return "long rows of whole vectors are as well stored as they are made";
}

std::vector<exec::Config> conv2d_depthwise_cpu_configs(const Conv2dProblem& p, Conv2dPass pass, const DeviceInfo& device) {
  std::vector<exec::Config> result;
  const auto planes = planes_of(p, pass == Conv2dPass::backward_data);
  auto widths = vector_widths(device);
  // Rows that fit half a vector.
  if (planes.pw <= 8) std::reverse(widths.begin(), widths.end());
  const auto add = [&](std::int64_t width, std::int64_t vectors, std::int64_t window) {
    if (cut(p, planes, width, window, vectors).floats <= scratch(device))
      result.push_back({{"lanes", width}, {"vectors", vectors}, {"window", window}});
  };
  for (const auto width : widths) add(width, cut(p, planes, width, likely_window).vectors, likely_window);
  const auto first = widths.front();
  const auto likely = cut(p, planes, first, likely_window);
  if (likely.vectors > 1) add(first, ceil_div(likely.vectors, 2), likely_window);
  if (2 * likely.vectors <= most_vectors(first) && likely.vectors * likely.group < planes.ph)
    add(first, 2 * likely.vectors, likely_window);
  for (const auto window : {likely_window / 2, likely_window * 2})
    if (cut(p, planes, first, window).rows != likely.rows) add(first, likely.vectors, window);
  return result;
}

void conv2d_depthwise_cpu(const Conv2dProblem& p, Conv2dPass pass, exec::Recorder& recorder) {
  const bool backward = pass == Conv2dPass::backward_data;
  const auto planes = planes_of(p, backward);
  const auto& device = recorder.device();
  const auto width = recorder.config()["lanes"];
  const auto s = cut(p, planes, width, recorder.config()["window"], recorder.config()["vectors"]);
  const auto count = p.n * p.c;
  if (in_one_piece(planes, p.kw, width, recorder.config()["window"])) {
    const auto rows = rows_of_vector(planes, width), down = ceil_div(planes.ph, rows), vectors = std::min(s.vectors, down);
    const auto block = std::max<std::int64_t>(1, count / (4 * wanted_items(device)));
    auto& launch = recorder.kernel("conv2d_depthwise_small_cpu", "conv2d_depthwise_small_cpu").define("VW", width);
    launch.define("KH", p.kh).define("KW", p.kw).define("H", planes.h).define("W", planes.w).define("PH", planes.ph);
    launch.define("TOP", planes.top).define("LEFT", planes.left).define("ROWS", rows).define("VECTORS", vectors);
    if (down * ceil_div(planes.w, width) <= most_unrolled) launch.define("UNROLLED", 1);
    if (backward) launch.define("FLIP", 1);
    launch.in("x", backward ? p.y : p.x).in("w", p.weight);
    if (p.has_bias()) launch.in("bias", p.bias).define("BIAS", 1);
    launch.out("y", backward ? p.x : p.y)
        .args({count, p.c, block})
        .local_memory(static_cast<std::size_t>((planes.h + rows) * planes.w + width + 2 * p.kw) * 4)
        .local_memory(static_cast<std::size_t>(down * rows * planes.w + width) * 4)
        .range({ceil_div(count, block)}, {1})
        .flops(p.flops())
        .detail(p.text());
    pass_slices(launch, p);
    recorder.epilogue(launch, p.c, p.slices * planes.ph * planes.pw);
    return;
  }
  const auto strips = ceil_div(planes.ph, s.rows);
  const auto block = std::max<std::int64_t>(1, count * strips / (4 * wanted_items(device)));
  auto& launch = recorder.kernel("conv2d_depthwise_cpu", "conv2d_depthwise_cpu").define("VW", width);
  launch.define("KH", p.kh).define("KW", p.kw).define("STEP", planes.step).define("VECTORS", s.vectors).define("GROUP", s.group);
  if (backward) launch.define("FLIP", 1);
  launch.in("x", backward ? p.y : p.x).in("w", p.weight);
  if (p.has_bias()) launch.in("bias", p.bias).define("BIAS", 1);
  launch.out("y", backward ? p.x : p.y)
      .args({count, p.c, block, planes.h, planes.w, planes.ph, planes.pw, planes.top, planes.left})
      .args({s.rows, s.columns, s.pitch, s.part})
      .local_memory(static_cast<std::size_t>(planes.step * planes.step * s.part) * 4)
      .local_memory(static_cast<std::size_t>(s.floats - planes.step * planes.step * s.part) * 4)
      .range({strips, ceil_div(count, block)}, {1, 1})
      .flops(p.flops())
      .detail(p.text());
  pass_slices(launch, p);
  recorder.epilogue(launch, p.c, p.slices * planes.ph * planes.pw);
}

}  // namespace clnet::ops
