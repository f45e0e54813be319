// What must hold of groups that are to become kernels, whoever made them.
#pragma once

#include <span>

#include "lib/exec/fuse/fusion.h"

namespace clnet::exec {

/// Throws Error, naming group and value, unless
///  - every group finds what it reads: a leaf's value, what a group before it writes, or what it makes itself (a head's result at
///    its own places, a prologue's output);
///  - no value is written twice, and all that is wanted is there in the end;
///  - a head's result is not written where a kernel ends with others, nor a prologue's output: neither is a result.
void check_groups(std::span<const Group> groups, const Subgraph& graph);

}  // namespace clnet::exec
