// Sums of arrays of several ranks, in the order of ranks: equal bits wherever they are added.
#pragma once

#include <cstddef>
#include <span>

#include "clnet/dtype.h"

namespace clnet::dist {

/// Throws DtypeError for what has no sums.
void require_sums(Dtype dtype);

/// Writes the sums of `count` elements of each part to `sums`, which may be one of the parts. f16 and bf16 are added in f32.
void add_parts(Dtype dtype, std::span<const std::byte* const> parts, std::byte* sums, std::size_t count);

}  // namespace clnet::dist
