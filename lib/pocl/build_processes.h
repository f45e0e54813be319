// The processes that compile kernels for this one, and the file of their notes.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "clnet/device.h"

namespace clnet::pocl {

/// The parameters of the processes; missing ones are found.
struct BuildProcesses {
  std::string program;  ///< clnet-build-kernels
  std::string folder;   ///< the driver's cache; a file of clnet's in it notes the kernels that are there
  std::int64_t count = 1;
  bool apart = false;  ///< the driver's compiler may end its process: no kernel is compiled here before it was compiled elsewhere
  bool idle = false;   ///< they run at idle priority
  std::chrono::seconds patience{60};  ///< limit of time without a built program; then they are killed
};

/// The processes for a device. The count is 1, and `apart` false, where they do not help: drivers that need none, one core, no
/// cache on disk, or no program. The program is in the folder `clnet` beside the library. CLNET_BUILD_PROCESSES=1 also sets a
/// count of 1.
BuildProcesses build_processes(const DeviceInfo& device);

/// The file with the notes.
std::string notes_file(const BuildProcesses& processes);
/// The file with the locks (KeyLocks) of programs whose kernels are being compiled.
std::string locks_file(const BuildProcesses& processes);

}  // namespace clnet::pocl
