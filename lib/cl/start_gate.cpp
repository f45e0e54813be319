#include "lib/cl/start_gate.h"

namespace clnet::ocl {

const std::vector<cl::Event>* StartGate::waits(const cl::Context& context) {
  if (!is_mine() || event_()) return nullptr;
  event_ = cl::UserEvent(context);
  list_ = {event_};
  return &list_;
}

void StartGate::open() noexcept {
  if (!is_mine()) return;
  if (event_()) clSetUserEventStatus(event_(), CL_COMPLETE);
  list_.clear();
  event_ = cl::UserEvent();
  owner_ = std::thread::id();
}

}  // namespace clnet::ocl
