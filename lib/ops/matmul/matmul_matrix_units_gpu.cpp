// Matrix products by units that multiply small matrices: f16 and bf16, and f32 where the user agrees to round it.
#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <vector>

#include "lib/base/env.h"
#include "lib/cl/matrix_units.h"
#include "lib/ops/matmul/matmul_gpu.h"
#include "lib/ops/matrix_unit_tiles.h"

namespace clnet::ops {

namespace {

/// Of slices, in elements of two bytes.
constexpr std::int64_t depth = 32;
/// Slices in local memory, where they are copied there while others are multiplied: three of the largest tile are 48 KiB.
constexpr std::int64_t stages = 3;

/// NVIDIA's from sm_80 on.
bool copies_beside(const ocl::MatrixUnit& unit) { return unit.name == "mma_sm80"; }

/// The largest tile in waves of 64 x 64 sums, where the device copies beside and has room for the stages: on an H200 1.2 to 1.4
/// times as fast as the tile that it stands for. Smaller tiles gained nothing there, as more groups of them share a
/// multiprocessor.
std::vector<RatedTile> with_stages(std::span<const RatedTile> tiles, const MatmulProblem& p, const DeviceInfo& device) {
  std::vector<RatedTile> result(tiles.begin(), tiles.end());
  const auto unit = ocl::matrix_unit(device).value();
  for (auto& [tile, efficiency, held] : result)
    if (copies_beside(unit) && tile.m == 128 &&
        stages * (tile.m + tile.n) * tile.k * static_cast<std::int64_t>(size_of(p.dtype)) <=
            static_cast<std::int64_t>(device.local_memory))
      tile.columns = 64, efficiency = 0.45;
  return result;
}

}  // namespace

std::optional<std::string> matmul_matrix_units_gpu_rejects(const MatmulProblem& p, const DeviceInfo& device) {
  if (p.dtype == Dtype::f32 && !env::flag("CLNET_TF32")) return "f32 is rounded for matrix units only with CLNET_TF32=1";
  const auto unit = ocl::matrix_unit(device);
  if (unit && unit_tiles(p.dtype, depth, *unit, device).empty())
    return fmt::format("the device takes no tile for {}: too little local memory, or too small work-groups", to_string(p.dtype));
  return ocl::matrix_unit_refusal(device, unit_element(p.dtype));
}

std::optional<std::string> matmul_matrix_units_gpu_declines(const MatmulProblem& p, const DeviceInfo&) {
  // A unit makes 16 x 16 sums, and fetching is what takes the time here.
  if (std::min(p.m, p.n) < 8) return fmt::format("{} rows and {} columns use little of a unit", p.m, p.n);
  return std::nullopt;
}

std::vector<exec::Config> matmul_matrix_units_gpu_configs(const MatmulProblem& p, const DeviceInfo& device) {
  // They multiply some four times as fast as other kernels while memory is as slow.
  const auto unit = ocl::matrix_unit(device).value();
  auto result = unit_configs(p.dtype, depth, device, [&](std::span<const RatedTile> tiles) {
    auto configs = gemm_configs({p.m, p.n, p.k, p.batch}, with_stages(tiles, p, device), 64, device);
    for (auto& config : configs)
      if (copies_beside(unit) && config["columns"] == 64) config.add("stages", stages);
    return configs;
  });
  // The emulation lists small tiles only, and runs one of them so.
  if (unit.name == ocl::emulated_units()[0].name && !result.empty()) result.emplace_back(result.front()).add("stages", stages);
  return result;
}

void matmul_matrix_units_gpu(const MatmulProblem& p, exec::Recorder& recorder) {
  const auto unit = unit_of(recorder.config(), recorder.device());
  record_tiles(p, recorder,
               {.name = "matmul_matrix_units_gpu",
                .items = unit_items(GemmTile::of(recorder.config()), unit),
                .defines = ocl::defines_of(unit, unit_element(p.dtype)),
                .chunk = 8,
                .stages = recorder.config().value("stages", 0)});
}

}  // namespace clnet::ops
