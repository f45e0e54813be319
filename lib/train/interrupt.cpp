#include "lib/train/interrupt.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <system_error>

namespace clnet::train {

namespace {

struct Handled {
  int signal;
  struct sigaction found;
  bool is_ignored() const { return found.sa_handler == SIG_IGN; }
};

std::atomic<int> signalled{0};  ///< the first signal's number
static_assert(std::atomic<int>::is_always_lock_free, "handlers may use no other");
std::mutex mutex;  // guards what follows
int users = 0;
bool has_begun = false;  ///< any training of this process, also one that has ended: its caller may still have something to save
std::array<Handled, 2> all_handled{{{SIGINT, {}}, {SIGTERM, {}}}};

/// Also called by a handler: what was found does not change while one of ours is there.
void put_back(int signal) {
  for (const auto& handled : all_handled)
    if (handled.signal == signal && !handled.is_ignored()) sigaction(signal, &handled.found, nullptr);
}

extern "C" void remember(int signal) {
  if (signalled != 0) {
    put_back(signal);
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
    for (auto& handled : all_handled) {
      sigaction(handled.signal, nullptr, &handled.found);
      // As in the background of a script, or under nohup.
      if (!handled.is_ignored()) sigaction(handled.signal, &action, nullptr);
    }
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
  if (--users > 0) return;
  for (const auto& handled : all_handled) put_back(handled.signal);
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
    put_back(signal);
    ::kill(::getpid(), signal);
    return;
  }
}

}  // namespace clnet::train
