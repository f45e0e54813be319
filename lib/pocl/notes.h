// What processes noted of kernels: a file beside what the driver keeps of them.
#pragma once

#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "clnet/device.h"
#include "lib/cl/prebuild.h"
#include "lib/pocl/build_processes.h"

namespace clnet::pocl {

/// What was compiled before, or could not be, by lines of a file in the driver's own folder: with what it tells of, it goes. Any
/// thread may ask and add.
class Notes {
 public:
  explicit Notes(const std::string& path);
  /// A crash is final, and whoever compiled a kernel may do so again where another could not.
  ocl::Noted of(const std::string& kernel) const;
  /// In one write, so that lines of several processes do not mix.
  void add(const std::string& kernel, ocl::Noted end);
  /// Whether it has ended a process for the first time that this program knows of: that may have been for other reasons.
  bool deserves_another_try(const std::string& kernel);
  bool is_suspect(const std::string& kernel) const;

 private:
  std::string path_;
  mutable std::mutex mutex_;
  std::set<std::string> known_, suspects_;
};

/// Those for such processes, read once.
Notes& notes_of(const BuildProcesses& processes);

/// What all machine code depends on besides the kernels.
std::string state_of(const DeviceInfo& device);
/// Of a kernel with all that its machine code depends on.
std::string note_of(const std::string& state, const ocl::KernelToBuild& kernel);

/// What is noted there of kernels, by processes of this program or earlier ones.
std::vector<ocl::Noted> noted(const DeviceInfo& device, const std::vector<ocl::KernelToBuild>& kernels,
                              const BuildProcesses& processes);
/// Notes those that no note tells of as compiled: this process has run them.
void note_run(const DeviceInfo& device, const std::vector<ocl::KernelToBuild>& kernels, const BuildProcesses& processes);

}  // namespace clnet::pocl
