#include "lib/ops/pool/pool2d.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "lib/exec/choose/nontemporal_stores.h"
#include "lib/ops/rows.h"

namespace clnet::ops {

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

bool PoolWindows::overlap() const {
  return adaptive || stride.height <= (kernel.height - 1) * dilation.height ||
         stride.width <= (kernel.width - 1) * dilation.width;
}

std::int64_t window_elements(const PoolWindows& p) {
  const auto along = [&](std::int64_t in, std::int64_t out, std::int64_t kernel) {
    return std::min(in, p.adaptive ? in / out + 2 : kernel);
  };
  return along(p.h, p.out_h, p.kernel.height) * along(p.w, p.out_w, p.kernel.width);
}

std::int64_t covering_windows(const PoolWindows& p) {
  const auto along = [&](std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t dilation, std::int64_t stride) {
    return std::min(out, p.adaptive ? out / std::max<std::int64_t>(1, in) + 2 : (kernel - 1) * dilation / stride + 1);
  };
  return along(p.h, p.out_h, p.kernel.height, p.dilation.height, p.stride.height) *
         along(p.w, p.out_w, p.kernel.width, p.dilation.width, p.stride.width);
}

std::optional<std::string> needs_vector_cpu(const DeviceInfo& device) {
  if (device.prefers_vector_kernels) return std::nullopt;
  return "one work-item for many elements is for CPUs with vectors";
}

std::vector<std::int64_t> pool_rows(std::int64_t planes, std::int64_t height, const DeviceInfo& device) {
  const auto bands = std::max<std::int64_t>(1, 8 * device.compute_units / std::max<std::int64_t>(1, planes));
  std::vector<std::int64_t> result;
  for (const auto other : {bands, 2 * bands, bands / 2})
    if (const auto rows = std::max<std::int64_t>(1, ceil_div(height, std::max<std::int64_t>(1, other)));
        std::find(result.begin(), result.end(), rows) == result.end())
      result.push_back(rows);
  return result;
}

std::vector<exec::Config> pool_configs(const std::vector<std::int64_t>& rows, const std::vector<std::int64_t>& lanes) {
  std::vector<exec::Config> result;
  for (const auto width : lanes) result.push_back({{"lanes", width}, {"rows", rows.front()}});
  for (const auto count : rows) {
    if (lanes.empty())
      result.push_back({{"rows", count}});
    else if (count != rows.front())
      result.push_back({{"lanes", lanes.front()}, {"rows", count}});
  }
  return result;
}

bool pool_nontemporal_stores(std::int64_t results, std::int64_t input, const DeviceInfo& device) {
  return exec::nontemporal_stores(device, std::max(results, input / 2));
}

std::int64_t pool_vector_width(const PoolWindows& p, std::int64_t widest) {
  const auto reach = (p.kernel.width - 1) * p.dilation.width, stride = p.stride.width, left = p.padding.left;
  if (p.adaptive || stride > 2 || reach + 1 < stride || p.w + left <= reach) return 0;
  const auto first = ceil_div(left, stride), last = std::min((p.w + left - reach - 1) / stride + 1, p.out_w);
  for (std::int64_t width : {16, 8, 4})
    if (width <= widest && width <= last - first) return width;
  return 0;
}

bool few_taps(const PoolWindows& p) { return p.kernel.height * p.kernel.width <= 16; }

std::string PoolWindows::text(std::int64_t planes) const {
  return fmt::format("{} x {}x{} to {}x{}", planes, h, w, out_h, out_w);
}

namespace {

std::array<std::pair<std::string_view, std::int64_t>, 10> sizes_of(const PoolWindows& p) {
  return {{{"KERNEL_H", p.kernel.height},
           {"KERNEL_W", p.kernel.width},
           {"STRIDE_H", p.stride.height},
           {"STRIDE_W", p.stride.width},
           {"DILATION_H", p.dilation.height},
           {"DILATION_W", p.dilation.width},
           {"TOP", p.padding.top},
           {"LEFT", p.padding.left},
           {"BOTTOM", p.padding.bottom},
           {"RIGHT", p.padding.right}}};
}

}  // namespace

void define_windows(exec::Launch& launch, const PoolWindows& p) {
  if (p.inside()) launch.define("INSIDE", 1);
  launch.define("FIXED_WINDOWS", 1);
  for (const auto& [name, size] : sizes_of(p)) launch.define(name, size);
}

void launch_pool(exec::Launch& launch, const PoolWindows& p, std::int64_t planes, std::int64_t height, std::int64_t width,
                 std::int64_t rows, bool unroll) {
  launch.args({planes, rows, p.h, p.w, p.out_h, p.out_w});
  if (p.adaptive) launch.define("ADAPTIVE", 1);
  // Large windows gain nothing from unrolling, and global pooling would make a program per image size.
  if (unroll && rows > 0 && few_taps(p)) {
    define_windows(launch, p);
  } else {
    if (p.inside()) launch.define("INSIDE", 1);
    for (const auto& [name, size] : sizes_of(p)) launch.arg(size);
  }
  if (rows > 0)
    launch.define("ROWS", 1).range({(height + rows - 1) / rows, planes}, {1, 1});
  else
    launch.range({height * width, planes}, {64, 1});
  launch.detail(p.text(planes));
}

}  // namespace clnet::ops
