// What drivers get wrong, in one table: recognised by what the device says of itself, never by a vendor id.
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
  std::string_view fault;  ///< what goes wrong, and what clnet does about it
  bool (*applies)(const DeviceInfo&);
  void (*work_around)(DeviceInfo&);
};

std::span<const Quirk> quirks();

/// Corrects what the device said and notes the names of the quirks that apply in info.quirks.
void apply_quirks(DeviceInfo& info);
/// Whether the quirk of this name applies.
bool has_quirk(const DeviceInfo& info, std::string_view name);
/// Whether its kernels are instructions that this process runs.
bool runs_in_process(const DeviceInfo& info);
/// Whether its driver reads a long header of OpenCL's functions for every program that does not guard against it.
bool reads_long_header(const DeviceInfo& info);

/// How commands are submitted to a device and waited for: as its driver's habits ask for, or CLNET_DRIVER_HABITS=0 to the plain
/// queue. `own_queue`: nobody but clnet enqueues on the queue.
std::unique_ptr<Submission> submission_for(const cl::Context& context, const cl::Device& device, const DeviceInfo& info,
                                           bool own_queue);
/// How a device's kernels are built ahead, as things stand now. CLNET_DRIVER_HABITS=0: not at all, unless the compiler may end
/// its process.
std::unique_ptr<Prebuilder> prebuilder_for(const DeviceInfo& device);
/// Ends processes that wait to build ahead. Called while the process ends, or the library is unloaded.
void end_prebuilders();

/// Why a device that its driver offers cannot be used, or empty.
std::string why_unusable(const DeviceInfo& info);
/// What helps where there is no device.
std::string driver_advice();

}  // namespace clnet::ocl
