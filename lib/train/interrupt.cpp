#include "lib/train/interrupt.h"

#include <csignal>
#include <mutex>

namespace clnet::train {

namespace {

volatile std::sig_atomic_t signalled = 0;
std::mutex mutex;  // guards what follows
int users = 0;
struct sigaction old_int, old_term;

extern "C" void remember(int signal) {
  if (signalled) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
  signalled = 1;
}

}  // namespace

Interrupt::Interrupt(bool on) : on_(on) {
  if (!on) return;
  const std::lock_guard lock(mutex);
  if (users++ > 0) return;
  signalled = 0;
  struct sigaction action {};
  action.sa_handler = remember;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &old_int);
  sigaction(SIGTERM, &action, &old_term);
}

Interrupt::~Interrupt() {
  if (!on_) return;
  const std::lock_guard lock(mutex);
  if (--users > 0) return;
  sigaction(SIGINT, &old_int, nullptr);
  sigaction(SIGTERM, &old_term, nullptr);
}

bool Interrupt::requested() const { return on_ && signalled != 0; }

}  // namespace clnet::train
