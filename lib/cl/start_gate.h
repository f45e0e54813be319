// Holds commands back until those that follow are enqueued, too.
#pragma once

#include <atomic>
#include <thread>
#include <vector>

#include "lib/cl/opencl.h"

namespace clnet::ocl {

/// What one thread enqueues from close() to open() begins with open(), though the commands of others that come later then wait as
/// well. Whoever closed it must open it before waiting for the device.
class StartGate {
 public:
  void close() { owner_ = std::this_thread::get_id(); }
  bool is_mine() const { return owner_.load() == std::this_thread::get_id(); }
  /// What a command that is about to be enqueued has to wait for: null for all but the first behind a closed gate.
  const std::vector<cl::Event>* waits(const cl::Context& context);
  /// Nothing where this thread has not closed it.
  void open() noexcept;

 private:
  std::atomic<std::thread::id> owner_{};
  cl::UserEvent event_;  ///< null until there is a command; this and what follows are the owner's
  std::vector<cl::Event> list_;
};

}  // namespace clnet::ocl
