// Derivatives: a graph in, a graph out.
#pragma once

#include <functional>
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

/// The same for any outputs, each with the gradient that arrives at it (of its spec): vector-Jacobian products.
CLNET_API std::vector<Tensor> gradients(std::span<const Tensor> outputs, std::span<const Tensor> output_gradients,
                                        std::span<const Tensor> inputs);

/// Calls `f` and returns its results. gradients() computes again what `f` computed on the way instead of keeping it until then:
/// less memory for more arithmetic. Random numbers are the same again. As in `x = checkpoint([&] { return block(x); });`.
CLNET_API std::vector<Tensor> checkpoint(const std::function<std::vector<Tensor>()>& f);
CLNET_API Tensor checkpoint(const std::function<Tensor()>& f);

}  // namespace clnet
