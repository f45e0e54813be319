// Times of kernels and transfers from OpenCL events. CLNET_DEBUG=2 or more prints a line per kernel, CLNET_TRACE writes a Chrome
// trace.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>

#include "lib/cl/opencl.h"

namespace clnet::ocl {

/// Name, traffic and arithmetic of a launch, for the profiler's lines.
struct Cost {
  std::string_view name;    ///< name of the kernel or call; copied
  std::string_view detail;  ///< its shapes and solver; copied
  double bytes = 0;         ///< read and written
  double flops = 0;
  std::string_view scope = {};  ///< the program's scope at the call; copied
};

class Profiler {
 public:
  /// `device` names the row of the trace. Throws FileError where CLNET_TRACE's file cannot be written.
  explicit Profiler(std::string_view device);
  ~Profiler();

  /// Whether commands must carry an event.
  bool enabled() const { return enabled_; }
  /// Starts a Chrome trace beside the lines of CLNET_DEBUG; it replaces an earlier trace. Throws FileError where the file cannot
  /// be written.
  void start_trace(const std::string& path);
  /// Completes the trace; all commands must be done. Throws FileError where it could not be written in full.
  void stop_trace();
  /// Remembers an enqueued command, to read its times once it is done.
  void add(const cl::Event& event, const Cost& cost);
  /// Reads the times of all commands, which must be done, and prints or stores them. Context::finish() calls it.
  void collect();

 private:
  struct State;
  std::unique_ptr<State> state_;
  std::atomic<bool> enabled_{false};
};

}  // namespace clnet::ocl
