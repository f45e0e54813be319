// Holds commands back until those that follow are enqueued, too.
#pragma once

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include "lib/cl/opencl.h"

namespace clnet::pocl {

/// What one thread enqueues from close() to open() begins with open(), though the commands of others that come later then wait as
/// well. Whoever closed it must open it before waiting for the device.
///
/// A driver may refuse to open it. It is asked again by everybody who is about to wait, as nothing behind it would ever end, and
/// who waits all the same gets an error rather than nothing; who waits already goes on when somebody has asked with success. A
/// driver that makes no gate, in the first place, holds nothing back.
class StartGate {
 public:
  void close() { owner_ = std::this_thread::get_id(); }
  bool is_mine() const { return owner_.load() == std::this_thread::get_id(); }
  /// What a command that is about to be enqueued has to wait for: null for all but the first behind a closed gate.
  const std::vector<cl::Event>* waits(const cl::Context& context);
  /// Opens it where this thread has closed it. With drivers that are gone nothing begins, and nobody may wait.
  void open() noexcept;
  /// For whoever is about to wait: also what drivers refused to open before, for any thread. Throws cl::Error when they do again.
  void require_open();
  /// Whether something behind it will never begin, as far as is known.
  bool is_stuck() const { return stuck_; }
  /// Forgets the events instead of releasing them.
  void leave_behind();

 private:
  std::atomic<std::thread::id> owner_{};
  cl::UserEvent event_;  ///< null until there is a command; this and what follows are the owner's
  std::vector<cl::Event> list_;
  std::mutex mutex_;
  std::vector<cl::UserEvent> refused_;  ///< that could not be opened; what one of them needs has room before it is made
  std::atomic<bool> stuck_{false};      ///< whether there are any
};

}  // namespace clnet::pocl
