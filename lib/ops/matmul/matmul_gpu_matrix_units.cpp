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

}  // namespace

std::optional<std::string> matmul_gpu_matrix_units_rejects(const MatmulProblem& p, const DeviceInfo& device) {
  if (p.dtype == Dtype::f32 && !env::flag("CLNET_TF32")) return "f32 is rounded for matrix units only with CLNET_TF32=1";
  const auto unit = ocl::matrix_unit(device);
  if (unit && unit_tiles(p.dtype, depth, *unit, device).empty())
    return fmt::format("the device takes no tile for {}: too little local memory, or too small work-groups", to_string(p.dtype));
  return ocl::matrix_unit_refusal(device, unit_element(p.dtype));
}

std::optional<std::string> matmul_gpu_matrix_units_declines(const MatmulProblem& p, const DeviceInfo&) {
  // A unit makes 16 x 16 sums, and fetching is what takes the time here.
  if (std::min(p.m, p.n) < 8) return fmt::format("{} rows and {} columns use little of a unit", p.m, p.n);
  return std::nullopt;
}

std::vector<exec::Config> matmul_gpu_matrix_units_configs(const MatmulProblem& p, const DeviceInfo& device) {
  // They multiply some four times as fast as other kernels while memory is as slow.
  return unit_configs(p.dtype, depth, device, [&](std::span<const RatedTile> tiles) {
    return gemm_configs({p.m, p.n, p.k, p.batch}, tiles, 64, device);
  });
}

void matmul_gpu_matrix_units(const MatmulProblem& p, exec::Recorder& recorder) {
  const auto unit = unit_of(recorder.config(), recorder.device());
  record_tiles(p, recorder,
               {.name = "matmul_gpu_matrix_units",
                .items = unit_items(GemmTile::of(recorder.config()), unit),
                .defines = ocl::defines_of(unit, unit_element(p.dtype)),
                .chunk = 8});
}

}  // namespace clnet::ops
