#include "lib/base/os/host.h"

#include <unistd.h>

#include <array>
#include <cstdio>

namespace clnet::os {

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0 || !name[0]) return "unknown";
  return name.data();
}

void end_now(int code) {
  std::fflush(nullptr);
  ::_exit(code);
}

}  // namespace clnet::os
