// Capability probes: a device's claim is tried once, and the result is kept in the cache folder.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "clnet/device.h"
#include "lib/cl/opencl.h"
#include "lib/cl/program_cache.h"

namespace clnet::ocl {

struct Trial {
  std::string_view what;  ///< the capability, for the log: "matrix units"
  std::string name;       ///< name of the kept result, one per separate claim of a device
  std::string claim;      ///< the kind of the claim, for the log
  /// Returns the fault, or an empty text. Throws DeviceError where the device fails otherwise.
  std::function<std::string(const ::cl::Device&, const DeviceInfo&)> run;
};

/// The fault of the claim, or an empty text. The first call tries it and keeps the result for this device, driver and state of
/// clnet's kernels. On the null driver, which computes nothing, and for absent devices the claim counts. Several threads may call
/// it.
std::string fault_of(const DeviceInfo& device, const Trial& trial);

/// The kept result, without a trial: the fault, or an empty text for none. Nothing where no trial was completed.
std::optional<std::string> kept_fault(const DeviceInfo& device, std::string_view name);

/// The file of the result, by Trial::name; nothing without a cache folder.
std::optional<std::string> trial_file(const DeviceInfo& device, std::string_view name);

/// A probe's kernel, or the compiler's reason for refusal without the source. Kernel and program have the same name.
struct Probe {
  ::cl::Kernel kernel;
  std::string refusal;
};
/// Builds a probe. Throws DeviceError where building fails for another reason, as a lack of memory.
Probe build_probe(ProgramCache& programs, const ProgramSource& program);

}  // namespace clnet::ocl
