#include "lib/cl/driver_lifetime.h"

#include <atomic>

#include "clnet/error.h"
#include "lib/base/os/fork.h"
#include "lib/cl/before_drivers_end.h"

namespace clnet::ocl {

namespace {

std::atomic<bool> inherited{false}, ended{false};
std::atomic<void (*)()> before_end{nullptr};

}  // namespace

void use_drivers() {
  [[maybe_unused]] static const bool registered = os::call_in_forked_children([] { inherited = true; });
}

void require_drivers() {
  if (inherited) {
    throw DeviceError(
        "this process is a child that was forked after clnet had used OpenCL, whose drivers do not work in it: fork before the "
        "first use of a device, or start a program anew");
  }
  if (ended) throw DeviceError("the process is ending, and its OpenCL drivers with it: devices cannot be used any more");
}

bool in_forked_child() { return inherited; }

bool drivers_gone() { return inherited || ended; }

void end_drivers() { ended = true; }

void before_drivers_end(void (*call)()) { before_end = call; }

void call_before_drivers_end() {
  if (auto* const call = before_end.load()) call();
}

}  // namespace clnet::ocl
