#include "lib/pocl/door.h"

#include <utility>

#include "lib/base/env.h"
#include "lib/pocl/build_ahead.h"
#include "lib/pocl/cache_folder.h"
#include "lib/pocl/prebuilder.h"
#include "lib/pocl/spinning_thread.h"
#include "lib/pocl/submission.h"

namespace clnet::pocl {

namespace {

bool runs_host_functions(const cl::Device& device) {
  return (device.getInfo<CL_DEVICE_EXECUTION_CAPABILITIES>() & CL_EXEC_NATIVE_KERNEL) != 0;
}

}  // namespace

bool is_pocl(const DeviceInfo& info) { return info.platform == "Portable Computing Language"; }

std::unique_ptr<ocl::Submission> submission_for(const cl::Context& context, const cl::Device& device, const DeviceInfo& info,
                                                bool own_queue) {
  // Others may enqueue on a wrapped queue, and would wait. It was measured on two threads: more take longer to rest.
  constexpr int most_threads = 16;
  std::unique_ptr<SpinningThread> spinning;
  if (own_queue && info.compute_units <= most_threads && runs_host_functions(device) && env::flag("CLNET_AWAKE", true))
    spinning = std::make_unique<SpinningThread>(context, device, static_cast<unsigned>(info.compute_units));
  return std::make_unique<GatedSubmission>(context, std::move(spinning));
}

std::unique_ptr<ocl::Prebuilder> prebuilder_for(const DeviceInfo& device) {
  auto processes = build_processes(device);
  if (!processes.apart && processes.count <= 1) return nullptr;
  return std::make_unique<ProcessPrebuilder>(device, std::move(processes));
}

void end_prebuilders() { end_build_processes(); }

std::string why_unusable() { return unusable_cache(); }

std::string advice() { return "install a driver, such as the package pocl-opencl-icd for CPUs" + no_device_without_cache(); }

}  // namespace clnet::pocl
