// Random values.
#pragma once

#include <cstdint>

#include "clnet/export.h"
#include "clnet/tensor.h"

namespace clnet {

/// Seeds the process's generator, from which rand(), randn(), dropout() and initialisers take their random offsets, each when it
/// is called. C++ leaves open which operand of `f(x) + g(x)`, or which argument, is called first: where both draw, write
/// statements, for compilers to agree.
CLNET_API void manual_seed(std::uint64_t seed);
/// The generator's seed and next offset: what a checkpoint keeps.
struct RandomState {
  std::uint64_t seed = 0, offset = 0;
};
CLNET_API RandomState random_state();
CLNET_API void set_random_state(const RandomState& state);
/// Uniform in [0, 1), and standard normal, by Philox4x32-10 on the device: same seed and device, same bits.
CLNET_API Tensor rand(const Shape& shape, Dtype dtype = Dtype::f32);
CLNET_API Tensor randn(const Shape& shape, Dtype dtype = Dtype::f32);
/// Whole numbers from low to high - 1, of i64, i32, i8 or u8. Throws Error for an empty range and one that the dtype does not
/// hold.
CLNET_API Tensor randint(std::int64_t low, std::int64_t high, const Shape& shape, Dtype dtype = Dtype::i64);
/// The numbers 0 to count - 1 in random order, i64.
CLNET_API Tensor randperm(std::int64_t count);
/// 1 with the probability that the element (of a floating dtype) says, else 0, of its dtype. No gradient.
CLNET_API Tensor bernoulli(const Tensor& probabilities);
/// `count` indices, i64, drawn from each line of `weights` {n} or {rows, n} of a floating dtype, which need not add up to 1.
/// Without replacement an index comes once, and one of weight 0 after all others.
CLNET_API Tensor multinomial(const Tensor& weights, std::int64_t count, bool replacement = false);
/// Zeroes elements with probability p and scales the rest by 1 / (1 - p). Takes its random offset from the process's generator.
CLNET_API Tensor dropout(const Tensor& x, double p);
/// The same with whole channels: x {N, C, L} or {C, L}; {N, C, H, W} or {N, C, L}; {N, C, D, H, W} or
/// {C, D, H, W}.
CLNET_API Tensor dropout1d(const Tensor& x, double p);
CLNET_API Tensor dropout2d(const Tensor& x, double p);
CLNET_API Tensor dropout3d(const Tensor& x, double p);
/// Puts SELU's limit for minus infinity in place of dropped elements, and scales and shifts all so that mean and variance stay.
CLNET_API Tensor alpha_dropout(const Tensor& x, double p);
/// The same with whole channels of {N, C, ...}.
CLNET_API Tensor feature_alpha_dropout(const Tensor& x, double p);
/// x where it is at least 0, else x times a random slope from `lower` to `upper`; their mean where not training.
CLNET_API Tensor rrelu(const Tensor& x, double lower = 1.0 / 8, double upper = 1.0 / 3, bool training = false);
/// softmax((logits + Gumbel's noise) / tau): a random choice along `dim` that has a gradient. `hard`: the result is one_hot, the
/// gradient that of the soft choice.
CLNET_API Tensor gumbel_softmax(const Tensor& logits, double tau = 1, bool hard = false, int dim = -1);

}  // namespace clnet
