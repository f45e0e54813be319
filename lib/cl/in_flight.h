// What the host has given to an in-order queue and the device has not done yet, bounded, so that the host does not run ahead
// without end.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

#include "lib/cl/opencl.h"

namespace clnet::ocl {

/// Asks for the state of a command that is about to end, for about as long as two threads that sleep take to wake up: 20 to 100
/// microseconds on virtual machines, whose idle cores are halted. An error of
/// the command or the driver is left to whoever waits for it then.
void watch(const cl::CommandQueue& queue, const cl::Event& event);

/// Waits for a command that reads or writes memory of the host. When it throws, the command is over all the same, so that the
/// memory may go: the driver is asked in other ways until it says so (for ten seconds; then it is taken for dead).
void wait_until_over(const cl::CommandQueue& queue, const cl::Event& event);

class InFlight {
 public:
  using Bytes = std::shared_ptr<const void>;

  /// Waits until `bytes` more fit under `most` together with the copies that commands still read. `before_wait` is called before
  /// each wait: other threads may have brought commands that are held back since.
  void make_room(std::size_t bytes, std::size_t most, const std::function<void()>& before_wait);
  /// Keeps the data until the command that reads them is over.
  void hold(const cl::Event& event, Bytes data, std::size_t bytes);
  /// Notes a command of many, and waits while there are more than `most` such notes.
  void mark(const cl::Event& event, std::size_t most);
  /// Lets go of what is over.
  void collect();
  /// Bytes held.
  std::size_t bytes() const;

  InFlight() = default;
  /// Data that a command may still read are left to it.
  ~InFlight();
  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;

 private:
  struct Entry {
    cl::Event event;
    Bytes data;
    std::size_t bytes = 0;
  };
  /// Waits for the oldest entry while `too_much()`, which is called with the mutex held.
  void wait_while(const std::function<bool()>& too_much, const std::function<void()>& before_wait);
  void drop_oldest();

  mutable std::mutex mutex_;
  std::deque<Entry> entries_;  ///< the oldest first, which is also over first
  std::size_t bytes_ = 0, marks_ = 0;
};

}  // namespace clnet::ocl
