// Kernels compiled before their first launch by several processes: for drivers that compile one at a time in a process and keep
// what they compiled on disk (the quirk compiles-one-at-a-time), and for drivers whose compiler may end the process
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

/// Has those kernels compiled that were not before, unless they are too few for the effort: how many the processes compiled.
/// Whatever goes wrong there costs time only, as the driver compiles in this process what is missing. Where they compile apart
/// the processes wait some seconds for the next plan. What `progress` throws ends the processes.
std::size_t build_ahead(const DeviceInfo& device, const std::vector<ocl::KernelToBuild>& kernels, const BuildProcesses& processes,
                        const ocl::BuildProgress& progress = {}, const ocl::ProgramBuilt& built = {});

/// Ends those that wait. Called while the process ends, or the library is unloaded.
void end_build_processes();

/// One process that compiles kernels while this one goes on. It ends with this.
class BuildBeside final : public ocl::BuildingBeside {
 public:
  BuildBeside(const DeviceInfo& device, std::vector<ocl::KernelToBuild> kernels, BuildProcesses processes);
  bool done() const override { return done_; }

 private:
  std::atomic<bool> done_{false};
  std::jthread thread_;  ///< the last, as it uses the other
};

}  // namespace clnet::pocl
