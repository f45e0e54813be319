// The Prebuilder that builds kernels ahead in other processes.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "clnet/device.h"
#include "lib/cl/prebuild.h"
#include "lib/pocl/build_processes.h"

namespace clnet::pocl {

class ProcessPrebuilder final : public ocl::Prebuilder {
 public:
  ProcessPrebuilder(const DeviceInfo& device, BuildProcesses processes) : device_(device), processes_(std::move(processes)) {}

  Takes takes() const override { return processes_.apart ? Takes::all : processes_.count > 1 ? Takes::some : Takes::nothing; }
  std::size_t build(const std::vector<ocl::KernelToBuild>& kernels, const ocl::BuildProgress& progress,
                    const ocl::ProgramBuilt& built) const override;
  std::vector<ocl::Noted> noted(const std::vector<ocl::KernelToBuild>& kernels) const override;
  void note_run(const std::vector<ocl::KernelToBuild>& kernels) const override;
  std::string notes_file() const override { return pocl::notes_file(processes_); }
  bool builds_beside(Haste haste) const override;
  std::unique_ptr<ocl::BuildingBeside> build_beside(std::vector<ocl::KernelToBuild> kernels, Haste haste) const override;

 private:
  const DeviceInfo device_;
  const BuildProcesses processes_;
};

}  // namespace clnet::pocl
