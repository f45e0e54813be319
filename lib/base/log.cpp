#include "lib/base/log.h"

#include <mutex>
#include <set>
#include <string>

#include "clnet/error.h"
#include "lib/base/env.h"
#include "lib/base/os/terminal.h"

namespace clnet::logging {

namespace {

int level_from_environment() {
  try {
    return static_cast<int>(env::integer("CLNET_DEBUG", 0, 4).value_or(0));
  } catch (const Error& error) {
    // Logging must work inside destructors, so a wrong value cannot be an error here.
    write(error.what());
    return 0;
  }
}

}  // namespace

bool enabled(Level level) {
  static const int least = level_from_environment();
  return static_cast<int>(level) <= least;
}

void write(std::string_view line) { os::write_error(fmt::format("clnet: {}\n", line)); }

void warn_once(std::string_view text) {
  static auto& mutex = *new std::mutex;
  static auto& seen = *new std::set<std::string, std::less<>>;
  {
    const std::lock_guard lock(mutex);
    if (!seen.emplace(text).second) return;
  }
  write(text);
}

}  // namespace clnet::logging
