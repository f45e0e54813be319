#include "lib/graph/capture.h"

#include <atomic>
#include <utility>

#include "lib/graph/slot.h"

namespace clnet {

namespace {
thread_local Capture* current_capture = nullptr;
}

Capture* capturing() { return current_capture; }

std::uint64_t Capture::next_id() {
  static std::atomic<std::uint64_t> count{0};
  return ++count;
}

Tensor Capture::value_of(const std::shared_ptr<Slot>& slot) {
  if (keeps_values) return slot->now();
  auto& stand_in = stand_ins[slot.get()];
  if (!stand_in.defined()) {
    stand_in = make_leaf(*slot, slot->now().spec(), std::make_shared<InputValue>());
    slots.insert({node_of(stand_in).get(), {stand_in, slot}});
  }
  return stand_in;
}

Capturing::Capturing(Capture* capture) : before_(std::exchange(current_capture, capture)) {}
Capturing::~Capturing() { current_capture = before_; }

}  // namespace clnet
