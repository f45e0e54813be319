#include "lib/cl/in_flight.h"

#include <chrono>
#include <thread>
#include <utility>

#include "lib/cl/driver_lifetime.h"

namespace clnet::ocl {

namespace {

/// Done or failed. The bindings' getInfo would throw.
bool is_over(const cl::Event& event) {
  cl_int status = CL_QUEUED;
  return clGetEventInfo(event(), CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr) == CL_SUCCESS &&
         status <= CL_COMPLETE;
}

}  // namespace

void watch(const cl::CommandQueue& queue, const cl::Event& event) {
  using clock = std::chrono::steady_clock;
  clFlush(queue());
  const auto end = clock::now() + std::chrono::microseconds(150);
  while (!is_over(event) && clock::now() < end) std::this_thread::yield();
}

void wait_until_over(const cl::CommandQueue& queue, const cl::Event& event) {
  using namespace std::chrono_literals;
  try {
    event.wait();
  } catch (const cl::Error&) {
    if (!is_over(event)) clFinish(queue());
    for (int i = 0; i < 1000 && !is_over(event); ++i) std::this_thread::sleep_for(10ms);
    throw;
  }
}

void InFlight::wait_while(const std::function<bool()>& too_much, const std::function<void()>& before_wait) {
  for (;;) {
    cl::Event oldest;
    {
      const std::lock_guard lock(mutex_);
      while (!pending_.empty() && is_over(pending_.front().event)) drop_oldest();
      if (pending_.empty() || !too_much()) return;
      oldest = pending_.front().event;
    }
    before_wait();
    oldest.wait();
    const std::lock_guard lock(mutex_);
    // Some drivers set an event's status a little later than they wake who waits for it.
    if (!pending_.empty() && pending_.front().event() == oldest()) drop_oldest();
  }
}

void InFlight::make_room(std::size_t bytes, std::size_t most, const std::function<void()>& before_wait) {
  wait_while([&] { return bytes_ + bytes > most; }, before_wait);
}

void InFlight::hold(const cl::Event& event, Bytes data, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  pending_.push_back({event, std::move(data), bytes});
  bytes_ += bytes;
}

void InFlight::mark(const cl::Event& event, std::size_t most) {
  {
    const std::lock_guard lock(mutex_);
    pending_.push_back({event, nullptr, 0});
    ++marks_;
  }
  wait_while([&] { return marks_ > most; }, [] {});
}

void InFlight::collect() {
  const std::lock_guard lock(mutex_);
  while (!pending_.empty() && is_over(pending_.front().event)) drop_oldest();
}

std::size_t InFlight::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

InFlight::~InFlight() {
  for (PendingCommand& pending : pending_) {
    if (drivers_gone()) {
      leave_behind(pending.event);
    } else if (is_over(pending.event)) {
      continue;
    }
    [[maybe_unused]] const auto* left = new Bytes(std::move(pending.data));
  }
}

void InFlight::drop_oldest() {
  PendingCommand& oldest = pending_.front();
  bytes_ -= oldest.bytes;
  if (!oldest.data) --marks_;
  pending_.pop_front();
}

}  // namespace clnet::ocl
