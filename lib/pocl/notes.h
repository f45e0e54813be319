// The processes' notes on kernels: a file beside the driver's cache.
#pragma once

#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "clnet/device.h"
#include "lib/cl/prebuild.h"
#include "lib/pocl/build_processes.h"

namespace clnet::pocl {

/// The kernels compiled before, or without success, as lines of a file in the driver's cache folder: it disappears together with
/// the cache. Any thread may read and add.
class Notes {
 public:
  explicit Notes(const std::string& path);
  /// The note on a kernel. A crash is final; a success counts more than another process's failure.
  ocl::Noted of(const std::string& kernel) const;
  /// Takes in what other processes have noted.
  void read_again();
  /// Adds a line in one write, so that lines of several processes do not mix.
  void add(const std::string& kernel, ocl::Noted end);
  /// Whether it has ended a process for the first time known to this program: the reason may have been another.
  bool deserves_another_try(const std::string& kernel);
  bool is_suspect(const std::string& kernel) const;

 private:
  void read();

  std::string path_;
  mutable std::mutex mutex_;
  std::uintmax_t size_ = 0;  ///< of the file, when it was read
  std::set<std::string> known_, suspects_;
};

/// The notes for such processes, read once.
Notes& notes_of(const BuildProcesses& processes);

/// Everything that machine code depends on besides the kernels.
std::string state_of(const DeviceInfo& device);
/// The key of a kernel's note, with everything that its machine code depends on.
std::string note_of(const std::string& state, const ocl::KernelToBuild& kernel);

/// The notes on kernels, by processes of this program or earlier ones.
std::vector<ocl::Noted> noted(const DeviceInfo& device, const std::vector<ocl::KernelToBuild>& kernels,
                              const BuildProcesses& processes);
/// Notes kernels without a note as compiled: this process has run them.
void note_run(const DeviceInfo& device, const std::vector<ocl::KernelToBuild>& kernels, const BuildProcesses& processes);

}  // namespace clnet::pocl
