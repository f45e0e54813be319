// For formulas of several steps over f16 and bf16.
#pragma once

#include "clnet/ops.h"
#include "lib/graph/autocast.h"

namespace clnet::ops {

/// The dtype of such a formula's steps, of statistics and of sums that are handed on: f64 for f64, otherwise f32.
inline Dtype computed_in(Dtype dtype) { return dtype == Dtype::f64 ? dtype : Dtype::f32; }
/// The tensor in that dtype.
inline Tensor as_computed(const Tensor& x) { return cast(x, computed_in(x.dtype())); }

/// f16 and bf16 as f32, so that the formula rounds to the narrow dtype once, at its end.
inline Tensor as_f32(const Tensor& x) { return x.dtype() == Dtype::f16 || x.dtype() == Dtype::bf16 ? cast(x, Dtype::f32) : x; }

/// The result of such a formula. A scope of Autocast leaves it in f32: these are the formulas that need range or digits.
inline Tensor rounded(const Tensor& result, Dtype dtype) {
  return autocasting() && dtype != Dtype::f64 ? result : cast(result, dtype);
}

}  // namespace clnet::ops
