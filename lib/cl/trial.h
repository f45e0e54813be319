// What a device claims to do, tried once, with the answer kept in the cache folder.
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
  std::string_view what;  ///< that is tried, for the log: "matrix units"
  std::string name;       ///< of the kept answers: one for each claim of a device that is tried by itself
  std::string claim;      ///< how it is done, for the log
  /// Says what is wrong, or nothing; throws DeviceError where the device fails otherwise.
  std::function<std::string(const ::cl::Device&, const DeviceInfo&)> run;
};

/// What is wrong with the claim, or nothing. It is tried at the first question, and what came of it is kept for this device,
/// driver and state of clnet's kernels. Where nothing is computed (the null driver) and for devices that are not here the claim
/// counts. Several threads may ask.
std::string fault_of(const DeviceInfo& device, const Trial& trial);

/// What is kept of it, without trying: the fault, or empty where there was none; nothing where nobody has tried it to the end.
std::optional<std::string> kept_fault(const DeviceInfo& device, std::string_view name);

/// The file in which it is kept, by Trial::name; nothing without a cache folder.
std::optional<std::string> trial_file(const DeviceInfo& device, std::string_view name);

/// The kernel of a program of the same name; or, by the compiler's words without the source, why it is refused.
struct Probe {
  ::cl::Kernel kernel;
  std::string refusal;
};
/// Throws DeviceError where building fails for another reason, as a lack of memory.
Probe build_probe(ProgramCache& programs, const ProgramSource& program);

}  // namespace clnet::ocl
