// What operations with random numbers take from the process's generator.
#pragma once

#include "clnet/tensor.h"

namespace clnet::ops {

/// Seed and offset as i64 scalars; no two tensors get the same offset.
struct RandomSource {
  Tensor seed, offset;
};
RandomSource next_random_source();
/// dropout() with a probability between 0 and 1, by that source.
Tensor dropout_by(const Tensor& x, double p, const RandomSource& source);

}  // namespace clnet::ops
