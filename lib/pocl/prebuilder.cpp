#include "lib/pocl/prebuilder.h"

#include <chrono>

#include "lib/pocl/build_ahead.h"
#include "lib/pocl/notes.h"

namespace clnet::pocl {

std::size_t ProcessPrebuilder::build(const std::vector<ocl::KernelToBuild>& kernels, const ocl::BuildProgress& progress,
                                     const ocl::ProgramBuilt& built) const {
  return build_ahead(device_, kernels, processes_, progress, built);
}

std::vector<ocl::Noted> ProcessPrebuilder::noted(const std::vector<ocl::KernelToBuild>& kernels) const {
  return pocl::noted(device_, kernels, processes_);
}

void ProcessPrebuilder::note_run(const std::vector<ocl::KernelToBuild>& kernels) const {
  pocl::note_run(device_, kernels, processes_);
}

bool ProcessPrebuilder::builds_beside(Haste haste) const {
  return processes_.count > 1 || (processes_.apart && haste == Haste::when_idle);
}

std::unique_ptr<ocl::BuildingBeside> ProcessPrebuilder::build_beside(std::vector<ocl::KernelToBuild> kernels, Haste haste) const {
  if (!builds_beside(haste)) return nullptr;
  auto processes = processes_;
  processes.idle = haste == Haste::when_idle;
  // On a busy machine a kernel takes an idle process minutes.
  if (processes.idle) processes.patience = std::chrono::hours(6);
  return std::make_unique<BuildBeside>(device_, std::move(kernels), std::move(processes));
}

}  // namespace clnet::pocl
