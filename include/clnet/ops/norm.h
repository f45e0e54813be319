// Normalisation.
#pragma once

#include <cstdint>

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
/// x {N, C, ...} normalised over each of `groups` groups of channels. `weight` and `bias` {C} or undefined.
CLNET_API Tensor group_norm(const Tensor& x, std::int64_t groups, const Tensor& weight, const Tensor& bias, double eps = 1e-5);
/// The same over each channel alone.
CLNET_API Tensor instance_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps = 1e-5);
/// x / sqrt(mean(x^2) + eps) over the last weight.rank() dimensions (or `normalized_dims` when weight is undefined), times
/// weight.
CLNET_API Tensor rms_norm(const Tensor& x, int normalized_dims, const Tensor& weight, double eps = 1e-6);
/// x {N, C, ...}: x / (k + alpha * mean of the squares in `size` neighbouring channels)^beta; missing neighbours count as 0.
CLNET_API Tensor local_response_norm(const Tensor& x, std::int64_t size, double alpha = 1e-4, double beta = 0.75, double k = 1);
CLNET_API Tensor softmax(const Tensor& x, int dim);
CLNET_API Tensor log_softmax(const Tensor& x, int dim);
CLNET_API Tensor softmin(const Tensor& x, int dim);  ///< softmax(-x)

}  // namespace clnet
