// A Chrome trace: a JSON file of timed events that chrome://tracing and Perfetto load.
#pragma once

#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

namespace clnet::ocl {

struct TraceEvent {
  std::string_view name, detail;
  double start_us = 0, duration_us = 0;
  double bytes = 0, flops = 0;
  std::string_view scope = {};  ///< the program's scope
};

/// Valid JSON after every flush, also after a failed one, so that an interrupted run leaves a readable trace.
class TraceFile {
 public:
  /// The trace of a path, shared by all devices that write to it. Throws FileError where it cannot be written.
  static std::shared_ptr<TraceFile> open(const std::string& path);
  explicit TraceFile(const std::string& path);

  /// A row of the trace, named after a device.
  int add_track(std::string_view name);
  void add(int track, const TraceEvent& event);
  /// Writes the added events. After a failure nothing more is written, and the file keeps its former content.
  void flush();
  /// Why the file is incomplete, or empty.
  std::string failure() const;
  /// Logs once why unclosed traces are incomplete.
  static void tell_failures();

 private:
  void append(const std::string& object);
  void restore();

  mutable std::mutex mutex_;
  const std::string path_;
  std::ofstream out_;
  std::string failure_;
  std::string pending_;
  std::size_t size_ = 0;  ///< size of the file
  bool first_ = true;
  int tracks_ = 0;
};

}  // namespace clnet::ocl
