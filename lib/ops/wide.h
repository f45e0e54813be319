// For formulas of several steps over f16 and bf16.
#pragma once

#include "clnet/ops.h"

namespace clnet::ops {

/// f16 and bf16 as f32, so that the formula rounds to the narrow dtype once, at its end.
inline Tensor wide(const Tensor& x) { return x.dtype() == Dtype::f16 || x.dtype() == Dtype::bf16 ? cast(x, Dtype::f32) : x; }

}  // namespace clnet::ops
