// Compiles kernels before their first launch in several processes. It serves drivers that compile one kernel at a time per
// process and cache it on disk (the quirk compiles-one-at-a-time). It also serves drivers whose compiler may end the process
// (compiler-aborts).
#pragma once

#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

#include "clnet/device.h"
#include "lib/cl/prebuild.h"
#include "lib/pocl/build_processes.h"

namespace clnet::pocl {

/// Compiles the new ones among the kernels in other processes, unless they are too few for the effort, and returns their number.
/// A failure costs time only: the driver then compiles the rest in this process. If they compile apart, the processes wait some
/// seconds for the next plan. An exception of `progress` ends the processes.
std::size_t build_ahead(const DeviceInfo& device, const std::vector<ocl::KernelToBuild>& kernels, const BuildProcesses& processes,
                        const ocl::BuildProgress& progress = {}, const ocl::ProgramBuilt& built = {});

/// Ends the waiting processes. Called at exit, or when the library is unloaded.
void end_build_processes();

/// One process that compiles kernels beside this one. The destructor ends it.
class BuildBeside final : public ocl::BuildingBeside {
 public:
  BuildBeside(const DeviceInfo& device, std::vector<ocl::KernelToBuild> kernels, BuildProcesses processes);
  bool done() const override { return done_; }

 private:
  std::atomic<bool> done_{false};
  std::jthread thread_;  ///< the last member, as it uses the other
};

}  // namespace clnet::pocl
