// The decision whether a value may be overwritten: does anything besides the caller hold a node's outputs, or a value's memory?
//
// Holders of an output of a node are the tensors that refer to it and the inputs of nodes that read it (Holders in
// lib/graph/node.h). Every Tensor object counts, wherever it is: in a program, a module, an optimizer, a queue, a closure.
// Objects of an evaluation do not count: works, plans, caches, lists of effects. They have uncounted() tensors and pointers to
// nodes and values, in any number. Only weak ones of these outlast the evaluation: a node that is kept keeps its inputs, which
// count, and its value.
//
// Holders of a value are the cells that have it (ValueCell). Leaves of detach() share a value, and so do the constants of
// compile(). A pending read has a cell, and so has memory that was given to a program. All values in one buffer count together,
// as those of views do. An overwritten value has no holders, as nobody can read it.
//
// The answer stays true while the caller acts on it. Only a holder can add another, and the caller knows its own: the inputs in
// its work, and the handles of the slots that DonationOffer names. While a plan is made, the program may run (on_compile()) and
// make handles, so leaves are checked again before each run (Work::may_overwrite_now). Another thread may evaluate the same nodes
// at the same time: it then repeats the same rewrite of a leaf (MayOverwrite::ranges). The leaf's node keeps its value until both
// are done, so that nobody rewrites the memory further meanwhile.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/exec/collect/value.h"
#include "lib/graph/node.h"

namespace clnet::exec {

/// Whether the caller's `own` holders are all holders of the node's outputs.
bool sole_owner(const Node& node, const Holders::Counts& own);
/// The same, ignoring handles of the `asked` outputs (by index; empty: none is ignored).
bool sole_owner(const Node& node, std::uint32_t own_inputs, const std::vector<bool>& asked);
/// Whether the cell with the value is its only holder, so that its memory may be overwritten.
bool sole_owner(const DeviceValue& value);

}  // namespace clnet::exec
