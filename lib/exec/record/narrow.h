// Of operations of which one part alone is read, only that part: of a product the gradient of a concatenation, say, of which one
// input needs none.
#pragma once

#include "lib/exec/record/work.h"

namespace clnet::exec {

/// Replaces nodes of a private copy of work (see private_copy()): what made the whole becomes a view of its inputs, and what read
/// the part makes it. Each keeps its place among the nodes. `work.kept` is kept as it is.
CLNET_API void narrow(Work& work);

}  // namespace clnet::exec
