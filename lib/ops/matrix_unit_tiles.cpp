#include "lib/ops/matrix_unit_tiles.h"

#include <algorithm>
#include <array>
#include <utility>

namespace clnet::ops {

namespace {

/// By the items of a wave. Their slices are as deep as the kernel wants them.
constexpr std::array tiles_32{RatedTile{{128, 128, 0, 64, 32}, 0.35}, RatedTile{{64, 64, 0, 32, 32}, 0.25},
                              RatedTile{{32, 32, 0, 16, 16}, 0.12}};
constexpr std::array tiles_8{RatedTile{{128, 128, 0, 32, 16}, 0.35}, RatedTile{{64, 64, 0, 32, 16}, 0.25},
                             RatedTile{{32, 32, 0, 16, 16}, 0.12}};
constexpr std::array tiles_16{RatedTile{{128, 128, 0, 32, 32}, 0.35}, RatedTile{{64, 64, 0, 32, 16}, 0.25},
                              RatedTile{{32, 32, 0, 16, 16}, 0.12}};
constexpr std::array tiles_64{RatedTile{{128, 128, 0, 64, 64}, 0.35}, RatedTile{{64, 64, 0, 32, 32}, 0.25},
                              RatedTile{{32, 32, 0, 32, 16}, 0.12}};

std::span<const RatedTile> all_tiles(const ocl::MatrixUnit& unit) {
  switch (unit.wave) {
    case 8: return tiles_8;
    case 16: return tiles_16;
    case 64: return tiles_64;
    default: return tiles_32;
  }
}

bool is_emulated(const ocl::MatrixUnit& unit) { return unit.name.starts_with("emulated"); }

/// Of local memory, however the operands lie; the emulation's waves exchange words there.
std::int64_t local_bytes(const GemmTile& tile, const ocl::MatrixUnit& unit, std::int64_t element) {
  const auto chunk = 16 / element;
  const auto slice = [&](std::int64_t lines) { return lines * tile.k + chunk * std::max(lines, tile.k); };
  const auto exchanged = is_emulated(unit) ? unit_items(tile, unit) / unit.wave * 1024 : 0;
  return 2 * element * (slice(tile.m) + slice(tile.n)) + exchanged;
}

}  // namespace

ocl::UnitElement unit_element(Dtype dtype) {
  return dtype == Dtype::f16 ? ocl::UnitElement::f16 : dtype == Dtype::bf16 ? ocl::UnitElement::bf16 : ocl::UnitElement::tf32;
}

std::int64_t unit_items(const GemmTile& tile, const ocl::MatrixUnit& unit) {
  return tile.m / tile.rows * (tile.n / tile.columns) * unit.wave;
}

std::vector<RatedTile> unit_tiles(Dtype dtype, std::int64_t depth, const ocl::MatrixUnit& unit, const DeviceInfo& device) {
  std::vector<RatedTile> result;
  const auto element = static_cast<std::int64_t>(size_of(dtype));
  for (auto rated : all_tiles(unit)) {
    rated.tile.k = depth * 2 / element;
    if (unit_items(rated.tile, unit) <= static_cast<std::int64_t>(device.max_work_group_size) &&
        local_bytes(rated.tile, unit, element) <= static_cast<std::int64_t>(device.local_memory))
      result.push_back(rated);
  }
  return result;
}

ocl::MatrixUnit unit_of(const exec::Config& config, const DeviceInfo& device) {
  const auto unit = ocl::matrix_unit(device).value();
  if (!is_emulated(unit)) return unit;
  for (const auto& emulated : ocl::emulated_units())
    if (emulated.wave == config.value("wave", unit.wave)) return emulated;
  return unit;
}

std::vector<exec::Config> unit_configs(Dtype dtype, std::int64_t depth, const DeviceInfo& device,
                                       const std::function<std::vector<exec::Config>(std::span<const RatedTile>)>& listed) {
  const auto unit = ocl::matrix_unit(device).value();
  if (!is_emulated(unit)) return listed(unit_tiles(dtype, depth, unit, device));
  std::vector<exec::Config> result;
  for (const auto& emulated : ocl::emulated_units()) {
    if (emulated.name != unit.name && unit_element(dtype) == ocl::UnitElement::tf32) continue;
    for (auto& config : listed(std::array{unit_tiles(dtype, depth, emulated, device).back()})) {
      if (emulated.name != unit.name) config.add("wave", emulated.wave);
      result.push_back(std::move(config));
    }
  }
  return result;
}

}  // namespace clnet::ops
