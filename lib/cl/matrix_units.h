// Units that multiply small matrices: which of them a device says it has, and whether they work.
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

/// What units multiply; sums are f32. tf32: f32 rounded to 10 bits of mantissa.
enum class UnitElement : std::uint8_t { f16, bf16, tf32 };
std::string_view to_string(UnitElement element);

/// A way to multiply, as kernels/matrix_units.clh knows it.
struct MatrixUnit {
  std::string_view name;  ///< MATRIX_UNIT_<name>
  std::int64_t wave;      ///< work-items that hold the operands and sums of a multiplication together
};

/// NVIDIA's mma.sync, AMD's WMMA and MFMA by the device's generation, Intel's by the smallest sub-group. On CPUs and simulators
/// the emulation, by which tests see the rest.
std::optional<MatrixUnit> matrix_unit(const DeviceInfo& device);

/// What the emulation can lay operands and sums out like; the first is what matrix_unit() gives on a CPU.
std::span<const MatrixUnit> emulated_units();

/// The names that programs for the unit define.
std::vector<std::string> defines_of(const MatrixUnit& unit, UnitElement element);

/// Why the device cannot multiply such elements, if so. What a device claims is tried at the first question, and what came of it
/// is kept in the cache folder for this device, driver and state of clnet's kernels. Where nothing is computed (the null driver)
/// and for devices that are not here the claim counts. Several threads may ask.
std::optional<std::string> matrix_unit_refusal(const DeviceInfo& device, UnitElement element);

/// What is known of them without trying, for people, by the elements: "work", "not tried yet", or why not. Empty where the device
/// has none that clnet knows.
std::vector<std::pair<UnitElement, std::string>> matrix_unit_states(const DeviceInfo& device);

/// The file in which it is kept; nothing without a cache folder.
std::optional<std::string> matrix_units_file(const DeviceInfo& device, UnitElement element);

/// Builds a program (kernels/matrix_units_probe.cl), multiplies once and compares: what is wrong, or nothing. Throws DeviceError
/// where the device fails otherwise.
std::string try_matrix_unit(const ::cl::Device& device, const DeviceInfo& info, const MatrixUnit& unit, UnitElement element);

}  // namespace clnet::ocl
