// A mutex that the whole process shares, with a count of the waits for it.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

namespace clnet {

/// The waits of threads for what devices share. Threads with a device each should never wait for one another: tests hold this
/// number at 0.
class SharedWaits {
 public:
  static void add() { count().fetch_add(1, std::memory_order_relaxed); }
  static std::uint64_t so_far() { return count().load(std::memory_order_relaxed); }

 private:
  static std::atomic<std::uint64_t>& count() {
    static std::atomic<std::uint64_t> waits{0};
    return waits;
  }
};

/// For state of all devices.
class ProcessMutex {
 public:
  void lock() {
    if (mutex_.try_lock()) return;
    SharedWaits::add();
    mutex_.lock();
  }
  bool try_lock() { return mutex_.try_lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

}  // namespace clnet
