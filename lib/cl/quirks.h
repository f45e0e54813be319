// The table of drivers' faults. A driver is recognised by the device's properties, never by a vendor id.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "clnet/device.h"
#include "lib/cl/opencl.h"
#include "lib/cl/prebuild.h"
#include "lib/cl/submission.h"

namespace clnet::ocl {

struct Quirk {
  std::string_view name;
  std::string_view fault;  ///< the fault, and clnet's reaction
  bool (*applies)(const DeviceInfo&);
  void (*work_around)(DeviceInfo&);
};

std::span<const Quirk> quirks();

/// Corrects the device's properties and puts the names of its quirks into info.quirks.
void apply_quirks(DeviceInfo& info);
/// Whether the quirk of this name applies.
bool has_quirk(const DeviceInfo& info, std::string_view name);
/// Whether its kernels run as instructions of this process.
bool runs_in_process(const DeviceInfo& info);
/// Whether its driver parses a long header of OpenCL's functions for every program that does not prevent it.
bool reads_long_header(const DeviceInfo& info);

/// The submission of commands to a device: by its driver's habits, or the plain queue under CLNET_DRIVER_HABITS=0. `own_queue`:
/// only clnet enqueues on the queue.
std::unique_ptr<Submission> submission_for(const cl::Context& context, const cl::Device& device, const DeviceInfo& info,
                                           bool own_queue);
/// The present way to build a device's kernels ahead. CLNET_DRIVER_HABITS=0: none, unless the compiler may end its process.
std::unique_ptr<Prebuilder> prebuilder_for(const DeviceInfo& device);
/// Ends the processes that wait to build ahead. Called at exit, or when the library is unloaded.
void end_prebuilders();

/// Why clnet cannot use a device that its driver offers, or empty.
std::string why_unusable(const DeviceInfo& info);
/// Advice for a machine without devices.
std::string driver_advice();

}  // namespace clnet::ocl
