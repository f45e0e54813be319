// Listeners to the progress of compiling, which may end it: a thread's own watches, and the listener of on_compile()
// (clnet/compile.h).
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>

#include "clnet/error.h"

namespace clnet::ocl {

/// Receives the number of compiled kernels and of all; false ends compiling.
using CompileTold = std::function<bool(std::size_t done, std::size_t total)>;

/// Receives the progress of this thread while it lives, and that of the lanes to which the thread gives jobs meanwhile. It is
/// called by one thread at a time.
class CompileWatch {
 public:
  explicit CompileWatch(CompileTold told);
  ~CompileWatch();
  CompileWatch(const CompileWatch&) = delete;
  CompileWatch& operator=(const CompileWatch&) = delete;

  /// A listener that calls all watches of this thread as long as they live. Any thread may call it.
  static CompileTold forward();

 private:
  friend class Compiling;
  struct Listener {
    std::mutex mutex;
    CompileTold told;  ///< null: the watch has ended
    bool operator()(std::size_t done, std::size_t total);
  };
  std::shared_ptr<Listener> listener_;
  CompileWatch* outer_;
};

/// Throws Error within a listener of this thread: the compiling thread holds locks that another evaluation would wait for.
void require_not_telling();
bool is_telling();

/// Sets the listener for all threads; null: none.
void watch_compiling(CompileTold told);

/// Thrown by Compiling when a listener ends it.
class CompilingCancelled : public Error {
 public:
  using Error::Error;
};

/// Reports the compiling of a plan's new kernels. Without new kernels there is no report.
class Compiling {
 public:
  /// Reports 0 of `total` kernels.
  explicit Compiling(std::size_t total);
  /// Reports `done` kernels. Throws CompilingCancelled when a listener ends compiling, as the constructor does.
  void tell(std::size_t done) const;
  std::size_t total() const { return total_; }

 private:
  std::size_t total_;
};

}  // namespace clnet::ocl
