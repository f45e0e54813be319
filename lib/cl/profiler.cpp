#include "lib/cl/profiler.h"

#include <fmt/format.h>

#include <chrono>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "clnet/error.h"
#include "lib/base/env.h"
#include "lib/base/log.h"
#include "lib/cl/check.h"
#include "lib/cl/trace.h"

namespace clnet::ocl {

namespace {

/// So many commands may wait to be read before finished ones are looked for.
constexpr std::size_t collect_every = 1024;

double host_now_us() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double per_second(double amount, double microseconds) { return microseconds > 0 ? amount / microseconds * 1e-3 : 0; }

}  // namespace

struct Profiler::State {
  struct Command {
    cl::Event event;
    std::string name, detail, scope;
    double bytes, flops;
    double enqueued_us;
  };

  std::mutex mutex;
  std::string device;
  bool lines = false;
  std::shared_ptr<TraceFile> trace;
  int track = 0;
  std::deque<Command> commands;
  std::optional<double> clock_offset_us;  ///< host's clock minus device's; several devices share one trace

  void open(const std::string& path) {
    trace = TraceFile::open(path);
    track = trace->add_track(device);
    trace->flush();
  }

  void report(const Command& command) {
    cl_ulong queued = 0, start = 0, end = 0;
    try {
      queued = command.event.getProfilingInfo<CL_PROFILING_COMMAND_QUEUED>();
      start = command.event.getProfilingInfo<CL_PROFILING_COMMAND_START>();
      end = command.event.getProfilingInfo<CL_PROFILING_COMMAND_END>();
    } catch (const cl::Error& error) {
      logging::warn_once(fmt::format("no times of {} on {}: {}", command.name, device, error_name(error.err())));
      return;
    }
    const double start_us = static_cast<double>(start) * 1e-3;
    const double duration_us = end > start ? static_cast<double>(end - start) * 1e-3 : 0;
    if (!clock_offset_us) clock_offset_us = command.enqueued_us - static_cast<double>(queued ? queued : start) * 1e-3;
    if (lines) {
      logging::write(fmt::format("{:>10.1f} us {:>7.1f} GB/s {:>8.1f} GFLOP/s  {} {}", duration_us,
                                 per_second(command.bytes, duration_us), per_second(command.flops, duration_us), command.name,
                                 command.detail));
    }
    if (trace) {
      trace->add(track, {command.name, command.detail, start_us + *clock_offset_us, duration_us, command.bytes, command.flops,
                         command.scope});
    }
  }

  /// With the mutex held. After a finish the commands are waited for: some drivers set an event's status a little later.
  void collect(bool finished) {
    while (!commands.empty()) {
      cl_int status = CL_INVALID_EVENT;
      try {
        if (finished) commands.front().event.wait();
        status = commands.front().event.getInfo<CL_EVENT_COMMAND_EXECUTION_STATUS>();
      } catch (const cl::Error& error) {
        logging::print(logging::Level::plan, "{} on {}: {}", commands.front().name, device, error_name(error.err()));
      }
      if (status > CL_COMPLETE) break;
      if (status == CL_COMPLETE) report(commands.front());
      commands.pop_front();
    }
    if (trace) trace->flush();
  }
};

Profiler::Profiler(std::string_view device) : state_(std::make_unique<State>()) {
  state_->device = device;
  state_->lines = logging::enabled(logging::Level::kernel);
  if (const auto path = env::text("CLNET_TRACE")) state_->open(*path);
  enabled_ = state_->lines || state_->trace;
}

Profiler::~Profiler() {
  collect();
  // stop_trace() throws it, and nobody has called that.
  if (!state_->trace) return;
  if (const auto failure = state_->trace->failure(); !failure.empty()) logging::warn_once(failure);
}

void Profiler::start_trace(const std::string& path) {
  const std::lock_guard lock(state_->mutex);
  state_->open(path);
  enabled_ = true;
}

void Profiler::stop_trace() {
  const std::lock_guard lock(state_->mutex);
  state_->collect(true);
  const auto trace = std::exchange(state_->trace, nullptr);
  enabled_ = state_->lines;
  if (!trace) return;
  if (const auto failure = trace->failure(); !failure.empty()) throw FileError(failure);
}

void Profiler::add(const cl::Event& event, const Cost& cost) {
  const std::lock_guard lock(state_->mutex);
  state_->commands.push_back(
      {event, std::string(cost.name), std::string(cost.detail), std::string(cost.scope), cost.bytes, cost.flops, host_now_us()});
  if (state_->commands.size() % collect_every == 0) state_->collect(false);
}

void Profiler::collect() {
  const std::lock_guard lock(state_->mutex);
  if (enabled_) state_->collect(true);
}

}  // namespace clnet::ocl
