// Short calls that follow one another at once, on drivers whose threads sleep in between: waking them all takes longer than what
// a small network computes.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "lib/cl/opencl.h"

namespace clnet::pocl {

/// Where short calls have followed one another at once for a while, and it proves to be faster, one thread of the driver works
/// for them alone and stays awake from one to the next, while the others rest. Both are functions of the host that the driver's
/// threads run. The first kind is put behind each call's read: it tells the caller that the read is over, and stays until the
/// next call's commands are enqueued behind it, or for a tenth of a millisecond. The second kind sleeps in a queue of its own
/// until calls are longer, further apart, or not there for a millisecond.
///
/// Nothing depends on it but the time that calls take. The numbers are the same, whichever thread makes them; and every function
/// returns by itself.
class Awake {
 public:
  /// For drivers whose threads sleep, and run functions of the host (CL_EXEC_NATIVE_KERNEL), on their only device of `threads`
  /// threads.
  Awake(const cl::Context& context, const cl::Device& device, unsigned threads);
  /// Ends what rests, and waits for it.
  ~Awake();
  Awake(const Awake&) = delete;
  Awake& operator=(const Awake&) = delete;

  /// To be called when commands are enqueued.
  void call_begins();
  /// Lets the thread go on to what is enqueued. Better late: a driver's thread and one that enqueues wait for each other's locks,
  /// and who waits falls asleep.
  void release();
  /// Whether what is enqueued is held back until release().
  bool holds_back() const;
  /// Behind the last command of a short call, in place of sleeping: releases it, and returns when that is over, or has taken
  /// long. False where nothing was done.
  bool wait(const cl::CommandQueue& queue);
  /// To be called when the result of a short call, or of one that is not, is there.
  void call_is_over(bool was_short);
  /// All threads work again when this returns.
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
  /// With mutex_ held, as all that follows but wake_all(). Has all threads but one rest; false where that cannot be, for some
  /// maybe.
  bool start();
  /// All threads work, and what is known of calls is forgotten.
  void start_counting();
  void wake_all();

  const cl::Context context_;
  const cl::Device device_;
  const unsigned threads_;
  std::unique_ptr<State> state_;
  std::atomic<std::uint64_t> issued_{0};  ///< functions that stay
  std::atomic<bool> active_{false}, between_calls_{false};

  std::mutex mutex_;  ///< for what follows
  std::vector<cl::CommandQueue> queues_;
  Clock::time_point over_{}, began_{};
  int close_calls_ = 0;  ///< that followed one another at once, until now
  int wanted_calls_;     ///< before it is tried again
  int counted_ = 0;      ///< calls measured, and in what time
  Clock::duration so_far_{};
  bool measures_one_ = false;  ///< thread that works
  Clock::duration usual_{};    ///< time of as many calls while all worked
};

}  // namespace clnet::pocl
