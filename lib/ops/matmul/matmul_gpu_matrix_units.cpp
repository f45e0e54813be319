// Matrix products by units that multiply small matrices: f16 and bf16, and f32 where the user agrees to round it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <vector>

#include "lib/base/env.h"
#include "lib/cl/matrix_units.h"
#include "lib/ops/gemm_gpu.h"
#include "lib/ops/matmul/matmul_gpu.h"

namespace clnet::ops {

namespace {

/// Tiles for 16-bit elements, by the items of a wave; of f32 slices are half as deep.
constexpr std::array tiles_32{RatedTile{{128, 128, 32, 64, 32}, 0.35}, RatedTile{{64, 64, 32, 32, 32}, 0.25},
                              RatedTile{{32, 32, 32, 16, 16}, 0.12}};
constexpr std::array tiles_8{RatedTile{{128, 128, 32, 32, 16}, 0.35}, RatedTile{{64, 64, 32, 32, 16}, 0.25},
                             RatedTile{{32, 32, 32, 16, 16}, 0.12}};
constexpr std::array tiles_16{RatedTile{{128, 128, 32, 32, 32}, 0.35}, RatedTile{{64, 64, 32, 32, 16}, 0.25},
                              RatedTile{{32, 32, 32, 16, 16}, 0.12}};
constexpr std::array tiles_64{RatedTile{{128, 128, 32, 64, 64}, 0.35}, RatedTile{{64, 64, 32, 32, 32}, 0.25},
                              RatedTile{{32, 32, 32, 32, 16}, 0.12}};

ocl::UnitElement element_of(Dtype dtype) {
  return dtype == Dtype::f16 ? ocl::UnitElement::f16 : dtype == Dtype::bf16 ? ocl::UnitElement::bf16 : ocl::UnitElement::tf32;
}

std::int64_t items_of(const GemmTile& tile, const ocl::MatrixUnit& unit) {
  return tile.m / tile.rows * (tile.n / tile.columns) * unit.wave;
}

/// Of local memory, however the operands lie; the emulation's waves exchange words there.
std::int64_t local_bytes(const GemmTile& tile, const ocl::MatrixUnit& unit, std::int64_t element) {
  const auto chunk = 16 / element;
  const auto slice = [&](std::int64_t lines) { return lines * tile.k + chunk * std::max(lines, tile.k); };
  const auto exchanged = unit.name.starts_with("emulated") ? items_of(tile, unit) / unit.wave * 1024 : 0;
  return 2 * element * (slice(tile.m) + slice(tile.n)) + exchanged;
}

std::span<const RatedTile> all_tiles(const ocl::MatrixUnit& unit) {
  switch (unit.wave) {
    case 8: return tiles_8;
    case 16: return tiles_16;
    case 64: return tiles_64;
    default: return tiles_32;
  }
}

/// Those that the device takes.
std::vector<RatedTile> tiles_for(Dtype dtype, const ocl::MatrixUnit& unit, const DeviceInfo& device) {
  std::vector<RatedTile> result;
  const auto element = static_cast<std::int64_t>(size_of(dtype));
  for (auto rated : all_tiles(unit)) {
    rated.tile.k = rated.tile.k * 2 / element;
    if (items_of(rated.tile, unit) <= static_cast<std::int64_t>(device.max_work_group_size) &&
        local_bytes(rated.tile, unit, element) <= static_cast<std::int64_t>(device.local_memory))
      result.push_back(rated);
  }
  return result;
}

/// The device's; where it is emulated a configuration may name another by its wave.
ocl::MatrixUnit unit_of(const exec::Config& config, const DeviceInfo& device) {
  const auto unit = ocl::matrix_unit(device).value();
  if (!unit.name.starts_with("emulated")) return unit;
  for (const auto& emulated : ocl::emulated_units())
    if (emulated.wave == config.value("wave", unit.wave)) return emulated;
  return unit;
}

}  // namespace

std::optional<std::string> matmul_gpu_matrix_units_rejects(const MatmulProblem& p, const DeviceInfo& device) {
  if (p.dtype == Dtype::f32 && !env::flag("CLNET_TF32")) return "f32 is rounded for matrix units only with CLNET_TF32=1";
  const auto unit = ocl::matrix_unit(device);
  if (unit && tiles_for(p.dtype, *unit, device).empty())
    return fmt::format("the device takes no tile for {}: too little local memory, or too small work-groups", to_string(p.dtype));
  return ocl::matrix_unit_refusal(device, element_of(p.dtype));
}

std::optional<std::string> matmul_gpu_matrix_units_declines(const MatmulProblem& p, const DeviceInfo&) {
  // A unit makes 16 x 16 sums, and fetching is what takes the time here.
  if (std::min(p.m, p.n) < 8) return fmt::format("{} rows and {} columns use little of a unit", p.m, p.n);
  return std::nullopt;
}

std::vector<exec::Config> matmul_gpu_matrix_units_configs(const MatmulProblem& p, const DeviceInfo& device) {
  const auto unit = ocl::matrix_unit(device).value();
  // They multiply some four times as fast as other kernels while memory is as slow.
  const auto listed = [&](std::span<const RatedTile> tiles) { return gemm_configs({p.m, p.n, p.k, p.batch}, tiles, 64, device); };
  if (!unit.name.starts_with("emulated")) return listed(tiles_for(p.dtype, unit, device));
  // For tests: in small tiles there are more of a problem's edges.
  std::vector<exec::Config> result;
  for (const auto& emulated : ocl::emulated_units()) {
    if (emulated.name != unit.name && element_of(p.dtype) == ocl::UnitElement::tf32) continue;
    for (auto& config : listed(std::array{tiles_for(p.dtype, emulated, device).back()})) {
      if (emulated.name != unit.name) config.add("wave", emulated.wave);
      result.push_back(std::move(config));
    }
  }
  return result;
}

void matmul_gpu_matrix_units(const MatmulProblem& p, exec::Recorder& recorder) {
  const auto unit = unit_of(recorder.config(), recorder.device());
  record_tiles(p, recorder,
               {.name = "matmul_gpu_matrix_units",
                .items = items_of(GemmTile::of(recorder.config()), unit),
                .defines = ocl::defines_of(unit, element_of(p.dtype)),
                .chunk = 8});
}

}  // namespace clnet::ops
