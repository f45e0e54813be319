#include "lib/base/os/fork.h"

#include <pthread.h>

namespace clnet::os {

bool call_in_forked_children(void (*hook)()) { return ::pthread_atfork(nullptr, nullptr, hook) == 0; }

}  // namespace clnet::os
