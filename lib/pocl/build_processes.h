// Which processes compile kernels for this one, and where they note what they compiled.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "clnet/device.h"

namespace clnet::pocl {

/// How the processes are made; what is not given is found.
struct BuildProcesses {
  std::string program;  ///< clnet-build-kernels
  std::string folder;   ///< where the driver keeps what it compiled; which kernels are there is noted in a file of clnet's
  std::int64_t count = 1;
  bool apart = false;  ///< the driver's compiler may end its process: no kernel is compiled elsewhere before it was here
  bool idle = false;   ///< they run when nothing else does
  std::chrono::seconds patience{60};  ///< without a program built; they are killed then
};

/// The processes for a device; a count of 1, and not `apart`, where they are of no use: drivers that need none, one core, no
/// cache on disk, no program (in the folder `clnet` beside the library), or CLNET_BUILD_PROCESSES=1.
BuildProcesses build_processes(const DeviceInfo& device);

/// The file with the notes.
std::string notes_file(const BuildProcesses& processes);

}  // namespace clnet::pocl
