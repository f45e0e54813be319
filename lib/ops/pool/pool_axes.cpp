#include "lib/ops/pool/pool_axes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "clnet/error.h"
#include "lib/ops/elementwise/elementwise.h"

namespace clnet::ops {

namespace {

/// Positions in a padded plane reach so far at most, so that kernels count them in int.
constexpr std::int64_t longest = std::int64_t{1} << 30;

std::int64_t output_extent(std::string_view op, std::string_view name, const PoolAxis& a, const Shape& x, bool ceil_mode) {
  if (a.kernel < 1 || a.stride < 1 || a.dilation < 1)
    throw ShapeError(fmt::format("{}: {}: kernel size {}, stride {} and dilation {} must be at least 1", op, name, a.kernel,
                                 a.stride, a.dilation));
  for (auto value : {a.kernel, a.stride, a.dilation, a.before, a.after, a.in})
    if (value > longest)
      throw ShapeError(
          fmt::format("{}: {}: windows, strides, dilations, padding and extents end at {}, got {}", op, name, longest, value));
  const auto window = (a.kernel - 1) * a.dilation + 1;
  if (a.before < 0 || a.after < 0 || a.before > window / 2 || a.after > window / 2)
    throw ShapeError(fmt::format("{}: {}: padding {} and {} must be between 0 and half the window's extent {}", op, name,
                                 a.before, a.after, window));
  const auto room = a.in + a.before + a.after - window;
  if (room > longest - window)
    throw ShapeError(
        fmt::format("{}: {}: {} with padding {} and {} is longer than {}", op, name, to_string(x), a.before, a.after, longest));
  // In ceil_mode a window may reach beyond the end by less than a stride, the first one, too.
  const auto steps = room + (ceil_mode ? a.stride - 1 : 0);
  auto extent = steps < 0 ? 0 : steps / a.stride + 1;
  if (ceil_mode && (extent - 1) * a.stride >= a.in + a.before) --extent;
  if (extent < 1)
    throw ShapeError(fmt::format("{}: {}: a window of extent {} does not fit into {} with padding {} and {}", op, name, window,
                                 to_string(x), a.before, a.after));
  return extent;
}

Shape with_extents(std::int64_t n, std::int64_t c, const PoolAxes& axes, std::int64_t PoolAxis::*extent) {
  Extents extents{n, c};
  for (const auto& axis : axes) extents.push_back(axis.*extent);
  return Shape(std::move(extents));
}

std::int64_t product(const PoolAxes& axes, std::int64_t PoolAxis::*extent) {
  std::int64_t result = 1;
  for (const auto& axis : axes) result *= axis.*extent;
  return result;
}

}  // namespace

Fields fields_of(const PoolAxes& axes) {
  const auto all = [&](std::int64_t PoolAxis::*part) {
    Extents result;
    for (const auto& axis : axes) result.push_back(axis.*part);
    return result;
  };
  return {{"kernel", all(&PoolAxis::kernel)},
          {"stride", all(&PoolAxis::stride)},
          {"before", all(&PoolAxis::before)},
          {"after", all(&PoolAxis::after)},
          {"dilation", all(&PoolAxis::dilation)},
          {"in", all(&PoolAxis::in)},
          {"out", all(&PoolAxis::out)},
          {"adaptive", std::any_of(axes.begin(), axes.end(), [](const PoolAxis& axis) { return axis.adaptive; })}};
}

void require_axes(std::string_view op, const Spec& x, std::size_t axes) {
  constexpr std::string_view names[] = {"L", "H, W", "D, H, W"};
  require_floating(op, x);
  const auto rank = static_cast<std::size_t>(x.shape.rank());
  if (rank != axes + 1 && rank != axes + 2)
    throw ShapeError(
        fmt::format("{}: needs {{N, C, {}}} or {{C, {}}}, got {}", op, names[axes - 1], names[axes - 1], to_string(x)));
}

PoolAxes pool_axes(std::string_view op, const Spec& x, const Extents& kernel, const Extents& stride, const Extents& before,
                   const Extents& after, const Extents& dilation, bool ceil_mode) {
  require_axes(op, x, kernel.size());
  constexpr std::string_view names[] = {"depth", "height", "width"};
  PoolAxes axes(kernel.size());
  for (std::size_t i = 0; i < axes.size(); ++i) {
    axes[i] = {.kernel = kernel[i],
               .stride = stride[i],
               .before = before[i],
               .after = after[i],
               .dilation = dilation[i],
               .in = x.shape[static_cast<int>(i) - static_cast<int>(axes.size())]};
    const auto name = axes.size() == 1 ? "length" : names[i + 3 - axes.size()];
    axes[i].out = output_extent(op, name, axes[i], x.shape, ceil_mode);
  }
  return axes;
}

PoolAxes adaptive_axes(std::string_view op, const Spec& x, const Extents& output_size) {
  require_axes(op, x, output_size.size());
  PoolAxes axes(output_size.size());
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto in = x.shape[static_cast<int>(i) - static_cast<int>(axes.size())],
               out = output_size[i] == -1 ? in : output_size[i];
    if (in < 1 || out < 1)
      throw ShapeError(fmt::format("{}: {} cannot be pooled to {}", op, to_string(x), fmt::join(output_size, " x ")));
    axes[i] = {.in = in, .out = out, .adaptive = in % out != 0};
    if (!axes[i].adaptive) axes[i].kernel = axes[i].stride = in / out;
  }
  return axes;
}

PoolAxes global_axes(std::string_view op, const Spec& x, std::size_t axes) { return adaptive_axes(op, x, Extents(axes, 1)); }

PoolWindows plane_windows(const PoolAxis& v, const PoolAxis& h) {
  PoolWindows windows{.h = v.in, .w = h.in, .out_h = v.out, .out_w = h.out};
  windows.adaptive = v.adaptive || h.adaptive;
  if (windows.adaptive) return windows;
  windows.kernel = {v.kernel, h.kernel};
  windows.stride = {v.stride, h.stride};
  windows.dilation = {v.dilation, h.dilation};
  windows.padding = {v.before, h.before, v.after, h.after};
  return windows;
}

std::int64_t inputs(const PoolAxes& axes) { return product(axes, &PoolAxis::in); }
std::int64_t outputs(const PoolAxes& axes) { return product(axes, &PoolAxis::out); }
Shape input_shape(std::int64_t n, std::int64_t c, const PoolAxes& axes) { return with_extents(n, c, axes, &PoolAxis::in); }
Shape output_shape(std::int64_t n, std::int64_t c, const PoolAxes& axes) { return with_extents(n, c, axes, &PoolAxis::out); }

}  // namespace clnet::ops
