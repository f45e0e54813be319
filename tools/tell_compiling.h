// What a program says while kernels are compiled.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <utility>

#include "clnet/compile.h"
#include "lib/base/compile_pace.h"

namespace clnet::tools {

/// Tells those who read a log, or wait for the first character, what takes so long. On terminals fit() draws a bar. `check` is
/// called several times a second meanwhile: its exception ends compiling. `file`: null for silence.
inline void tell_of_compiling(std::FILE* file, std::function<void()> check = nullptr) {
  on_compile(
      [file, check = std::move(check), pace = CompilePace(std::chrono::seconds(1))](std::size_t done, std::size_t total) mutable {
        if (check) check();
        if (file && pace.is_news(done, total)) {
          fmt::print(file, "{}\n", CompilePace::text(total));
          std::fflush(file);
        }
        return true;
      });
}

}  // namespace clnet::tools
