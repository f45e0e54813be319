// Children that the host forks.
#pragma once

namespace clnet::os {

/// Has `hook` called in each, before fork() returns there. False where the system has no memory for that.
bool call_in_forked_children(void (*hook)());

}  // namespace clnet::os
