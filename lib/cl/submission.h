// How a batch of commands is submitted to a context's queue, and waited for.
#pragma once

#include <vector>

#include "lib/cl/opencl.h"

namespace clnet::ocl {

/// The plain queue: each command begins when those before it are done, and the driver's threads sleep when they like. Another may
/// have reasons to hold commands back (submission_for() in lib/cl/quirks.h). Then whoever is about to wait for the device lets go
/// of them before: nothing behind them would ever end.
///
/// A call is what is enqueued until a result is read. One of few launches is short.
class Submission {
 public:
  Submission() = default;
  virtual ~Submission() = default;
  Submission(const Submission&) = delete;
  Submission& operator=(const Submission&) = delete;

  /// What this thread enqueues from now on may be held back until let_go().
  virtual void hold() {}
  /// What this thread holds back begins.
  virtual void let_go() noexcept {}
  /// What a command that is about to be enqueued waits for; null: nothing but those before it.
  virtual const std::vector<cl::Event>* waits() { return nullptr; }
  /// To be called when commands are enqueued, of a call that is short so far, or is not.
  virtual void enqueued(bool /*is_short*/) noexcept {}
  /// For whoever is about to wait: all that is enqueued begins, of any thread. Throws cl::Error where it cannot.
  virtual void require_open() {}
  /// The same for whoever is about to enqueue a read and wait for that: what wait() or enqueued() lets go may be held back till
  /// then.
  virtual void require_open_for_read() {}
  /// Whether something will never begin, as far as is known.
  virtual bool is_stuck() const { return false; }
  /// Behind the read of a short call, in place of looking for its end: returns when that is over, or has taken long. False where
  /// nothing was done.
  virtual bool wait(const cl::CommandQueue& /*queue*/) { return false; }
  /// To be called when the result of a short call, or of one that is not, is there.
  virtual void call_is_over(bool /*was_short*/) {}
  /// To be called when everything enqueued is done: nothing of it shall keep the driver's threads.
  virtual void stop() {}
  /// Forgets its OpenCL objects instead of releasing them.
  virtual void leave_behind() {}
};

}  // namespace clnet::ocl
