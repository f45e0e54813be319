// Less memory for more arithmetic: cheap values that are read again much later are computed again then.
#pragma once

#include "lib/exec/collect/work.h"

namespace clnet::exec {

/// The same work, as copies of its nodes, some of them twice. The leaves are the same, in the same order.
struct Recomputing {
  Work work;
  std::size_t repeated = 0;  ///< nodes that are computed twice
};

/// Repeats elementwise operations and normalisations of one large input, where that input is kept until then anyway: the
/// activations behind the normalisations of a network, in its backward pass.
Recomputing recompute(const Work& work);

}  // namespace clnet::exec
