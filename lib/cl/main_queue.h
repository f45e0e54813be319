// The queue that kernels go to. A trace may put another in its place, so it is held while a command is enqueued.
#pragma once

#include <mutex>
#include <shared_mutex>
#include <utility>
#include <vector>

#include "lib/cl/opencl.h"

namespace clnet::ocl {

class MainQueue {
 public:
  explicit MainQueue(cl::CommandQueue queue) : queue_(std::move(queue)) {}

  /// Calls `use` with the queue, which stays the queue meanwhile. Not to be nested.
  template <class Use>
  decltype(auto) with(Use&& use) const {
    const std::shared_lock lock(mutex_);
    return std::forward<Use>(use)(queue_);
  }
  /// The queue of this moment, to wait for or to ask.
  cl::CommandQueue get() const {
    const std::shared_lock lock(mutex_);
    return queue_;
  }
  /// Puts what `make(queue)` gives in the queue's place; nothing is enqueued meanwhile. The old one lives on, as others may hold
  /// its bare handle.
  template <class Make>
  void replace(Make&& make) {
    const std::unique_lock lock(mutex_);
    cl::CommandQueue next = std::forward<Make>(make)(queue_);
    old_.push_back(std::exchange(queue_, std::move(next)));
  }

 private:
  mutable std::shared_mutex mutex_;
  cl::CommandQueue queue_;
  std::vector<cl::CommandQueue> old_;
};

}  // namespace clnet::ocl
