// Processes that compile: they are given jobs, and how each kernel ends is noted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stop_token>
#include <utility>
#include <vector>

#include "lib/base/os/descriptor.h"
#include "lib/base/os/process.h"
#include "lib/cl/prebuild.h"
#include "lib/pocl/build_processes.h"
#include "lib/pocl/children.h"
#include "lib/pocl/jobs.h"
#include "lib/pocl/notes.h"

namespace clnet::pocl {

/// What came of the kernels that were given to processes.
struct Followed {
  std::size_t compiled = 0, noted = 0;
  bool tries_again = false;  ///< some are to be tried once more before anything is noted of them
  bool all = false;          ///< the processes said how each of them ended, and wait for more
};

/// Who is told what while the processes compile.
struct Told {
  ocl::BuildProgress progress;
  ocl::ProgramBuilt built;
};

/// Processes that take jobs until they have waited for long, or this ends.
class Workers {
 public:
  Workers(const DeviceInfo& device, const BuildProcesses& processes, std::int64_t count);

  std::int64_t count() const { return children_.count(); }
  /// Whether none of so many has ended.
  bool wait(std::int64_t wanted) { return children_.count() >= wanted && children_.running() == children_.count(); }
  /// Has these done, and notes how they end.
  Followed give(std::vector<Job> jobs, Notes& notes, const std::stop_token& stop, const Told& told);

 private:
  struct Order;
  struct Kernels;
  /// Until all kernels have ended, all processes have, or nothing more comes. What was begun and did not end is noted, too: who
  /// crashes or hangs does so once, or twice where the first time may have been for other reasons.
  Followed follow(Kernels kernels, std::span<const Order> orders, Notes& notes, const std::stop_token& stop, const Told& told);

  const BuildProcesses processes_;
  const os::Descriptor texts_ = os::memory_file("clnet-kernels");
  // Its reading end stays open, too: who orders something of processes that have ended gets no signal.
  std::pair<os::Descriptor, os::Descriptor> orders_ = os::pipe(), words_ = os::pipe();
  Children children_;
};

}  // namespace clnet::pocl
