#pragma once
// Winograd's F(4x4, 3x3) on CPUs, in both directions.
#include <cstdint>
#include <limits>

namespace clnet::ops {

/// Results of a tile along one side, products of a tile, and how far its kernels count.
constexpr std::int64_t winograd_out = 4, winograd_products = 36, winograd_indices = std::numeric_limits<std::int32_t>::max();

}  // namespace clnet::ops
