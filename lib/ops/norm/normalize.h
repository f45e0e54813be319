// Gradients that batch and layer normalisation share, as graph. Both subtract a mean and multiply by the reciprocal of a standard
// deviation over some dimensions; `mean` and `rstd` here have extents of 1 there, and everything is f32.
#pragma once

#include "clnet/ops.h"

namespace clnet::ops {

/// The gradient that reaches x through its mean and rstd; either gradient may be undefined, and so is the result without both.
Tensor statistics_gradient(const Tensor& x, const Tensor& mean, const Tensor& rstd, const Tensor& mean_gradient,
                           const Tensor& rstd_gradient);

/// Normalisation's backward is dx = rstd (h - mean(h) - (x - mean) rstd^2 mean(h (x - mean))), with h the gradient times the
/// weight. Its own gradients, from that of dx.
struct SecondOrder {
  Tensor x, h, mean, rstd;
};
SecondOrder normalize_second_order(const Tensor& gradient, const Tensor& x, const Tensor& h, const Tensor& mean,
                                   const Tensor& rstd, const Dims& dims);

}  // namespace clnet::ops
