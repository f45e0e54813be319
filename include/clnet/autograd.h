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

/// The gradients of a function's inputs from the gradients that arrive at its results, all of them graph: one per input and of
/// its spec, undefined where none flows. `gradients` has zeros for a result that nothing depends on.
using Backward = std::function<std::vector<Tensor>(std::span<const Tensor> inputs, std::span<const Tensor> results,
                                                   std::span<const Tensor> gradients)>;

/// Calls `f` with `inputs` and returns its results, whose derivative is what `backward` says and not that of the operations which
/// `f` calls: a straight-through estimator, a gradient that is clipped or turned around, a formula that rounds less. gradients()
/// calls `backward`, whose own derivative is the second. What `f` takes otherwise than from `inputs` counts as constant. Throws
/// Error when an input or a result is undefined, and gradients() does when `backward` returns other than one gradient per input.
CLNET_API std::vector<Tensor> custom_gradient(std::vector<Tensor> inputs,
                                              const std::function<std::vector<Tensor>(std::span<const Tensor>)>& f,
                                              Backward backward);
/// The same for one input and one result, as in `y = custom_gradient(x, [](auto& x) { return round(x); },
/// [](auto& x, auto& y, auto& gradient) { return gradient; })`.
CLNET_API Tensor custom_gradient(const Tensor& x, const std::function<Tensor(const Tensor&)>& f,
                                 std::function<Tensor(const Tensor& x, const Tensor& y, const Tensor& gradient)> backward);

}  // namespace clnet
