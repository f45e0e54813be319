// The queue for kernels. A trace may replace it, so enqueueing holds it.
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

  /// Calls `use` with the queue, which is not replaced meanwhile. Not to be nested.
  template <class Use>
  decltype(auto) with(Use&& use) const {
    const std::shared_lock lock(mutex_);
    return std::forward<Use>(use)(queue_);
  }
  /// The present queue, to wait for or to query.
  cl::CommandQueue get() const {
    const std::shared_lock lock(mutex_);
    return queue_;
  }
  /// Replaces the queue by make(queue); nothing is enqueued meanwhile. The old queue lives on, as others may hold its bare
  /// handle.
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
