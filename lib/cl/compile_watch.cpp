#include "lib/cl/compile_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>

namespace clnet::ocl {

namespace {

/// Of this thread.
struct Watching {
  CompileWatch* innermost = nullptr;
  bool telling = false;
};
thread_local Watching watching;

struct Everyone {
  std::mutex mutex;
  std::shared_ptr<const CompileTold> told;
};
Everyone& everyone() {
  static auto& it = *new Everyone;
  return it;
}

}  // namespace

CompileWatch::CompileWatch(CompileTold told) : told_(std::move(told)), outer_(std::exchange(watching.innermost, this)) {}
CompileWatch::~CompileWatch() { watching.innermost = outer_; }

bool is_telling() { return watching.telling; }

void require_not_telling() {
  if (watching.telling) throw Error("eval: what on_compile() calls must not evaluate");
}

void watch_compiling(CompileTold told) {
  auto next = told ? std::make_shared<const CompileTold>(std::move(told)) : nullptr;
  auto& all = everyone();
  const std::lock_guard lock(all.mutex);
  all.told.swap(next);
}

Compiling::Compiling(std::size_t total) : total_(total) { tell(0); }

void Compiling::tell(std::size_t done) const {
  if (total_ == 0) return;
  done = std::min(done, total_);
  std::shared_ptr<const CompileTold> told;
  {
    auto& all = everyone();
    const std::lock_guard lock(all.mutex);
    told = all.told;
  }
  struct Telling {
    bool outer = std::exchange(watching.telling, true);
    ~Telling() { watching.telling = outer; }
  } const now;
  bool goes_on = !told || (*told)(done, total_);
  for (const auto* watch = watching.innermost; watch; watch = watch->outer_) goes_on = watch->told_(done, total_) && goes_on;
  if (!goes_on) throw CompilingCancelled(fmt::format("compiling was cancelled after {} of {} kernels", done, total_));
}

}  // namespace clnet::ocl
