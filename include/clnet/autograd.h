// Derivatives: a graph in, a graph out.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "clnet/export.h"
#include "clnet/tensor.h"

namespace clnet {

/// The gradients of `loss` (one element) with respect to `inputs`, in their order and with their specs, as torch.autograd.grad.
/// They are graph, so gradients of gradients work. An input that the loss does not depend on gets zeros. Gradients flow through
/// floating values only. Throws ShapeError where `loss` has more than one element, Unsupported where an operation on the
/// way has no gradient.
CLNET_API std::vector<Tensor> gradients(const Tensor& loss, std::span<const Tensor> inputs);
CLNET_API std::vector<Tensor> gradients(const Tensor& loss, std::initializer_list<Tensor> inputs);

/// Vector-Jacobian products: the same for any outputs, each with its gradient (of the output's spec).
CLNET_API std::vector<Tensor> gradients(std::span<const Tensor> outputs, std::span<const Tensor> output_gradients,
                                        std::span<const Tensor> inputs);

/// Calls `f` and returns its results, as torch.utils.checkpoint. gradients() computes the intermediates of `f` again and does not
/// keep them: less memory for more arithmetic. Random numbers repeat. Example: `x = checkpoint([&] { return block(x); });`.
CLNET_API std::vector<Tensor> checkpoint(const std::function<std::vector<Tensor>()>& f);
CLNET_API Tensor checkpoint(const std::function<Tensor()>& f);

/// Returns one gradient per input, as graph and of the input's spec, from the gradients of the results. An undefined tensor means
/// no gradient. `gradients` has zeros for a result that nothing depends on.
using Backward = std::function<std::vector<Tensor>(std::span<const Tensor> inputs, std::span<const Tensor> results,
                                                   std::span<const Tensor> gradients)>;

/// Calls `f` with `inputs`; gradients() then calls `backward` for the derivative, as torch.autograd.Function. Uses: a
/// straight-through estimator, a clipped or reversed gradient, a formula with less rounding. The derivative of `backward` is the
/// second derivative. Values that `f` takes from elsewhere count as constants. Throws Error where an input or a result is
/// undefined; gradients() throws Error unless `backward` returns one gradient per input.
CLNET_API std::vector<Tensor> custom_gradient(std::vector<Tensor> inputs,
                                              const std::function<std::vector<Tensor>(std::span<const Tensor>)>& f,
                                              Backward backward);
/// The same for one input and one result: `y = custom_gradient(x, [](auto& x) { return round(x); }, [](auto& x, auto& y, auto&
/// gradient) { return gradient; })`.
CLNET_API Tensor custom_gradient(const Tensor& x, const std::function<Tensor(const Tensor&)>& f,
                                 std::function<Tensor(const Tensor& x, const Tensor& y, const Tensor& gradient)> backward);

}  // namespace clnet
