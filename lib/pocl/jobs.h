// Kernels to compile, as jobs for the processes.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lib/cl/prebuild.h"
#include "lib/pocl/notes.h"

namespace clnet::pocl {

/// The kernels of one program, which one process compiles.
struct Job {
  const ocl::ProgramSource* program = nullptr;
  nlohmann::json text;
  std::vector<std::string> kernels;  ///< for Notes
  std::size_t size = 0;              ///< bytes of its source
  bool suspect = false;              ///< its first kernel is suspect
};

/// The jobs for kernels without a note: suspects first, then the long ones.
std::vector<Job> jobs_of(const DeviceInfo& device, const std::vector<const ocl::KernelToBuild*>& kernels, const Notes& notes);

}  // namespace clnet::pocl
