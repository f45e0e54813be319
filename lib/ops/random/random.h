// What operations with random numbers take from the process's generator.
#pragma once

#include "clnet/tensor.h"

namespace clnet::ops {

/// Seed and offset as i64 scalars; no two tensors get the same offset.
struct RandomSource {
  Tensor seed, offset;
};
RandomSource next_random_source();

}  // namespace clnet::ops
