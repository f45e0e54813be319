// The steps of a sequence, for operations made of others.
#pragma once

#include "lib/graph/op.h"

namespace clnet::ops {

/// The steps of {T, N, W} as T tensors: views, whose gradients make one sequence again instead of a sum of T padded ones.
Tensors unstack(const Tensor& sequence);

}  // namespace clnet::ops
