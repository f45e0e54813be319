// Less memory for more arithmetic: cheap values that are read again much later are computed again then.
#pragma once

#include <optional>

#include "lib/exec/collect/subgraph.h"

namespace clnet::exec {

/// The subgraph with some nodes twice: elementwise operations and normalisations of one large input, where that input is there
/// until then anyway, as are the activations behind the normalisations of a network in its backward pass. Nothing: there are
/// none.
std::optional<Subgraph> rematerialized(const Subgraph& graph);

}  // namespace clnet::exec
