// Who may overwrite: what decides whether anybody but the asker has a node's outputs, or a value's memory.
//
// Holders of an output of a node are the tensors that refer to it and the inputs of nodes that read it (Holders in
// lib/graph/node.h). Every Tensor object is one, wherever it is: in a program, a module, an optimizer, a queue, a closure. What
// an evaluation makes on its way is none: works, plans, caches, lists of effects. Those have uncounted() tensors, pointers to
// nodes, and pointers to values, of which any number changes nothing. None of them outlasts its evaluation but weak ones: a node
// that is kept keeps its inputs, which count, and its value.
//
// Holders of a value are the slots that have it (ValueSlot). Leaves that detach() makes share one, and so do the constants of
// compile(); a reading that is under way has a slot, and so has memory that a program was handed. All values in one buffer count
// together, as those of views do. Of a value that is overwritten there are none: nobody can read it.
//
// What is found stays true while it is acted upon. Only a holder can make another, and the asker knows its own: the inputs in its
// work, and a handle where its caller says so (Giving). While a plan is made the program may be called (on_compile()) and make
// handles, so leaves are looked at again before each run (Work::gift_now). Another thread may evaluate the same nodes at the same
// time: then it makes the same again of a leaf that was rewritten (Gift::rewritten). The leaf's node keeps its slot until both
// are done, so that nobody rewrites the memory further meanwhile.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/exec/collect/value.h"
#include "lib/graph/node.h"

namespace clnet::exec {

/// Whether nobody holds an output of the node beside `own`: what the asker says is its own.
bool sole_owner(const Node& node, const Holders::Counts& own);
/// The same where handles of some outputs do not matter: those of `asked`, by output, or of none where it is empty.
bool sole_owner(const Node& node, std::uint32_t own_inputs, const std::vector<bool>& asked);
/// Whether the one slot that holds the value may have something else written to the memory that it is in.
bool sole_owner(const DeviceValue& value);

}  // namespace clnet::exec
