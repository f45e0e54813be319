// What the functions that scatter have in common.
#pragma once

#include <cstdint>
#include <string_view>

#include "clnet/tensor.h"

namespace clnet::ops {

/// What is scattered, scalars as lines of one element: `dim` from 0 on, and of the source what has an index.
struct Scattered {
  int dim;
  Tensor x, indices, source;
};
/// Throws unless the arguments fit each other.
Scattered require_scatter(std::string_view op, const Tensor& x, int dim, const Tensor& indices, const Tensor& source);
/// In the dtype that sums are made in. Throws DtypeError for bool.
Tensor summable(std::string_view op, const Tensor& x);
/// Of a shape that is nowhere larger than this one, with `value` behind its elements.
Tensor padded(const Tensor& part, const Shape& shape, double value);
/// Which pick of its line comes last to each of `extent` places along `dim`; -1: none.
Tensor last_picks(const Tensor& indices, int dim, std::int64_t extent);

}  // namespace clnet::ops
