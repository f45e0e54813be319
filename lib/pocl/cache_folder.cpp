#include "lib/pocl/cache_folder.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "lib/base/os/access.h"

namespace clnet::pocl {

std::optional<std::string> cache_folder() {
  // As PoCL reads it: everything else is off.
  if (const char* kept = std::getenv("POCL_KERNEL_CACHE"); kept && *kept != '1') return std::nullopt;
  if (const char* own = std::getenv("POCL_CACHE_DIR"); own && *own) return own;
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg && *xdg) return std::string(xdg) + "/pocl/kcache";
  if (const char* home = std::getenv("HOME"); home && *home) return std::string(home) + "/.cache/pocl/kcache";
  return "/tmp/pocl/kcache";
}

std::string unusable_cache() {
  const auto folder = cache_folder();
  std::error_code code;
  if (!folder || !std::filesystem::exists(*folder, code)) return {};
  if (!std::filesystem::is_directory(*folder, code))
    return fmt::format("its cache folder {} is no folder (POCL_CACHE_DIR)", *folder);
  // It compiles there also what it has compiled before.
  return os::may_write(*folder) ? "" : fmt::format("its cache folder {} cannot be written (POCL_CACHE_DIR)", *folder);
}

std::string no_device_without_cache() {
  const auto folder = cache_folder();
  std::error_code code;
  if (folder && (!std::filesystem::create_directories(*folder, code) && code))
    return fmt::format("; PoCL has none where its cache folder cannot be made: {} (POCL_CACHE_DIR): {}", *folder, code.message());
  if (folder && !os::may_write(*folder))
    return fmt::format("; PoCL has none where its cache folder cannot be written: {} (POCL_CACHE_DIR)", *folder);
  return {};
}

}  // namespace clnet::pocl
