// Derivatives: a graph in, a graph out.
#pragma once

#include <span>
#include <vector>

#include "clnet/export.h"
#include "clnet/tensor.h"

namespace clnet {

/// The gradients of `loss` (one element) with respect to `inputs`, in their order and of their specs. They are graph like any
/// other, so gradients of gradients work. An input that the loss does not depend on gets zeros. Gradients flow through f32, f16
/// and bf16 values only. Throws ShapeError when `loss` has more than one element, Unsupported when an operation on the way has no
/// gradient.
CLNET_API std::vector<Tensor> gradients(const Tensor& loss, std::span<const Tensor> inputs);
CLNET_API std::vector<Tensor> gradients(const Tensor& loss, std::initializer_list<Tensor> inputs);

/// The same for any outputs, each with the gradient that arrives at it (of its shape): vector-Jacobian products.
CLNET_API std::vector<Tensor> gradients(std::span<const Tensor> outputs, std::span<const Tensor> output_gradients,
                                        std::span<const Tensor> inputs);

}  // namespace clnet
