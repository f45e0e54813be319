// Convolution and its gradients of f16 and bf16 by units that multiply small matrices.
#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <vector>

#include "lib/cl/matrix_units.h"
#include "lib/exec/choose/device_class.h"
#include "lib/ops/conv/conv2d_gpu.h"
#include "lib/ops/matrix_unit_tiles.h"

namespace clnet::ops {

namespace {

/// Of slices: a unit's. Elements are gathered one by one, and all that an item has under way takes registers.
constexpr std::int64_t unit_depth = 16;
/// Of an item of the largest tile, on NVIDIA's (tools/dev/offline_limits.txt): weights in the order of the kernel come by 16
/// bytes.
constexpr std::int64_t registers = 162, registers_packed = 128;

/// How many groups of the largest tile a unit holds goes by their registers.
std::vector<RatedTile> held_by(std::span<const RatedTile> tiles, std::int64_t of_largest, const exec::DeviceClass& kind) {
  std::vector<RatedTile> result(tiles.begin(), tiles.end());
  for (auto& [tile, efficiency, held] : result)
    if (tile.m >= 128) held = kind.groups_of_unit(256, of_largest, tile.local_bytes());
  return result;
}

std::vector<exec::Config> configs(const Conv2dProblem& p, Conv2dDirection direction, std::int64_t of_largest,
                                  const DeviceInfo& device) {
  // As products of matrices: memory is as slow as ever.
  return unit_configs(p.dtype, unit_depth, device, [&](std::span<const RatedTile> tiles) {
    return gemm_configs(conv2d_extents(p, direction), held_by(tiles, of_largest, exec::device_class(device)), 64, device);
  });
}

TiledConv kernel_of(const Conv2dProblem& p, const exec::Recorder& recorder) {
  const auto unit = unit_of(recorder.config(), recorder.device());
  return {.name = "conv2d_matrix_units_gpu",
          .items = unit_items(GemmTile::of(recorder.config()), unit),
          .defines = ocl::defines_of(unit, unit_element(p.dtype))};
}

}  // namespace

std::optional<std::string> conv2d_matrix_units_gpu_rejects(const Conv2dProblem& p, Conv2dDirection direction,
                                                           const DeviceInfo& device) {
  if (p.dtype != Dtype::f16 && p.dtype != Dtype::bf16) return "f32 is not rounded for matrix units";
  if (auto reason = conv2d_tiles_reject(p, direction)) return reason;
  const auto unit = ocl::matrix_unit(device);
  if (unit && unit_tiles(p.dtype, unit_depth, *unit, device).empty())
    return fmt::format("the device takes no tile for {}: too little local memory, or too small work-groups", to_string(p.dtype));
  return ocl::matrix_unit_refusal(device, unit_element(p.dtype));
}

std::optional<std::string> conv2d_matrix_units_gpu_declines(const Conv2dProblem& p, Conv2dDirection direction,
                                                            const DeviceInfo&) {
  const auto e = conv2d_extents(p, direction);
  // A unit makes 16 x 16 sums.
  if (std::min(e.m, e.n) < 8) return fmt::format("products of {} by {} use little of a unit", e.m, e.n);
  return std::nullopt;
}

std::vector<exec::Config> conv2d_matrix_units_gpu_configs(const Conv2dProblem& p, Conv2dDirection direction,
                                                          const DeviceInfo& device) {
  return configs(p, direction, registers, device);
}

void conv2d_matrix_units_gpu(const Conv2dProblem& p, Conv2dDirection direction, exec::Recorder& recorder) {
  record_conv2d_tiles(p, direction, recorder, kernel_of(p, recorder));
}

std::optional<std::string> conv2d_packed_matrix_units_gpu_rejects(const Conv2dProblem& p, Conv2dDirection direction,
                                                                  const DeviceInfo& device) {
  if (auto reason = conv2d_matrix_units_gpu_rejects(p, direction, device)) return reason;
  if (auto reason = packed_weight_rejects(p, direction)) return reason;
  // Places and weights together take more registers than an item has on sm_86 and sm_90.
  if (!blocked(p, direction, {.m = 0, .n = 0, .k = unit_depth, .rows = 0, .columns = 0}))
    return "each element has a tap of its own";
  return std::nullopt;
}

std::optional<std::string> conv2d_packed_matrix_units_gpu_declines(const Conv2dProblem& p, Conv2dDirection direction,
                                                                   const DeviceInfo& device) {
  if (!p.readers.lasting) return "the weight will be another one next time";
  return conv2d_matrix_units_gpu_declines(p, direction, device);
}

std::vector<exec::Config> conv2d_packed_matrix_units_gpu_configs(const Conv2dProblem& p, Conv2dDirection direction,
                                                                 const DeviceInfo& device) {
  return configs(p, direction, registers_packed, device);
}

void conv2d_packed_matrix_units_gpu(const Conv2dProblem& p, Conv2dDirection direction, exec::Recorder& recorder) {
  auto kernel = kernel_of(p, recorder);
  kernel.packed = {p.dtype, true};
  record_conv2d_tiles(p, direction, recorder, kernel);
}

}  // namespace clnet::ops
