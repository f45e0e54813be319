// Normalisation.
#pragma once

#include "clnet/export.h"
#include "clnet/tensor.h"

namespace clnet {

/// What batch normalisation in training gives: the output and the batch's statistics, {C} each; `var` is unbiased, as running
/// averages want it. The statistics are f32, whatever x is.
struct BatchNormResult {
  Tensor y, mean, var;
};
/// x {N, C, ...} normalised by its own statistics over all but dimension 1. `weight` and `bias` {C} or undefined.
CLNET_API BatchNormResult batch_norm_training(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps = 1e-5);
/// The same with given statistics {C}.
CLNET_API Tensor batch_norm_inference(const Tensor& x, const Tensor& mean, const Tensor& var, const Tensor& weight,
                                      const Tensor& bias, double eps = 1e-5);
/// Over the last weight.rank() dimensions (or `normalized_dims` when weight is undefined).
CLNET_API Tensor layer_norm(const Tensor& x, int normalized_dims, const Tensor& weight, const Tensor& bias, double eps = 1e-5);
CLNET_API Tensor softmax(const Tensor& x, int dim);
CLNET_API Tensor log_softmax(const Tensor& x, int dim);

}  // namespace clnet
