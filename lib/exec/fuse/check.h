// Invariants of groups before they become kernels.
#pragma once

#include <span>

#include "lib/exec/fuse/fusion.h"

namespace clnet::exec {

/// Throws Error, with group and value, unless
/// - every group finds its inputs: a leaf's value, a value written by an earlier group, or one of its own (a head's result at its
///   own places, a prologue's output);
/// - no value is written twice, and all wanted values are written;
/// - a head's result is not written where other operations end its kernel, nor a prologue's output: neither is a result.
void check_groups(std::span<const Group> groups, const Subgraph& graph);

}  // namespace clnet::exec
