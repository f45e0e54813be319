#include "lib/pocl/spinning_thread.h"

#include <algorithm>
#include <condition_variable>
#include <thread>
#include <utility>

#include "lib/cl/driver_lifetime.h"

namespace clnet::pocl {

namespace {

using namespace std::chrono_literals;

/// How far apart calls are at most, and how long a thread stays. Waking it takes 5 to 50 microseconds.
constexpr auto longest_pause = 100us;
/// A call that takes longer gets all threads. Also how long a caller waits before it sleeps.
constexpr auto longest_call = 100us;
/// Who rests looks this often whether there still are calls.
constexpr auto glance = 1ms;
/// Calls that are measured either way. After as many that follow one another at once it is tried, and where it was no gain, after
/// twice as many each time.
constexpr int measured_calls = 32, most_wanted_calls = 1 << 20;
/// One thread has to be faster by this.
constexpr double gain = 0.95;

/// More devices, or more contexts of one, may share a driver's threads: of all, one at a time has some of them rest.
std::atomic<const void*> only_one{nullptr};

/// Who made the last call. Where several contexts call in turn none has threads rest: the others' kernels want them.
std::atomic<const void*> last_caller{nullptr};

void let_others(const void* me) { only_one.compare_exchange_strong(me, nullptr); }

void raise(std::atomic<std::uint64_t>& value, std::uint64_t to) {
  auto now = value.load(std::memory_order_relaxed);
  while (now < to && !value.compare_exchange_weak(now, to, std::memory_order_acq_rel)) {
  }
}

bool enqueue_function(const cl::CommandQueue& queue, void(CL_CALLBACK* function)(void*), void* arguments, std::size_t bytes) {
  const auto code = clEnqueueNativeKernel(queue(), function, arguments, bytes, 0, nullptr, nullptr, 0, nullptr, nullptr);
  if (code == CL_SUCCESS) clFlush(queue());
  return code == CL_SUCCESS;
}

}  // namespace

/// What the functions read and write.
struct SpinningThread::State {
  /// Numbers of those that stay.
  std::atomic<std::uint64_t> begun{0}, released{0}, ended{0};
  /// Of those that rest: how often they have been woken, how many there are, and calls, by which they see that there are some.
  std::mutex mutex;
  std::condition_variable wake;
  std::uint64_t round = 0;
  unsigned resting = 0;
  std::atomic<std::uint64_t> calls{0};
};

SpinningThread::SpinningThread(const cl::Context& context, const cl::Device& device, unsigned threads)
    : context_(context), device_(device), threads_(threads), state_(std::make_unique<State>()), wanted_calls_(measured_calls) {}

SpinningThread::~SpinningThread() {
  if (!ocl::drivers_gone()) {
    stop();
    if (state_->ended == issued_) return;
  }
  // Functions that are still to come, or never told to return, need what they use.
  [[maybe_unused]] auto* left = state_.release();
  for (auto& queue : queues_) ocl::leave_behind(queue);
}

void CL_CALLBACK SpinningThread::stay(void* arguments) {
  auto& [state, number] = *static_cast<const Arguments*>(arguments);
  raise(state->begun, number);
  const auto end = Clock::now() + longest_pause;
  while (state->released.load(std::memory_order_acquire) < number && Clock::now() < end) std::this_thread::yield();
  raise(state->ended, number);
}

void CL_CALLBACK SpinningThread::rest(void* arguments) {
  auto& [state, round] = *static_cast<const Arguments*>(arguments);
  std::unique_lock lock(state->mutex);
  ++state->resting;
  for (auto calls = ~std::uint64_t{0}; state->round == round && state->calls != calls; state->wake.wait_for(lock, glance))
    calls = state->calls;
  if (--state->resting == 0) let_others(state);
}

void SpinningThread::call_begins() {
  if (between_calls_.load(std::memory_order_relaxed) && between_calls_.exchange(false)) {
    const std::lock_guard lock(mutex_);
    began_ = Clock::now();
    if (began_ - over_ > (active() ? glance : longest_pause)) start_counting();
  }
}

void SpinningThread::release() {
  call_begins();
  raise(state_->released, issued_.load());
}

bool SpinningThread::holds_back() const {
  const auto issued = issued_.load(std::memory_order_relaxed);
  return state_->released.load(std::memory_order_relaxed) < issued && state_->ended.load(std::memory_order_relaxed) < issued;
}

bool SpinningThread::wait(const cl::CommandQueue& queue) {
  if (!active()) return false;
  Arguments arguments{state_.get(), issued_.fetch_add(1) + 1};
  const auto end = Clock::now() + longest_call;
  if (!enqueue_function(queue, stay, &arguments, sizeof arguments)) {
    raise(state_->ended, arguments.number);
    return false;
  }
  raise(state_->released, arguments.number - 1);
  while (state_->begun.load(std::memory_order_acquire) < arguments.number) {
    if (Clock::now() > end) {
      wake_all();
      return true;
    }
    std::this_thread::yield();
  }
  return true;
}

void SpinningThread::call_is_over(bool was_short) {
  const std::lock_guard lock(mutex_);
  over_ = Clock::now();
  between_calls_ = true;
  const bool alone = last_caller.exchange(state_.get(), std::memory_order_relaxed) == state_.get();
  if (!was_short || !alone) return start_counting();
  ++state_->calls;
  ++close_calls_;
  if (counted_ >= 0) so_far_ += over_ - began_;
  if (++counted_ < measured_calls) return;
  const auto taken = std::exchange(so_far_, {});
  counted_ = 0;
  if (measures_one_) {
    if (active() && taken < gain * usual_) return;
  } else {
    usual_ = taken;
    if (close_calls_ < wanted_calls_ || taken > measured_calls * longest_call) return;
    counted_ = -measured_calls;
    if (start()) return;
  }
  start_counting();
  wanted_calls_ = std::min(2 * wanted_calls_, most_wanted_calls);
}

void SpinningThread::start_counting() {
  wake_all();
  close_calls_ = counted_ = 0;
  so_far_ = {};
  measures_one_ = false;
}

bool SpinningThread::start() {
  const void* none = nullptr;
  if (!only_one.compare_exchange_strong(none, state_.get())) return false;
  active_ = measures_one_ = true;
  Arguments arguments{state_.get(), 0};
  {
    const std::lock_guard lock(state_->mutex);
    arguments.number = state_->round;
  }
  try {
    while (queues_.size() + 1 < threads_) queues_.emplace_back(context_, device_);
  } catch (const cl::Error&) {
    return false;
  }
  return std::all_of(queues_.begin(), queues_.end(),
                     [&](const auto& queue) { return enqueue_function(queue, rest, &arguments, sizeof arguments); });
}

void SpinningThread::wake_all() {
  if (!active_.exchange(false)) return;
  {
    const std::lock_guard lock(state_->mutex);
    ++state_->round;
  }
  state_->wake.notify_all();
  let_others(state_.get());
}

void SpinningThread::stop() {
  const std::lock_guard lock(mutex_);
  start_counting();
  // Those that were woken are over, too, then.
  for (const auto& queue : queues_) clFinish(queue());
}

}  // namespace clnet::pocl
