// For gradients of products with zeros among their factors.
#pragma once

#include <limits>

#include "clnet/ops.h"
#include "lib/ops/elementwise/elementwise.h"

namespace clnet::ops {

/// 0, also where `slope` is no finite number, and there is a slope by what `variable` is made of: slope times its change. What is
/// missing in a gradient that is 0 at one place alone.
inline Tensor zero_factor_gradient(const Tensor& slope, const Tensor& variable) {
  const Tensor finite = less(abs(slope), std::numeric_limits<double>::infinity());
  return where(finite, slope, scalar_like(0, slope)) * (variable - stop_gradient(variable));
}

}  // namespace clnet::ops
