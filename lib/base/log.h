// Lines on stderr, each written in one call so that threads do not mix. The level comes from CLNET_DEBUG.
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace clnet::logging {

/// A line appears if CLNET_DEBUG is at least its level.
enum class Level { warning = 0, plan = 1, kernel = 2, solver = 3, source = 4 };

bool enabled(Level level);
void write(std::string_view line);

template <class... Args>
void print(Level level, fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(level)) write(fmt::format(format, std::forward<Args>(args)...));
}

/// Something slow or worked around; each text appears once per process.
void warn_once(std::string_view text);

}  // namespace clnet::logging
