// Tiles of products by matrix units (kernels/matrix_units.clh), for all operations that are such products.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "lib/cl/matrix_units.h"
#include "lib/ops/gemm_gpu.h"

namespace clnet::ops {

/// The elements that operands of this dtype are multiplied as; f32 is rounded.
ocl::UnitElement unit_element(Dtype dtype);

/// Work-items of a group.
std::int64_t unit_items(const GemmTile& tile, const ocl::MatrixUnit& unit);

/// Tiles that the device takes of elements of `dtype`, the largest first, in slices of `depth` elements of two bytes or half as
/// many of four; RM x RN are a wave's sums.
std::vector<RatedTile> unit_tiles(Dtype dtype, std::int64_t depth, const ocl::MatrixUnit& unit, const DeviceInfo& device);

/// The device's unit; where it is emulated a configuration may name another by its wave.
ocl::MatrixUnit unit_of(const exec::Config& config, const DeviceInfo& device);

/// What `listed` makes of the device's tiles; where units are emulated, of the smallest tile of each layout, as small tiles have
/// more of a problem's edges.
std::vector<exec::Config> unit_configs(Dtype dtype, std::int64_t depth, const DeviceInfo& device,
                                       const std::function<std::vector<exec::Config>(std::span<const RatedTile>)>& listed);

}  // namespace clnet::ops
