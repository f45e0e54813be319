// A linear recurrence, for running products and for gradients of other running values.
#pragma once

#include "clnet/tensor.h"

namespace clnet::ops {

/// y[i] = a[i] y[i - 1] + b[i] along a dimension, from 0 on, y[0] being b[0]; `backwards`: from the other end. Both of one shape,
/// f32, or i64, which has no gradient.
Tensor linear_scan(const Tensor& a, const Tensor& b, int dim, bool backwards);

}  // namespace clnet::ops
