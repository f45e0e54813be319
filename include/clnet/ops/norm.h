// Normalisation.
#pragma once

#include <cstdint>

#include "clnet/export.h"
#include "clnet/tensor.h"

namespace clnet {

/// The result of batch normalisation in training: the output, and the batch's statistics {C}, which are always f32. `var` is
/// unbiased, for running averages.
struct BatchNormResult {
  Tensor y, mean, var;
};
/// Normalises x {N, C, ...} by its own statistics over all dimensions but 1 (Ioffe and Szegedy 2015). `weight` and `bias` {C} or
/// undefined.
CLNET_API BatchNormResult batch_norm_training(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps = 1e-5);
/// The same with given statistics `mean` and `var` {C}.
CLNET_API Tensor batch_norm_inference(const Tensor& x, const Tensor& mean, const Tensor& var, const Tensor& weight,
                                      const Tensor& bias, double eps = 1e-5);
/// Normalises over the last weight.rank() dimensions, or `normalized_dims` where weight is undefined (Ba et al. 2016). `weight`
/// and `bias` have the shape of these dimensions, or are undefined.
CLNET_API Tensor layer_norm(const Tensor& x, int normalized_dims, const Tensor& weight, const Tensor& bias, double eps = 1e-5);
/// Normalises x {N, C, ...} over each of `groups` groups of channels (Wu and He 2018). `weight` and `bias` {C} or undefined.
CLNET_API Tensor group_norm(const Tensor& x, std::int64_t groups, const Tensor& weight, const Tensor& bias, double eps = 1e-5);
/// The same for each channel of each sample.
CLNET_API Tensor instance_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps = 1e-5);
/// x / sqrt(mean(x^2) + eps) over the last weight.rank() dimensions, or `normalized_dims` where weight is undefined; times weight
/// (Zhang and Sennrich 2019).
CLNET_API Tensor rms_norm(const Tensor& x, int normalized_dims, const Tensor& weight, double eps = 1e-6);
/// For x {N, C, ...}: x / (k + alpha * mean of the squares in `size` neighbouring channels)^beta (Krizhevsky et al. 2012).
/// Missing neighbours count as 0.
CLNET_API Tensor local_response_norm(const Tensor& x, std::int64_t size, double alpha = 1e-4, double beta = 0.75, double k = 1);
/// exp(x) / sum of exp(x) along `dim`, and its logarithm, without overflow.
CLNET_API Tensor softmax(const Tensor& x, int dim);
CLNET_API Tensor log_softmax(const Tensor& x, int dim);
CLNET_API Tensor softmin(const Tensor& x, int dim);  ///< softmax(-x)

}  // namespace clnet
