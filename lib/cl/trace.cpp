#include "lib/cl/trace.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "clnet/error.h"
#include "lib/base/log.h"
#include "lib/base/os/process.h"

namespace clnet::ocl {

namespace {

constexpr std::string_view head = R"({"displayTimeUnit":"ms","traceEvents":[)", tail = "\n]}\n";

/// Those that somebody still writes.
struct Files {
  std::mutex mutex;
  std::map<std::string, std::weak_ptr<TraceFile>> by_path;
};

Files& files() {
  static auto& all = *new Files;
  return all;
}

std::string dumped(const nlohmann::json& object) { return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace); }

}  // namespace

std::shared_ptr<TraceFile> TraceFile::open(const std::string& path) {
  auto& all = files();
  const std::lock_guard lock(all.mutex);
  auto& known = all.by_path[path];
  if (auto file = known.lock()) return file;
  auto file = std::make_shared<TraceFile>(path);
  known = file;
  return file;
}

void TraceFile::tell_failures() {
  auto& all = files();
  const std::lock_guard lock(all.mutex);
  for (const auto& [path, known] : all.by_path)
    if (const auto file = known.lock())
      if (const auto failure = file->failure(); !failure.empty()) logging::warn_once(failure);
}

TraceFile::TraceFile(const std::string& path) : path_(path), out_(path, std::ios::binary | std::ios::trunc) {
  if (!out_) throw FileError(fmt::format("{}: trace cannot be written: {}", path, std::strerror(errno)));
  out_ << head << tail << std::flush;
  if (!out_) throw FileError(fmt::format("{}: trace cannot be written: {}", path, std::strerror(errno)));
  size_ = head.size() + tail.size();
}

int TraceFile::add_track(std::string_view name) {
  const std::lock_guard lock(mutex_);
  const int track = tracks_++;
  append(dumped({{"name", "thread_name"}, {"ph", "M"}, {"pid", os::own_process()}, {"tid", track}, {"args", {{"name", name}}}}));
  return track;
}

void TraceFile::add(int track, const TraceEvent& event) {
  nlohmann::json args{{"detail", event.detail}, {"bytes", event.bytes}, {"flops", event.flops}};
  if (!event.scope.empty()) args["scope"] = event.scope;
  const std::lock_guard lock(mutex_);
  append(dumped({{"name", event.name},
                 {"cat", "device"},
                 {"ph", "X"},
                 {"ts", event.start_us},
                 {"dur", event.duration_us},
                 {"pid", os::own_process()},
                 {"tid", track},
                 {"args", std::move(args)}}));
}

void TraceFile::append(const std::string& object) {
  // Nothing is written any more: what is kept for it would only grow.
  if (!failure_.empty()) return;
  pending_ += first_ ? "\n" : ",\n";
  pending_ += object;
  first_ = false;
}

void TraceFile::flush() {
  const std::lock_guard lock(mutex_);
  if (pending_.empty() || !failure_.empty()) return;
  // Over the old tail, with a new one behind: one write keeps the file whole.
  out_.seekp(static_cast<std::streamoff>(size_ - tail.size()));
  pending_ += tail;
  errno = 0;
  out_ << pending_ << std::flush;
  if (out_) {
    size_ += pending_.size() - tail.size();
  } else {
    failure_ = fmt::format("{}: trace is cut short: {}", path_, std::strerror(errno ? errno : EIO));
    restore();
  }
  pending_.clear();
}

/// What was there has room: it is made to end as before the write that failed.
void TraceFile::restore() {
  out_.close();
  std::error_code code;
  std::filesystem::resize_file(path_, size_, code);
  std::ofstream end(path_, std::ios::binary | std::ios::in | std::ios::out);
  end.seekp(static_cast<std::streamoff>(size_ - tail.size()));
  end << tail;
}

std::string TraceFile::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

}  // namespace clnet::ocl
