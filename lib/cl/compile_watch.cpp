#include "lib/cl/compile_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "lib/base/process_mutex.h"

namespace clnet::ocl {

namespace {

/// Of this thread.
struct Watching {
  CompileWatch* innermost = nullptr;
  bool telling = false;
};
thread_local Watching watching;

struct Everyone {
  ProcessMutex mutex;
  std::shared_ptr<const CompileTold> told;
  std::atomic<bool> any{false};  ///< whether there is one: else nobody needs the mutex
};
Everyone& everyone() {
  static auto& it = *new Everyone;
  return it;
}

}  // namespace

CompileWatch::CompileWatch(CompileTold told)
    : listener_(std::make_shared<Listener>()), outer_(std::exchange(watching.innermost, this)) {
  listener_->told = std::move(told);
}

CompileWatch::~CompileWatch() {
  watching.innermost = outer_;
  CompileTold told;  // freed without the lock
  const std::lock_guard lock(listener_->mutex);
  listener_->told.swap(told);
}

bool CompileWatch::Listener::operator()(std::size_t done, std::size_t total) {
  const std::lock_guard lock(mutex);
  return !told || told(done, total);
}

CompileTold CompileWatch::forward() {
  std::vector<std::shared_ptr<Listener>> all;
  for (const auto* watch = watching.innermost; watch; watch = watch->outer_) all.push_back(watch->listener_);
  if (all.empty()) return {};
  return [all = std::move(all)](std::size_t done, std::size_t total) {
    bool goes_on = true;
    for (const auto& listener : all) goes_on = (*listener)(done, total) && goes_on;
    return goes_on;
  };
}

bool is_telling() { return watching.telling; }

void require_not_telling() {
  if (watching.telling) throw Error("eval: what on_compile() calls must not evaluate");
}

void watch_compiling(CompileTold told) {
  auto next = told ? std::make_shared<const CompileTold>(std::move(told)) : nullptr;
  auto& all = everyone();
  const std::lock_guard lock(all.mutex);
  all.told.swap(next);
  all.any = all.told != nullptr;
}

Compiling::Compiling(std::size_t total) : total_(total) { tell(0); }

void Compiling::tell(std::size_t done) const {
  if (total_ == 0) return;
  done = std::min(done, total_);
  std::shared_ptr<const CompileTold> told;
  if (auto& all = everyone(); all.any) {
    const std::lock_guard lock(all.mutex);
    told = all.told;
  }
  struct Telling {
    bool outer = std::exchange(watching.telling, true);
    ~Telling() { watching.telling = outer; }
  } const now;
  bool goes_on = !told || (*told)(done, total_);
  for (const auto* watch = watching.innermost; watch; watch = watch->outer_)
    goes_on = (*watch->listener_)(done, total_) && goes_on;
  if (!goes_on) throw CompilingCancelled(fmt::format("compiling was cancelled after {} of {} kernels", done, total_));
}

}  // namespace clnet::ocl
