// Figures of the cost models for kinds of devices, used where nothing was measured.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "clnet/device.h"

namespace clnet::exec {

/// The number of tiles of kernels/gemm_gpu.clh. By sums per work-item: 8 x 8, 8 x 4, 4 x 4, 2 x 2 in slices of 16, and of 8.
inline constexpr std::size_t gemm_tiles = 5;

struct DeviceClass {
  std::string_view name;
  std::string_view what;  ///< its devices, as text
  /// CPUs: cycles of an instruction on this many lanes; 0: there are none.
  double lanes_4 = 0, lanes_8 = 0, lanes_16 = 0;
  /// The share of multiply-adds in the instructions of a GPU tile's loop: the part of the peak that it reaches where nothing else
  /// limits it.
  std::array<double, gemm_tiles> tiles{};
  /// GPUs, here and below: words of local memory that a unit reads in the time of one multiply-add.
  double words = 0;
  /// Registers (of four bytes) and local memory (bytes) of a unit, which holds whole work-groups.
  std::int64_t registers = 0, local_memory = 0;
  /// Registers per work-item of the largest tile.
  std::int64_t largest_tile = 0;
  /// Compute units of the driver per such a unit: Intel's count vector engines.
  int units = 1;

  double instruction(std::int64_t lanes) const { return lanes >= 16 ? lanes_16 : lanes >= 8 ? lanes_8 : lanes_4; }
  /// The share of the device's multiply-adds that a loop reaches. `share` is the share of multiply-adds in its instructions,
  /// `per_word` their number per word of local memory read.
  double rate(double share, double per_word) const { return share < per_word * words || words == 0 ? share : per_word * words; }
  /// The number of work-groups that a unit holds, from registers per item and bytes of local memory; at least one.
  std::int64_t groups_of_unit(std::int64_t items, std::int64_t item_registers, std::int64_t local_bytes) const;
};

std::span<const DeviceClass> device_classes();
/// The class by the device's capabilities. The first call measures the rate of vectors of 16 lanes (lib/cl/vector_rate.h).
const DeviceClass& device_class(const DeviceInfo& device);
const DeviceClass& device_class(std::string_view name);
/// The number of the device's units that hold work-groups; at least one.
std::int64_t units_of(const DeviceInfo& device);

}  // namespace clnet::exec
