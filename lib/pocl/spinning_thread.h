// Speeds up short calls in quick succession, on drivers whose threads sleep in between: waking all threads takes longer than a
// small network.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "lib/cl/opencl.h"

namespace clnet::pocl {

/// Keeps one thread of the driver awake from one short call to the next, while the others rest, where that proves to be faster.
/// It uses functions of the host that the driver's threads run. The first kind follows each call's read. It reports the end of
/// the read, then spins until the next call's commands are enqueued, for a tenth of a millisecond at most. The second kind
/// occupies the other threads: each sleeps in a queue of its own. It ends when calls are longer, further apart, or absent for a
/// millisecond.
///
/// Only the time of calls depends on it. Results are the same on any thread, and every function returns by itself.
class SpinningThread {
 public:
  /// For drivers whose threads sleep and which run functions of the host (CL_EXEC_NATIVE_KERNEL), on their only device with
  /// `threads` threads.
  SpinningThread(const cl::Context& context, const cl::Device& device, unsigned threads);
  /// Ends the resting functions, and waits for them.
  ~SpinningThread();
  SpinningThread(const SpinningThread&) = delete;
  SpinningThread& operator=(const SpinningThread&) = delete;

  /// Call it when commands are enqueued.
  void call_begins();
  /// Releases the thread to the enqueued commands. Late is better: a driver's thread and an enqueueing one wait for each other's
  /// locks, and a waiting thread falls asleep.
  void release();
  /// Whether enqueued commands are held back until release().
  bool holds_back() const;
  /// Waits after the last command of a short call, in place of sleeping: releases it, and returns when it is over or has taken
  /// long. False: it did nothing.
  bool wait(const cl::CommandQueue& queue);
  /// Call it when a call's result has arrived, with whether the call was short.
  void call_is_over(bool was_short);
  /// Returns when all threads work again.
  void stop();

  /// Whether threads rest.
  bool active() const { return active_.load(std::memory_order_relaxed); }

 private:
  using Clock = std::chrono::steady_clock;
  struct State;
  struct Arguments {
    State* state;
    std::uint64_t number;
  };
  static void CL_CALLBACK stay(void* arguments);
  static void CL_CALLBACK rest(void* arguments);
  /// Lets all threads but one rest; false where that failed, for some perhaps. Call it, and all functions below but wake_all(),
  /// with mutex_ held.
  bool start();
  /// Lets all threads work, and forgets all counts of calls.
  void start_counting();
  void wake_all();

  const cl::Context context_;
  const cl::Device device_;
  const unsigned threads_;
  std::unique_ptr<State> state_;
  std::atomic<std::uint64_t> issued_{0};  ///< number of spinning functions
  std::atomic<bool> active_{false}, between_calls_{false};

  std::mutex mutex_;  ///< guards the members below
  std::vector<cl::CommandQueue> queues_;
  Clock::time_point over_{}, began_{};
  int close_calls_ = 0;  ///< calls in quick succession so far
  int wanted_calls_;     ///< close calls before the next attempt
  int counted_ = 0;      ///< measured calls, and their time
  Clock::duration so_far_{};
  bool measures_one_ = false;  ///< measures with one working thread
  Clock::duration usual_{};    ///< time of as many calls with all threads
};

}  // namespace clnet::pocl
