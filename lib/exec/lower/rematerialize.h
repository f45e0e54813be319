// Rematerialization: cheap values that are read again much later are computed again.
#pragma once

#include <optional>

#include "lib/exec/collect/subgraph.h"

namespace clnet::exec {

/// The subgraph with some nodes twice: elementwise operations and normalisations of one large input that is alive until then
/// anyway. Examples are the activations after a network's normalisations, in its backward pass. Nothing: there are none.
std::optional<Subgraph> rematerialized(const Subgraph& graph);

}  // namespace clnet::exec
