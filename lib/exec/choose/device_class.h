// What clnet assumes about kinds of devices where nobody has measured: the figures that the models of costs are fed with.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "clnet/device.h"

namespace clnet::exec {

/// Tiles of kernels/gemm_gpu.clh by how many sums a work-item has: 8 x 8, 8 x 4, 4 x 4, 2 x 2 in slices of 16, and of 8.
inline constexpr std::size_t gemm_tiles = 5;

struct DeviceClass {
  std::string_view name;
  std::string_view what;  ///< which devices are of it
  /// CPUs: what an instruction on so many lanes costs, in cycles; 0 where there are none.
  double lanes_4 = 0, lanes_8 = 0, lanes_16 = 0;
  /// GPUs: with what part of the device's multiply-adds a tile runs where there are groups enough.
  std::array<double, gemm_tiles> tiles{};

  double instruction(std::int64_t lanes) const { return lanes >= 16 ? lanes_16 : lanes >= 8 ? lanes_8 : lanes_4; }
};

CLNET_API std::span<const DeviceClass> device_classes();
/// By what the device can do; the rate of vectors of 16 lanes is measured when it is first asked for (lib/cl/vector_rate.h).
CLNET_API const DeviceClass& device_class(const DeviceInfo& device);
CLNET_API const DeviceClass& device_class(std::string_view name);

}  // namespace clnet::exec
