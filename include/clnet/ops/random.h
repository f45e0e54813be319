// Random values.
#pragma once

#include <cstdint>

#include "clnet/export.h"
#include "clnet/tensor.h"

namespace clnet {

/// Seeds the process's generator, from which rand(), randn(), dropout() and initialisers take their random offsets.
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
/// Zeroes elements with probability p and scales the rest by 1 / (1 - p). Takes its random offset from the process's generator.
CLNET_API Tensor dropout(const Tensor& x, double p);

}  // namespace clnet
