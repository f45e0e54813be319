// Who is told how far compiling has come, and may end it: a thread's own watches, and whoever on_compile() (clnet/compile.h)
// named.
#pragma once

#include <cstddef>
#include <functional>

#include "clnet/error.h"

namespace clnet::ocl {

/// Of `total` kernels so many are compiled; false ends it.
using CompileTold = std::function<bool(std::size_t done, std::size_t total)>;

/// Told of what this thread compiles while it lives.
class CompileWatch {
 public:
  explicit CompileWatch(CompileTold told);
  ~CompileWatch();
  CompileWatch(const CompileWatch&) = delete;
  CompileWatch& operator=(const CompileWatch&) = delete;

 private:
  friend class Compiling;
  CompileTold told_;
  CompileWatch* outer_;
};

/// Throws Error when this thread is telling somebody: who compiles holds what another evaluation would wait for.
void require_not_telling();

/// Told of what any thread compiles from now on; null: nobody.
void watch_compiling(CompileTold told);

/// What Compiling throws when somebody wants it to end.
class CompilingCancelled : public Error {
 public:
  using Error::Error;
};

/// The compiling of a plan's new kernels. Nobody hears of none.
class Compiling {
 public:
  /// Tells that none of so many is compiled yet.
  explicit Compiling(std::size_t total);
  /// That so many are. Throws CompilingCancelled when somebody wants it to end; so does the constructor.
  void tell(std::size_t done) const;
  std::size_t total() const { return total_; }

 private:
  std::size_t total_;
};

}  // namespace clnet::ocl
