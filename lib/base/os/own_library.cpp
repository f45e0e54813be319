#include "lib/base/os/own_library.h"

#include <dlfcn.h>

namespace clnet::os {

std::filesystem::path own_library() {
  Dl_info here{};
  if (::dladdr(reinterpret_cast<void*>(&own_library), &here) == 0) return {};
  return here.dli_fname;
}

}  // namespace clnet::os
