// The loops of a generated kernel: over which extents it runs, and where a tensor of a smaller shape is read in them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "clnet/shape.h"

namespace clnet::exec {

/// How far a tensor's linear index moves with each loop, outermost first.
using Strides = std::vector<std::int64_t>;

/// The outermost loops first, none of extent 1, cut so finely that each loop walks along one dimension of every one of `shapes`,
/// all with the same number of elements. Nothing when their dimensions do not nest, as those of [2, 3] and [3, 2].
std::optional<std::vector<std::int64_t>> common_loops(const std::vector<Shape>& shapes);

/// The strides of the linear index over all loops.
Strides linear_strides(const std::vector<std::int64_t>& loops);

/// The strides of a tensor of shape `small` that is broadcast to `large` (or is a reshape of it), which has the strides
/// `strides`. Nothing when a loop would walk along more than one dimension.
std::optional<Strides> broadcast_strides(const Shape& small, const Shape& large, const Strides& strides,
                                         const std::vector<std::int64_t>& loops);

/// Joins neighbouring loops where all of `strides` allow it; at least one loop is left. Both arguments are changed.
void join_loops(std::vector<std::int64_t>& loops, const std::vector<Strides*>& strides);

}  // namespace clnet::exec
