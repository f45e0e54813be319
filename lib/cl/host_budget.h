// One memory limit for all devices that use the host's memory: CPUs, and GPUs that share it.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <mutex>
#include <vector>

namespace clnet::ocl {

/// Counts the bytes that the pools of such devices have from their drivers, unused buffers included. All of them together stay
/// within the largest of their limits.
class HostBudget {
 public:
  /// The process's.
  static HostBudget& instance();

  /// A pool in the budget while it lives.
  class Share {
   public:
    /// `drop` returns unused buffers of the pool to the driver, until so many bytes are free, and gives back their bytes. Any
    /// thread calls it, so a driver that must not be called by two threads gives none.
    Share(HostBudget& budget, std::size_t limit, std::function<void(std::size_t bytes)> drop);
    /// Gives back all that is taken.
    ~Share();
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;

    /// Takes bytes where they are within the limit.
    bool take(std::size_t bytes);
    void give(std::size_t bytes);
    /// Sets this pool's limit.
    void set_limit(std::size_t bytes);
    /// The bytes of the other pools.
    std::size_t taken_by_others() const;
    /// Frees unused buffers of the other pools where `bytes` bytes do not fit. Call it without the pool's lock.
    void make_room(std::size_t bytes);

   private:
    friend class HostBudget;
    HostBudget& budget_;
    std::size_t limit_;  ///< guarded by the budget's mutex, as are all limits
    const std::function<void(std::size_t)> drop_;
    std::atomic<std::size_t> taken_{0};
  };

  /// The limit of all pools together, and the bytes that they have.
  std::size_t limit() const { return limit_.load(std::memory_order_relaxed); }
  std::size_t taken() const { return taken_.load(std::memory_order_relaxed); }

 private:
  /// Call it with the mutex held.
  void find_limit();

  std::atomic<std::size_t> limit_{0}, taken_{0};
  std::mutex mutex_;  ///< guards the list; held for its changes and where memory is short
  std::vector<Share*> shares_;
};

}  // namespace clnet::ocl
