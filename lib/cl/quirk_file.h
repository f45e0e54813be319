// What clnet-info --self-test found wrong with a device: a file in the cache folder, read by every program that opens the device.
// lib/cl/quirks has what is known of drivers beforehand.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "clnet/device.h"

namespace clnet::ocl {

struct BrokenSolver {
  std::string op, solver, reason;
};

struct FoundQuirks {
  std::vector<BrokenSolver> broken;
  /// What the device does in truth where it states more, by name: max_work_group_size, local_memory, max_allocation and what else
  /// was measured.
  std::map<std::string, std::uint64_t> limits;
};

/// What findings and measurements on a device depend on: device, driver, clnet's version and the state of its kernels.
std::string identity(const DeviceInfo& device);

/// Where a device's quirks are kept; nothing without a cache folder.
std::optional<std::string> quirk_file(const DeviceInfo& device);
/// A missing file has no quirks, nor has one of another device, driver or version; a damaged one has none either, with a warning.
FoundQuirks read_quirks(const std::string& path, const DeviceInfo& device);
/// Replaces the file. Throws FileError.
void write_quirks(const std::string& path, const DeviceInfo& device, const FoundQuirks& quirks);

/// Whether CLNET_QUIRKS leaves them in force. Throws Error when it says neither on nor off.
bool found_quirks_count();
/// Corrects what the device said by what was found, and notes its broken solvers.
void apply_found_quirks(DeviceInfo& info);

}  // namespace clnet::ocl
