// Times of kernels and transfers from OpenCL events, when somebody asked: CLNET_DEBUG=2 or more prints a line per kernel,
// CLNET_TRACE writes a Chrome trace.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>

#include "lib/cl/opencl.h"

namespace clnet::ocl {

/// What a launch was and how much it moved and computed, for the profiler's lines.
struct Cost {
  std::string_view name;    ///< of the kernel or call; copied
  std::string_view detail;  ///< what it works on: shapes, solver; copied
  double bytes = 0;         ///< read and written
  double flops = 0;
  std::string_view scope = {};  ///< of the program, in which it was called; copied
};

class Profiler {
 public:
  /// `device` names the row of the trace. Throws FileError when CLNET_TRACE's file cannot be written.
  explicit Profiler(std::string_view device);
  ~Profiler();

  /// Whether commands must carry an event.
  bool enabled() const { return enabled_; }
  /// Starts recording into a Chrome trace in addition to the lines that CLNET_DEBUG asks for, in place of another trace. Throws
  /// FileError when the file cannot be written.
  void start_trace(const std::string& path);
  /// Completes the trace; all commands must be done. Throws FileError when it could not be written in full.
  void stop_trace();
  /// Remembers an enqueued command; its times are read once it is done.
  void add(const cl::Event& event, const Cost& cost);
  /// Reads the times of all commands, and prints or stores them. Called by Context::finish(), when they are done.
  void collect();

 private:
  struct State;
  std::unique_ptr<State> state_;
  std::atomic<bool> enabled_{false};
};

}  // namespace clnet::ocl
