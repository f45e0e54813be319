// Random values.
#pragma once

#include <cstdint>

#include "clnet/export.h"
#include "clnet/tensor.h"

namespace clnet {

/// Seeds the process's generator. rand(), randn(), dropout() and initialisers take their random offsets from it at the call. C++
/// does not define which operand of `f(x) + g(x)`, or which argument, is called first: where both draw, write two statements.
CLNET_API void manual_seed(std::uint64_t seed);
/// The generator's seed and next offset, for checkpoints.
struct RandomState {
  std::uint64_t seed = 0, offset = 0;
};
/// Returns and sets the generator's state.
CLNET_API RandomState random_state();
CLNET_API void set_random_state(const RandomState& state);
/// Uniform in [0, 1), and standard normal, by Philox4x32-10 (Salmon et al. 2011) on the device: same seed and device, same bits.
/// Throws DtypeError for a dtype that is not floating.
CLNET_API Tensor rand(const Shape& shape, Dtype dtype = Dtype::f32);
CLNET_API Tensor randn(const Shape& shape, Dtype dtype = Dtype::f32);
/// The same with x's shape and dtype.
CLNET_API Tensor rand_like(const Tensor& x);
CLNET_API Tensor randn_like(const Tensor& x);
/// Normally distributed. Throws Error for a negative or non-finite stddev.
CLNET_API Tensor normal(double mean, double stddev, const Shape& shape, Dtype dtype = Dtype::f32);
/// The same, limited to low..high, as PyTorch's trunc_normal_. Throws Error where low > high, or next to nothing lies between.
CLNET_API Tensor truncated_normal(const Shape& shape, double mean = 0, double stddev = 1, double low = -2, double high = 2,
                                  Dtype dtype = Dtype::f32);
/// Exponentially distributed with mean 1 / rate; above 0 in f32. Throws Error unless the rate is positive.
CLNET_API Tensor exponential(const Shape& shape, double rate = 1, Dtype dtype = Dtype::f32);
/// Integers from low to high - 1, of i64, i32, i8 or u8. Throws Error for an empty range and one that exceeds the dtype.
CLNET_API Tensor randint(std::int64_t low, std::int64_t high, const Shape& shape, Dtype dtype = Dtype::i64);
/// The numbers 0 to count - 1 in random order, i64.
CLNET_API Tensor randperm(std::int64_t count);
/// 1 with the probability of each element (floating), else 0, in its dtype. No gradient.
CLNET_API Tensor bernoulli(const Tensor& probabilities);
/// Numbers of events of Poisson's distribution, with the mean of each element (floating), in its dtype. No gradient. A negative
/// mean and NaN give NaN.
CLNET_API Tensor poisson(const Tensor& rates);
/// `count` i64 indices, drawn from each line of `weights` {n} or {rows, n} of a floating dtype; weights need not add up to 1.
/// Without replacement an index comes once, and one of weight 0 after all others. Throws ShapeError for other shapes and counts,
/// Unsupported for n above 2^24.
CLNET_API Tensor multinomial(const Tensor& weights, std::int64_t count, bool replacement = false);
/// Zeroes elements of a floating x with probability p and scales the rest by 1 / (1 - p) (Srivastava et al. 2014). Takes its
/// random offset from the process's generator. Throws Error for p outside of 0..1.
CLNET_API Tensor dropout(const Tensor& x, double p);
/// The same for whole channels. x is {N, C, L} or {C, L} for dropout1d, {N, C, H, W} or {N, C, L} for dropout2d, {N, C, D, H, W}
/// or {C, D, H, W} for dropout3d. Throws ShapeError for other ranks.
CLNET_API Tensor dropout1d(const Tensor& x, double p);
CLNET_API Tensor dropout2d(const Tensor& x, double p);
CLNET_API Tensor dropout3d(const Tensor& x, double p);
/// Replaces dropped elements by SELU's limit at minus infinity, then scales and shifts all to keep mean and variance (Klambauer
/// et al. 2017).
CLNET_API Tensor alpha_dropout(const Tensor& x, double p);
/// The same for whole channels of {N, C, ...}.
CLNET_API Tensor feature_alpha_dropout(const Tensor& x, double p);
/// x where it is at least 0, else x times a random slope from `lower` to `upper`; without `training`, times their mean. Throws
/// Error where lower > upper.
CLNET_API Tensor rrelu(const Tensor& x, double lower = 1.0 / 8, double upper = 1.0 / 3, bool training = false);
/// softmax((logits + Gumbel noise) / tau): a random choice along `dim` with a gradient (Jang et al. 2017). `hard`: the result is
/// one_hot, with the gradient of the soft choice. Throws Error unless tau is positive.
CLNET_API Tensor gumbel_softmax(const Tensor& logits, double tau = 1, bool hard = false, int dim = -1);

}  // namespace clnet
