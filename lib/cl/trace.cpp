#include "lib/cl/trace.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "clnet/error.h"

namespace clnet::ocl {

namespace {

constexpr std::string_view tail = "\n]}\n";

std::string dumped(const nlohmann::json& object) { return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace); }

}  // namespace

std::shared_ptr<TraceFile> TraceFile::open(const std::string& path) {
  static auto& mutex = *new std::mutex;
  static auto& files = *new std::map<std::string, std::weak_ptr<TraceFile>>;
  const std::lock_guard lock(mutex);
  if (auto file = files[path].lock()) return file;
  auto file = std::make_shared<TraceFile>(path);
  files[path] = file;
  return file;
}

TraceFile::TraceFile(const std::string& path) : path_(path), out_(path, std::ios::binary | std::ios::trunc) {
  if (!out_) throw FileError(fmt::format("{}: trace cannot be written: {}", path, std::strerror(errno)));
  out_ << R"({"displayTimeUnit":"ms","traceEvents":[)" << tail << std::flush;
  if (!out_) throw FileError(fmt::format("{}: trace cannot be written: {}", path, std::strerror(errno)));
}

int TraceFile::add_track(std::string_view name) {
  const std::lock_guard lock(mutex_);
  const int track = tracks_++;
  append(dumped({{"name", "thread_name"}, {"ph", "M"}, {"pid", ::getpid()}, {"tid", track}, {"args", {{"name", name}}}}));
  return track;
}

void TraceFile::add(int track, const TraceEvent& event) {
  const std::lock_guard lock(mutex_);
  append(dumped({{"name", event.name},
                 {"cat", "device"},
                 {"ph", "X"},
                 {"ts", event.start_us},
                 {"dur", event.duration_us},
                 {"pid", ::getpid()},
                 {"tid", track},
                 {"args", {{"detail", event.detail}, {"bytes", event.bytes}, {"flops", event.flops}}}}));
}

void TraceFile::append(const std::string& object) {
  pending_ += first_ ? "\n" : ",\n";
  pending_ += object;
  first_ = false;
}

void TraceFile::flush() {
  const std::lock_guard lock(mutex_);
  if (pending_.empty() || !failure_.empty()) return;
  // Over the old tail, with a new one behind: one write keeps the file whole.
  out_.seekp(-static_cast<std::streamoff>(tail.size()), std::ios::end);
  pending_ += tail;
  errno = 0;
  out_ << pending_ << std::flush;
  if (!out_) failure_ = fmt::format("{}: trace is cut short: {}", path_, std::strerror(errno ? errno : EIO));
  pending_.clear();
}

std::string TraceFile::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

}  // namespace clnet::ocl
