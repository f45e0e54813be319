// A start gate: holds commands back until later ones are enqueued, too.
#pragma once

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include "lib/cl/opencl.h"

namespace clnet::pocl {

/// Commands that one thread enqueues between close() and open() begin with open(). Later commands of other threads wait with
/// them. The closing thread must open the gate before it waits for the device.
///
/// A queue never hangs: if the driver refuses to open the gate, every thread that is about to wait retries, and throws when that
/// fails. Threads that wait already continue once a retry succeeds. Where a driver makes no gate, nothing is held back.
class StartGate {
 public:
  void close() { owner_ = std::this_thread::get_id(); }
  bool is_mine() const { return owner_.load() == std::this_thread::get_id(); }
  /// The wait list of the next command: null for all but the first behind a closed gate.
  const std::vector<cl::Event>* waits(const cl::Context& context);
  /// Opens the gate where this thread has closed it. With ended drivers nothing begins, and no thread may wait.
  void open() noexcept;
  /// Call it before a wait: also opens the gates of any thread that drivers refused before. Throws cl::Error where they refuse
  /// again.
  void require_open();
  /// Whether some command behind it is known to never begin.
  bool is_stuck() const { return stuck_; }
  /// Drops the events without releasing them.
  void leave_behind();

 private:
  std::atomic<std::thread::id> owner_{};
  cl::UserEvent event_;  ///< null until there is a command; this and the members below belong to the owner
  std::vector<cl::Event> list_;
  std::mutex mutex_;
  std::vector<cl::UserEvent> refused_;  ///< gates that could not be opened; room for one is reserved before it is made
  std::atomic<bool> stuck_{false};      ///< whether there are any
};

}  // namespace clnet::pocl
