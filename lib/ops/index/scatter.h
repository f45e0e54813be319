// What the functions that scatter have in common.
#pragma once

#include <string_view>

#include "clnet/tensor.h"

namespace clnet::ops {

/// Throws unless the arguments fit each other; the dimension from 0 on.
int require_scatter(std::string_view op, const Tensor& x, int dim, const Tensor& indices, const Tensor& source);
/// In the dtype that sums are made in. Throws DtypeError for bool.
Tensor summable(std::string_view op, const Tensor& x);
/// Of the shape of indices but for x's extent at `dim`, padded to x's shape.
Tensor padded(const Tensor& part, const Shape& shape, double value);
/// Which pick of its line comes last to each of `extent` places along `dim`; -1: none.
Tensor last_picks(const Tensor& indices, int dim, std::int64_t extent);

}  // namespace clnet::ops
