#include "lib/pocl/start_gate.h"

#include "lib/base/log.h"
#include "lib/cl/check.h"
#include "lib/cl/driver_lifetime.h"

namespace clnet::pocl {

namespace {

cl_int complete(const cl::UserEvent& event) {
  // What a driver lacks at one time it may have at the next; CL_INVALID_OPERATION says that the status has been set before.
  constexpr int attempts = 4;
  cl_int code = CL_SUCCESS;
  for (int i = 0; i < attempts; ++i) {
    code = clSetUserEventStatus(event(), CL_COMPLETE);
    if (code == CL_INVALID_OPERATION) code = CL_SUCCESS;
    if (code == CL_SUCCESS) break;
  }
  return code;
}

}  // namespace

const std::vector<cl::Event>* StartGate::waits(const cl::Context& context) {
  if (!is_mine() || event_()) return nullptr;
  {
    const std::lock_guard lock(mutex_);
    refused_.reserve(refused_.size() + 1);
  }
  try {
    event_ = cl::UserEvent(context);
  } catch (const cl::Error& error) {
    logging::print(logging::Level::plan, "commands are not held back: {} from {}", ocl::error_name(error.err()), error.what());
    owner_ = std::thread::id();
    return nullptr;
  }
  list_ = {event_};
  return &list_;
}

void StartGate::open() noexcept {
  if (!is_mine()) return;
  if (event_() && ocl::drivers_gone()) {
    leave_behind();
  } else if (event_() && complete(event_) != CL_SUCCESS) {
    const std::lock_guard lock(mutex_);
    refused_.push_back(event_);
    stuck_ = true;
  }
  list_.clear();
  event_ = cl::UserEvent();
  owner_ = std::thread::id();
}

void StartGate::require_open() {
  open();
  if (!stuck_) return;
  const std::lock_guard lock(mutex_);
  while (!refused_.empty()) {
    if (const auto code = complete(refused_.back()); code != CL_SUCCESS) throw cl::Error(code, "clSetUserEventStatus");
    refused_.pop_back();
  }
  stuck_ = false;
}

void StartGate::leave_behind() {
  for (auto& event : list_) ocl::leave_behind(event);
  for (auto& event : refused_) ocl::leave_behind(event);
  ocl::leave_behind(event_);
}

}  // namespace clnet::pocl
