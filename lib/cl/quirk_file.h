// Faults that clnet-info --self-test found in a device, in a file of the cache folder. Every program that opens the device reads
// it. lib/cl/quirks has the faults of drivers that are known beforehand.
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
  /// Measured limits below the stated ones, by name: max_work_group_size, local_memory, max_allocation and other measured ones.
  std::map<std::string, std::uint64_t> limits;
};

/// The identity of findings and measurements: device, driver, clnet's version and the state of its kernels.
std::string identity(const DeviceInfo& device);

/// The file of a device's quirks; nothing without a cache folder.
std::optional<std::string> quirk_file(const DeviceInfo& device);
/// Reads the quirks. A missing file, and one of another device, driver or version, has none. A damaged one has none either, and
/// brings a warning.
FoundQuirks read_quirks(const std::string& path, const DeviceInfo& device);
/// Replaces the file. Throws FileError.
void write_quirks(const std::string& path, const DeviceInfo& device, const FoundQuirks& quirks);

/// Whether CLNET_QUIRKS keeps them in force. Throws Error unless it is on or off.
bool found_quirks_count();
/// Corrects the device's properties by the findings, and adds its broken solvers.
void apply_found_quirks(DeviceInfo& info);

}  // namespace clnet::ocl
