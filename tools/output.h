// Standard output at the end of a program: what was not written is an error.
#pragma once

#include <cstdio>

#include "clnet/error.h"

namespace clnet::tools {

inline void require_written() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) throw FileError("standard output cannot be written in full");
}

}  // namespace clnet::tools
