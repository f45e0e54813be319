#include "lib/base/os/own_library.h"

#include <dlfcn.h>
#include <errno.h>

#include <cstring>
#include <system_error>

namespace clnet::os {

std::filesystem::path own_library() {
  Dl_info here{};
  if (::dladdr(reinterpret_cast<void*>(&own_library), &here) == 0) return {};
  std::error_code code;
  // A program's name is what it was called by, which a shell may have found elsewhere.
  if (std::strcmp(here.dli_fname, program_invocation_name) == 0) return std::filesystem::read_symlink("/proc/self/exe", code);
  auto path = std::filesystem::canonical(here.dli_fname, code);
  return code ? std::filesystem::path() : path;
}

}  // namespace clnet::os
