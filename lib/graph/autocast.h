// What a scope of Autocast does to the inputs of operations.
#pragma once

#include "clnet/autocast.h"
#include "lib/graph/op.h"

namespace clnet {

/// Whether this thread is in a scope that casts.
bool autocasting();
/// Within a scope: the inputs as Op::precision() asks for.
void autocast(const Op& op, Tensors& inputs);
/// Within a scope: a floating tensor as products take it; others, and undefined ones, as they are. For functions that are made of
/// several operations.
Tensor autocast_to_product(const Tensor& x);
/// Converts a tensor: the operation behind cast().
Tensor convert(const Tensor& x, Dtype dtype);

}  // namespace clnet
