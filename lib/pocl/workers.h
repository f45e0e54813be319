// Compiling processes: they take jobs, and the end of each kernel is noted.
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

/// The outcome of a set of jobs.
struct Followed {
  std::size_t compiled = 0, noted = 0;
  bool tries_again = false;  ///< some kernels get another try before any note
  bool all = false;          ///< the processes reported the end of each kernel, and wait for more
};

/// The listeners while the processes compile.
struct Told {
  ocl::BuildProgress progress;
  ocl::ProgramBuilt built;
};

/// Processes that take jobs until they have waited for long, or this object is destroyed.
class Workers {
 public:
  Workers(const DeviceInfo& device, const BuildProcesses& processes, std::int64_t count);

  std::int64_t count() const { return children_.count(); }
  /// Whether `wanted` processes run and none has ended.
  bool wait(std::int64_t wanted) { return children_.count() >= wanted && children_.running() == children_.count(); }
  /// Runs the jobs, and notes their ends.
  Followed give(std::vector<Job> jobs, Notes& notes, const std::stop_token& stop, const Told& told);

 private:
  struct Order;
  struct Kernels;
  /// Waits until all kernels or all processes have ended, or nothing more comes. A kernel that began and did not end is noted,
  /// too. One that crashes or hangs does so once, or twice where the first time may have had another reason.
  Followed follow(Kernels kernels, std::span<const Order> orders, Notes& notes, const std::stop_token& stop, const Told& told);

  const BuildProcesses processes_;
  const os::Descriptor texts_ = os::memory_file("clnet-kernels");
  // The reading end stays open, too: a write to ended processes then raises no signal.
  std::pair<os::Descriptor, os::Descriptor> orders_ = os::pipe(), words_ = os::pipe();
  Children children_;
};

}  // namespace clnet::pocl
