#include "lib/base/os/signals.h"

#include <signal.h>
#include <unistd.h>

#include <array>

namespace clnet::os {

namespace {

struct Handled {
  int signal;
  struct sigaction found;
  bool is_ignored() const { return found.sa_handler == SIG_IGN; }
};

std::array<Handled, 2> all_handled{{{SIGINT, {}}, {SIGTERM, {}}}};

}  // namespace

void catch_end_signals(void (*handler)(int signal)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (auto& handled : all_handled) {
    ::sigaction(handled.signal, nullptr, &handled.found);
    if (!handled.is_ignored()) ::sigaction(handled.signal, &action, nullptr);
  }
}

// In a handler: what was found does not change while one of ours is there.
void restore_end_signal(int signal) {
  for (const auto& handled : all_handled)
    if (handled.signal == signal && !handled.is_ignored()) ::sigaction(signal, &handled.found, nullptr);
}

void restore_end_signals() {
  for (const auto& handled : all_handled) restore_end_signal(handled.signal);
}

void signal_self(int signal) { ::kill(::getpid(), signal); }

}  // namespace clnet::os
