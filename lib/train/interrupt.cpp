#include "lib/train/interrupt.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <system_error>
#include <utility>

namespace clnet::train {

namespace {

std::atomic<int> signalled{0};  ///< the first signal's number
static_assert(std::atomic<int>::is_always_lock_free, "handlers may use no other");
std::mutex mutex;  // guards what follows
int users = 0, begun_users = 0;
struct sigaction old_int, old_term;

extern "C" void remember(int signal) {
  if (signalled != 0) {
    std::signal(signal, SIG_DFL);
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
    struct sigaction action {};
    action.sa_handler = remember;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, &old_int);
    sigaction(SIGTERM, &action, &old_term);
  }
  try {
    watcher_ = std::jthread([](const std::stop_token& stop) { end_in_time(stop); });
  } catch (const std::system_error&) {
    // A host may have no thread left: then a compiler is waited for.
  }
}

Interrupt::~Interrupt() {
  if (!on_) return;
  begun();
  const std::lock_guard lock(mutex);
  --begun_users;
  if (--users > 0) return;
  sigaction(SIGINT, &old_int, nullptr);
  sigaction(SIGTERM, &old_term, nullptr);
}

void Interrupt::begun() {
  if (!on_ || std::exchange(begun_, true)) return;
  {
    const std::lock_guard lock(mutex);
    ++begun_users;
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
  for (auto waited = 0ms; !stop.stop_requested(); never.wait_for(lock, stop, pause, [] { return false; })) {
    // Another thread's training has something to save, and its caller may have, too.
    if (signalled == 0 || begun_users > 0) {
      waited = 0ms;
      continue;
    }
    if ((waited += pause) < patience) continue;
    const int signal = signalled;
    std::signal(signal, SIG_DFL);
    ::kill(::getpid(), signal);
  }
}

}  // namespace clnet::train
