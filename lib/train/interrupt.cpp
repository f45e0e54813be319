#include "lib/train/interrupt.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <system_error>

#include "lib/base/os/signals.h"

namespace clnet::train {

namespace {

std::atomic<int> signalled{0};  ///< the first signal's number
static_assert(std::atomic<int>::is_always_lock_free, "handlers may use no other");
std::mutex mutex;  // guards what follows
int users = 0;
bool has_begun = false;  ///< any training of this process, also one that has ended: its caller may still have something to save

extern "C" void remember(int signal) {
  if (signalled != 0) {
    os::restore_end_signal(signal);
    std::raise(signal);
  }
  signalled = signal;
}

}  // namespace

Interrupt::Interrupt(bool on) : on_(on) {
  if (!on) return;
  const std::lock_guard lock(mutex);
  if (users++ == 0) {
    signalled = 0;
    os::catch_end_signals(remember);
  }
  try {
    watcher_ = std::jthread([](const std::stop_token& stop) { end_in_time(stop); });
  } catch (const std::system_error&) {
    // A host may have no thread left: then a compiler is waited for.
  }
}

Interrupt::~Interrupt() {
  if (!on_) return;
  watcher_ = {};
  const std::lock_guard lock(mutex);
  if (--users == 0) os::restore_end_signals();
}

void Interrupt::begun() {
  {
    const std::lock_guard lock(mutex);
    has_begun = true;
  }
  watcher_ = {};
}

bool Interrupt::requested() const { return on_ && signalled != 0; }

/// A compiler that runs in this process hears of no wish.
void Interrupt::end_in_time(const std::stop_token& stop) {
  using namespace std::chrono_literals;
  constexpr auto pause = 20ms, patience = 600ms;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  for (auto waited = 0ms; !stop.stop_requested() && !has_begun; never.wait_for(lock, stop, pause, [] { return false; })) {
    if (signalled == 0) {
      waited = 0ms;
      continue;
    }
    if ((waited += pause) < patience) continue;
    const int signal = signalled;
    os::restore_end_signal(signal);
    os::signal_self(signal);
    return;
  }
}

}  // namespace clnet::train
