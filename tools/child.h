// What a process does that another program of clnet's has started.
#pragma once

#ifdef __linux__
#include <sys/prctl.h>
#endif

#include <csignal>

namespace clnet::tools {

/// Between fork() and exec: it ends when the one that started it does.
inline void end_with_parent() {
#ifdef __linux__
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
#endif
}

}  // namespace clnet::tools
