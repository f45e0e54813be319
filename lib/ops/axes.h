// Options of 1, 2 and 3 axes as lists with a number for each axis, outermost first.
#pragma once

#include <cstdint>
#include <vector>

#include "clnet/ops/options.h"
#include "clnet/tensor.h"

namespace clnet::ops {

using Extents = std::vector<std::int64_t>;

/// Whether x is {C, ...} with so many axes, a sample without a batch.
inline bool is_one_sample(const Tensor& x, std::size_t axes) {
  return x.defined() && static_cast<std::size_t>(x.rank()) == axes + 1;
}

inline Extents by_axis(std::int64_t one) { return {one}; }
inline Extents by_axis(const Pair& p) { return {p.height, p.width}; }
inline Extents by_axis(const Triple& t) { return {t.depth, t.height, t.width}; }
inline Extents before(const Padding1d& p) { return {p.begin}; }
inline Extents before(const Padding& p) { return {p.top, p.left}; }
inline Extents before(const Padding3d& p) { return {p.front, p.top, p.left}; }
inline Extents after(const Padding1d& p) { return {p.end}; }
inline Extents after(const Padding& p) { return {p.bottom, p.right}; }
inline Extents after(const Padding3d& p) { return {p.back, p.bottom, p.right}; }

}  // namespace clnet::ops
