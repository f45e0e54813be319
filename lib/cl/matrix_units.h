// Matrix units: the ones that a device claims to have, and whether they work.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "clnet/device.h"
#include "lib/cl/opencl.h"

namespace clnet::ocl {

/// The element type of a multiplication; sums are f32. tf32 is f32 rounded to 10 bits of mantissa.
enum class UnitElement : std::uint8_t { f16, bf16, tf32 };
std::string_view to_string(UnitElement element);

/// A kind of unit of kernels/matrix_units.clh.
struct MatrixUnit {
  std::string_view name;  ///< MATRIX_UNIT_<name>
  std::int64_t wave;      ///< work-items that share the operands and sums of one multiplication
};

/// The device's unit: NVIDIA's mma.sync, AMD's WMMA and MFMA by the architecture, Intel's by the smallest sub-group. CPUs and
/// simulators have an emulation, so that tests cover the rest.
std::optional<MatrixUnit> matrix_unit(const DeviceInfo& device);

/// The layouts of operands and sums that the emulation knows; the first is matrix_unit()'s on a CPU.
std::span<const MatrixUnit> emulated_units();

/// The defines of programs for the unit.
std::vector<std::string> defines_of(const MatrixUnit& unit, UnitElement element);

/// Why the device cannot multiply such elements, or nothing. The first call tries the device's claim and keeps the result in the
/// cache folder, for this device, driver and state of clnet's kernels. On the null driver, which computes nothing, and for absent
/// devices the claim counts. Several threads may call it.
std::optional<std::string> matrix_unit_refusal(const DeviceInfo& device, UnitElement element);

/// A report for users, without a probe, by element type: "work", "not tried yet", or the fault. Empty for a device without units
/// known to clnet.
std::vector<std::pair<UnitElement, std::string>> matrix_unit_states(const DeviceInfo& device);

/// The file of the result; nothing without a cache folder.
std::optional<std::string> matrix_units_file(const DeviceInfo& device, UnitElement element);

/// Builds kernels/matrix_units_probe.cl, multiplies once and compares. Returns the fault, or an empty text. Throws DeviceError
/// where the device fails otherwise.
std::string try_matrix_unit(const ::cl::Device& device, const DeviceInfo& info, const MatrixUnit& unit, UnitElement element);

}  // namespace clnet::ocl
