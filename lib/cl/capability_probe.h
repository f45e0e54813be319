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

struct CapabilityProbe {
  std::string_view what;  ///< the capability, for the log: "matrix units"
  std::string name;       ///< name of the kept result, one per separate claim of a device
  std::string claim;      ///< the kind of the claim, for the log
  /// Returns the fault, or an empty text. Throws DeviceError where the device fails otherwise.
  std::function<std::string(const ::cl::Device&, const DeviceInfo&)> run;
};

/// The fault of the claim, or an empty text. The first call tries it and keeps the result for this device, driver and state of
/// clnet's kernels. On the null driver, which computes nothing, and for absent devices the claim counts. Several threads may call
/// it.
std::string capability_fault(const DeviceInfo& device, const CapabilityProbe& probe);

/// The kept result, without probing: the fault, or an empty text for none. Nothing where no probe was completed.
std::optional<std::string> kept_capability_fault(const DeviceInfo& device, std::string_view name);

/// The file of the result, by CapabilityProbe::name; nothing without a cache folder.
std::optional<std::string> probe_file(const DeviceInfo& device, std::string_view name);

/// A probe's kernel, or the compiler's reason for refusal without the source. Kernel and program have the same name.
struct ProbeKernel {
  ::cl::Kernel kernel;
  std::string refusal;
};
/// Builds a probe. Throws DeviceError where building fails for another reason, as a lack of memory.
ProbeKernel build_probe_kernel(ProgramCache& programs, const ProgramSource& program);

}  // namespace clnet::ocl
