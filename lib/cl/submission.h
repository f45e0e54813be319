// Submission of a batch of commands to a context's queue, and the wait for it.
#pragma once

#include <vector>

#include "lib/cl/opencl.h"

namespace clnet::ocl {

/// The base is the plain queue: each command begins after the earlier ones, and the driver's threads sleep when they like. A
/// derived class may hold commands back (submission_for() in lib/cl/quirks.h). A thread that is about to wait for the device
/// releases them first: otherwise nothing behind them would end.
///
/// A call is the set of commands up to a read. A call of few launches is short.
class Submission {
 public:
  Submission() = default;
  virtual ~Submission() = default;
  Submission(const Submission&) = delete;
  Submission& operator=(const Submission&) = delete;

  /// Allows to hold back this thread's next commands until let_go().
  virtual void hold() {}
  /// Starts this thread's held-back commands.
  virtual void let_go() noexcept {}
  /// The wait list of the next command; null: only earlier commands.
  virtual const std::vector<cl::Event>* waits() { return nullptr; }
  /// Call it when commands are enqueued, with whether the call is short so far.
  virtual void enqueued(bool /*is_short*/) noexcept {}
  /// Call it before a wait: starts all enqueued commands of all threads. Throws cl::Error where it cannot.
  virtual void require_open() {}
  /// The same before enqueueing a read and waiting for it: commands that wait() or enqueued() release may stay back until then.
  virtual void require_open_for_read() {}
  /// Whether some command is known to never begin.
  virtual bool is_stuck() const { return false; }
  /// Waits after the read of a short call, in place of polling: returns when the call is over or has taken long. False: it did
  /// nothing.
  virtual bool wait(const cl::CommandQueue& /*queue*/) { return false; }
  /// Call it when a call's result has arrived, with whether the call was short.
  virtual void call_is_over(bool /*was_short*/) {}
  /// Call it when all enqueued work is done: it releases the driver's threads.
  virtual void stop() {}
  /// Drops its OpenCL objects without releasing them.
  virtual void leave_behind() {}
};

}  // namespace clnet::ocl
