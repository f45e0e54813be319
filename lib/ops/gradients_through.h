// For operations whose gradients are those of a graph: of the same formula made of other operations.
#pragma once

#include <cstdint>

#include "lib/graph/op.h"

namespace clnet::ops {

/// The gradients of `outputs` with respect to `inputs`, undefined where there is none. All nodes from Node::order `first` on
/// are looked through, none before. An input that is given twice gets its gradient at its first place.
Tensors gradients_through(const Tensors& outputs, const Tensors& output_gradients, const Tensors& inputs, std::uint64_t first);

}  // namespace clnet::ops
