// The pending commands of an in-order queue, bounded so that the host does not run ahead without end.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

#include "lib/cl/opencl.h"

namespace clnet::ocl {

/// Polls a command that is about to end, for about the time in which two sleeping threads wake up. That is 20 to 100 microseconds
/// on virtual machines, whose idle cores are halted. A later wait reports errors of the command or driver.
void watch(const cl::CommandQueue& queue, const cl::Event& event);

/// Waits for a command that reads or writes host memory. Even where it throws, the command is over, so that the memory may be
/// freed. After an error it polls the driver in other ways, for ten seconds at most; then the driver counts as dead.
void wait_until_over(const cl::CommandQueue& queue, const cl::Event& event);

class InFlight {
 public:
  using Bytes = std::shared_ptr<const void>;

  /// Waits until `bytes` more, with the copies that commands still read, fit under `most`. Calls `before_wait` before each wait:
  /// other threads may have enqueued held-back commands since.
  void make_room(std::size_t bytes, std::size_t most, const std::function<void()>& before_wait);
  /// Keeps the data until their command is over.
  void hold(const cl::Event& event, Bytes data, std::size_t bytes);
  /// Marks one command of many, and waits while there are more than `most` marks.
  void mark(const cl::Event& event, std::size_t most);
  /// Frees the entries of finished commands.
  void collect();
  /// Bytes held.
  std::size_t bytes() const;

  InFlight() = default;
  /// Data that a command may still read are leaked.
  ~InFlight();
  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;

 private:
  struct PendingCommand {
    cl::Event event;
    Bytes data;
    std::size_t bytes = 0;
  };
  /// Waits for the oldest command while too_much(), which runs with the mutex held.
  void wait_while(const std::function<bool()>& too_much, const std::function<void()>& before_wait);
  void drop_oldest();

  mutable std::mutex mutex_;
  std::deque<PendingCommand> pending_;  ///< in order of enqueueing, which is that of completion
  std::size_t bytes_ = 0, marks_ = 0;
};

}  // namespace clnet::ocl
