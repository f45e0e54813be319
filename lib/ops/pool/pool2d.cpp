#include "lib/ops/pool/pool2d.h"

#include <fmt/format.h>

#include <algorithm>

#include "clnet/error.h"
#include "lib/ops/elementwise/elementwise.h"

namespace clnet::ops {

namespace {

void require_image(std::string_view op, const Spec& x) {
  require_floating(op, x);
  if (x.shape.rank() != 4) throw ShapeError(fmt::format("{}: needs {{N, C, H, W}}, got {}", op, to_string(x)));
}

/// Positions in a padded plane reach so far at most, so that kernels count them in int.
constexpr std::int64_t largest = std::int64_t{1} << 30;

struct Axis {
  std::string_view name;
  std::int64_t extent, kernel, stride, before, after, dilation;
};

std::int64_t output_extent(std::string_view op, const Axis& a, const Shape& x, bool ceil_mode) {
  if (a.kernel < 1 || a.stride < 1 || a.dilation < 1)
    throw ShapeError(fmt::format("{}: {}: kernel size {}, stride {} and dilation {} must be at least 1", op, a.name, a.kernel,
                                 a.stride, a.dilation));
  for (auto value : {a.kernel, a.stride, a.dilation, a.before, a.after, a.extent})
    if (value > largest)
      throw ShapeError(
          fmt::format("{}: {}: windows, strides, dilations, padding and extents end at {}, got {}", op, a.name, largest, value));
  const auto window = (a.kernel - 1) * a.dilation + 1;
  if (a.before < 0 || a.after < 0 || a.before > window / 2 || a.after > window / 2)
    throw ShapeError(fmt::format("{}: {}: padding {} and {} must be between 0 and half the window's extent {}", op, a.name,
                                 a.before, a.after, window));
  const auto room = a.extent + a.before + a.after - window;
  if (room > largest - window)
    throw ShapeError(
        fmt::format("{}: {}: {} with padding {} and {} is longer than {}", op, a.name, to_string(x), a.before, a.after, largest));
  if (room < 0)
    throw ShapeError(fmt::format("{}: {}: a window of extent {} does not fit into {} with padding {} and {}", op, a.name, window,
                                 to_string(x), a.before, a.after));
  auto extent = (room + (ceil_mode ? a.stride - 1 : 0)) / a.stride + 1;
  if (ceil_mode && (extent - 1) * a.stride >= a.extent + a.before) --extent;
  return extent;
}

}  // namespace

Fields PoolWindows::fields() const {
  return {{"input", std::vector{h, w}},
          {"output", std::vector{out_h, out_w}},
          {"kernel", std::vector{kernel.height, kernel.width}},
          {"stride", std::vector{stride.height, stride.width}},
          {"padding", std::vector{padding.top, padding.left, padding.bottom, padding.right}},
          {"dilation", std::vector{dilation.height, dilation.width}},
          {"adaptive", adaptive}};
}

bool PoolWindows::inside() const {
  if (adaptive) return true;
  const auto last_h = (out_h - 1) * stride.height + (kernel.height - 1) * dilation.height;
  const auto last_w = (out_w - 1) * stride.width + (kernel.width - 1) * dilation.width;
  return padding.top == 0 && padding.left == 0 && last_h < h && last_w < w;
}

PoolWindows pool_windows(std::string_view op, const Spec& x, Pair kernel, Pair stride, Padding padding, Pair dilation,
                         bool ceil_mode) {
  require_image(op, x);
  PoolWindows windows{.h = x.shape[2], .w = x.shape[3], .kernel = kernel, .stride = stride, .dilation = dilation};
  windows.padding = padding;
  windows.out_h = output_extent(
      op, {"height", windows.h, kernel.height, stride.height, padding.top, padding.bottom, dilation.height}, x.shape, ceil_mode);
  windows.out_w = output_extent(op, {"width", windows.w, kernel.width, stride.width, padding.left, padding.right, dilation.width},
                                x.shape, ceil_mode);
  return windows;
}

PoolWindows adaptive_windows(std::string_view op, const Spec& x, Pair output_size) {
  require_image(op, x);
  const auto h = x.shape[2], w = x.shape[3];
  if (output_size.height < 1 || output_size.width < 1 || h < 1 || w < 1)
    throw ShapeError(fmt::format("{}: {} cannot be pooled to {} x {}", op, to_string(x), output_size.height, output_size.width));
  PoolWindows windows{.h = h, .w = w, .out_h = output_size.height, .out_w = output_size.width};
  if (h % output_size.height == 0 && w % output_size.width == 0)
    windows.kernel = windows.stride = {h / output_size.height, w / output_size.width};
  else
    windows.adaptive = true;
  return windows;
}

std::optional<std::string> needs_vector_cpu(const DeviceInfo& device) {
  if (device.prefers_vector_kernels) return std::nullopt;
  return "one work-item for many elements is for CPUs with vectors";
}

std::int64_t pool_rows(std::int64_t planes, std::int64_t height, const DeviceInfo& device) {
  const auto bands = std::max<std::int64_t>(1, 8 * device.compute_units / std::max<std::int64_t>(1, planes));
  return std::max<std::int64_t>(1, (height + bands - 1) / bands);
}

bool launch_pool(exec::Launch& launch, const PoolWindows& p, std::int64_t planes, std::int64_t height, std::int64_t width,
                 std::int64_t rows) {
  launch.args({planes, rows, p.h, p.w, p.out_h, p.out_w});
  if (p.inside()) launch.define("INSIDE", 1);
  if (p.adaptive) launch.define("ADAPTIVE", 1);
  const std::pair<std::string_view, std::int64_t> sizes[] = {
      {"KERNEL_H", p.kernel.height}, {"KERNEL_W", p.kernel.width},      {"STRIDE_H", p.stride.height},
      {"STRIDE_W", p.stride.width},  {"DILATION_H", p.dilation.height}, {"DILATION_W", p.dilation.width},
      {"TOP", p.padding.top},        {"LEFT", p.padding.left},          {"BOTTOM", p.padding.bottom},
      {"RIGHT", p.padding.right}};
  // Large windows gain nothing from unrolling, and global pooling would make a program per image size.
  const bool fixed = rows > 0 && p.kernel.height * p.kernel.width <= 16;
  if (fixed) launch.define("FIXED_WINDOWS", 1);
  for (const auto& [name, size] : sizes) {
    if (fixed)
      launch.define(name, size);
    else
      launch.arg(size);
  }
  if (rows > 0)
    launch.define("ROWS", 1).range({(height + rows - 1) / rows, planes}, {1, 1});
  else
    launch.range({height * width, planes}, {64, 1});
  launch.detail(fmt::format("{} x {}x{} to {}x{}", planes, p.h, p.w, p.out_h, p.out_w));
  return fixed;
}

}  // namespace clnet::ops
