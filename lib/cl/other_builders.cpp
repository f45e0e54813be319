#include "lib/cl/other_builders.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

namespace clnet::ocl {

namespace {

thread_local WhileWaiting* innermost = nullptr;

}  // namespace

WhileWaiting::WhileWaiting(std::function<void()> told) : told_(std::move(told)), outer_(std::exchange(innermost, this)) {}

WhileWaiting::~WhileWaiting() { innermost = outer_; }

void wait_for_other_builders(KeyLocks& locks, const DiskCache& disk, const std::string& key) {
  using std::chrono::milliseconds;
  static std::atomic<bool> patient{true};
  // Not by the clock, which goes on while this process is stopped.
  milliseconds waited{0}, pause{1};
  while (!locks.take(key) && !disk.has(key) && patient) {
    if (innermost) innermost->told_();
    std::this_thread::sleep_for(pause);
    waited += pause;
    pause = std::min(2 * pause, milliseconds(50));
    if (waited >= std::chrono::minutes(1)) patient = false;
  }
}

}  // namespace clnet::ocl
