// Losses that are compositions of elementwise operations, and the norm of gradients.
#include <fmt/format.h>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/graph/require.h"
#include "lib/ops/elementwise/elementwise.h"
#include "lib/ops/wide.h"

namespace clnet {

using ops::wide;

namespace {

void require_same(std::string_view op, const Tensor& a, const Tensor& b) {
  ops::require_floating(op, a.spec());
  ops::require_same_dtype(op, a.spec(), b.spec());
  if (a.shape() != b.shape())
    throw ShapeError(fmt::format("{}: input {} and target {} differ in shape", op, to_string(a.spec()), to_string(b.spec())));
}

/// The losses, computed in f32, reduced and rounded to the dtype of the inputs.
Tensor reduced(const Tensor& losses, Reduction reduction, Dtype dtype) {
  switch (reduction) {
    case Reduction::none: return cast(losses, dtype);
    case Reduction::sum: return cast(sum(losses), dtype);
    default: return cast(mean(losses), dtype);
  }
}

}  // namespace

Tensor mse_loss(const Tensor& input, const Tensor& target, Reduction reduction) {
  require_defined("mse_loss", {{"input", input}, {"target", target}});
  require_same("mse_loss", input, target);
  return reduced(square(wide(input) - wide(target)), reduction, input.dtype());
}

Tensor l1_loss(const Tensor& input, const Tensor& target, Reduction reduction) {
  require_defined("l1_loss", {{"input", input}, {"target", target}});
  require_same("l1_loss", input, target);
  return reduced(abs(wide(input) - wide(target)), reduction, input.dtype());
}

Tensor bce_with_logits(const Tensor& logits, const Tensor& target, Reduction reduction, const Tensor& weight) {
  require_defined("bce_with_logits", {{"logits", logits}, {"target", target}});
  require_same("bce_with_logits", logits, target);
  // -log_sigmoid(x) and -log_sigmoid(-x) never overflow; (1 - t) x - log_sigmoid(x) is both in one.
  const Tensor x = wide(logits), losses = (1.0 - wide(target)) * x - log_sigmoid(x);
  if (!weight.defined()) return reduced(losses, reduction, logits.dtype());
  if (broadcast(logits.shape(), weight.shape(), "bce_with_logits") != logits.shape())
    throw ShapeError(
        fmt::format("bce_with_logits: weight {} does not broadcast to {}", to_string(weight.spec()), to_string(logits.spec())));
  ops::require_same_dtype("bce_with_logits's weight", logits.spec(), weight.spec());
  return reduced(losses * wide(weight), reduction, logits.dtype());
}

Tensor global_norm(const std::vector<Tensor>& tensors) {
  require_defined("global_norm", "tensors", tensors);
  Tensor total;
  for (const auto& tensor : tensors) {
    const Tensor squares = sum(square(cast(tensor, Dtype::f32)));
    total = total.defined() ? total + squares : squares;
  }
  return total.defined() ? sqrt(total) : Tensor::scalar(0);
}

}  // namespace clnet
