// The loops of a generated kernel: their extents, and the strides of smaller tensors in them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "clnet/shape.h"

namespace clnet::exec {

/// The step of a tensor's linear index in each loop, outermost first.
using Strides = std::vector<std::int64_t>;

/// The loops, outermost first, none of extent 1. They are cut so finely that each walks along one dimension of each of `shapes`,
/// which all have the same number of elements. Nothing where the dimensions do not nest, as in [2, 3] and [3, 2].
std::optional<std::vector<std::int64_t>> common_loops(const std::vector<Shape>& shapes);

/// The strides of the linear index over all loops.
Strides linear_strides(const std::vector<std::int64_t>& loops);

/// The strides of a tensor of shape `small` that is broadcast to `large` (or is a reshape of it), where `large` has the strides
/// `strides`. Nothing where a loop would walk along more than one dimension.
std::optional<Strides> broadcast_strides(const Shape& small, const Shape& large, const Strides& strides,
                                         const std::vector<std::int64_t>& loops);

/// Joins neighbouring loops where all of `strides` allow it; at least one loop is left. Both arguments are changed.
void join_loops(std::vector<std::int64_t>& loops, const std::vector<Strides*>& strides);

}  // namespace clnet::exec
