// A node of its own over a value of the graph.
#pragma once

#include "clnet/tensor.h"

namespace clnet::ops {

/// The same value as another node: nothing is computed. Where reshape() would give x itself.
Tensor hold(const Tensor& x);

}  // namespace clnet::ops
