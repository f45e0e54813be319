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
  /// Multiply-adds among the instructions of a GPU's tile's loop, with which part of the peak it runs where nothing else bounds
  /// it.
  std::array<double, gemm_tiles> tiles{};
  /// GPUs, for all below: words of local memory that a unit reads in the time of a multiply-add that it could do.
  double words = 0;
  /// What a unit, which holds whole work-groups, has of registers (of four bytes) and local memory (bytes).
  std::int64_t registers = 0, local_memory = 0;
  /// Registers that a work-item of the largest tile takes.
  std::int64_t largest_tile = 0;
  /// Of what drivers count as compute units, how many are such a unit: Intel's count their vector engines.
  int units = 1;

  double instruction(std::int64_t lanes) const { return lanes >= 16 ? lanes_16 : lanes >= 8 ? lanes_8 : lanes_4; }
  /// With what part of the device's multiply-adds a loop runs that has this part of them among its instructions, and so many for
  /// each word that it reads of local memory.
  double rate(double share, double per_word) const { return share < per_word * words || words == 0 ? share : per_word * words; }
  /// How many work-groups a unit holds, by registers of an item and bytes of local memory; one at least.
  std::int64_t groups_of_unit(std::int64_t items, std::int64_t item_registers, std::int64_t local_bytes) const;
};

std::span<const DeviceClass> device_classes();
/// By what the device can do; the rate of vectors of 16 lanes is measured when it is first asked for (lib/cl/vector_rate.h).
const DeviceClass& device_class(const DeviceInfo& device);
const DeviceClass& device_class(std::string_view name);
/// Units of the device that hold work-groups; one at least.
std::int64_t units_of(const DeviceInfo& device);

}  // namespace clnet::exec
