// The casts that an Autocast scope applies to inputs of operations.
#pragma once

#include "clnet/autocast.h"
#include "lib/graph/op.h"

namespace clnet {

/// Whether this thread is in a scope that casts.
bool autocasting();
/// Within a scope: casts the inputs according to Op::precision().
void autocast(const Op& op, Tensors& inputs);
/// Within a scope: casts a floating tensor as for a product; returns others, and undefined ones, unchanged. For functions of
/// several operations.
Tensor autocast_to_product(const Tensor& x);
/// Converts a tensor's dtype: the operation of cast().
Tensor convert(const Tensor& x, Dtype dtype);

}  // namespace clnet
