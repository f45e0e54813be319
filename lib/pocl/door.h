// The interface of this folder to lib/cl/quirks.cpp, its only user in the library.
#pragma once

#include <memory>
#include <string>

#include "clnet/device.h"
#include "lib/cl/opencl.h"
#include "lib/cl/prebuild.h"
#include "lib/cl/submission.h"

namespace clnet::pocl {

bool is_pocl(const DeviceInfo& info);

/// `own_queue`: only clnet enqueues on the queue.
std::unique_ptr<ocl::Submission> submission_for(const cl::Context& context, const cl::Device& device, const DeviceInfo& info,
                                                bool own_queue);

/// Null where processes do not help (build_processes()).
std::unique_ptr<ocl::Prebuilder> prebuilder_for(const DeviceInfo& device);
/// Ends processes that wait for the next plan.
void end_prebuilders();

/// Why devices cannot be used, or empty.
std::string why_unusable();
/// Advice on packages to install, and other reasons for a missing device.
std::string advice();

}  // namespace clnet::pocl
