// What a program says while kernels are compiled.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <cstdio>

#include "clnet/compile.h"
#include "lib/base/compile_pace.h"

namespace clnet::tools {

/// Tells those who read a log, or wait for the first character, what takes so long. On terminals fit() draws a bar.
inline void tell_of_compiling(std::FILE* file) {
  on_compile([file, pace = CompilePace(std::chrono::seconds(1))](std::size_t done, std::size_t total) mutable {
    if (pace.is_news(done, total)) {
      fmt::print(file, "{}\n", CompilePace::text(total));
      std::fflush(file);
    }
    return true;
  });
}

}  // namespace clnet::tools
