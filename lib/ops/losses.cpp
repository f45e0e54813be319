// Losses that are compositions of elementwise operations, and the norm of gradients.
#include <fmt/format.h>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/graph/require.h"
#include "lib/ops/elementwise.h"

namespace clnet {

namespace {

void require_same(std::string_view op, const Tensor& a, const Tensor& b) {
  ops::require_floating(op, a.spec());
  ops::require_same_dtype(op, a.spec(), b.spec());
  if (a.shape() != b.shape())
    throw ShapeError(fmt::format("{}: input {} and target {} differ in shape", op, to_string(a.spec()), to_string(b.spec())));
}

Tensor reduced(const Tensor& losses, Reduction reduction) {
  switch (reduction) {
    case Reduction::none: return losses;
    case Reduction::sum: return sum(losses);
    default: return mean(losses);
  }
}

}  // namespace

Tensor mse_loss(const Tensor& input, const Tensor& target, Reduction reduction) {
  require_defined("mse_loss", {{"input", input}, {"target", target}});
  require_same("mse_loss", input, target);
  return reduced(square(input - target), reduction);
}

Tensor l1_loss(const Tensor& input, const Tensor& target, Reduction reduction) {
  require_defined("l1_loss", {{"input", input}, {"target", target}});
  require_same("l1_loss", input, target);
  return reduced(abs(input - target), reduction);
}

Tensor bce_with_logits(const Tensor& logits, const Tensor& target, Reduction reduction, const Tensor& weight) {
  require_defined("bce_with_logits", {{"logits", logits}, {"target", target}});
  require_same("bce_with_logits", logits, target);
  // -log_sigmoid(x) and -log_sigmoid(-x) never overflow; (1 - t) x - log_sigmoid(x) is both in one.
  const Tensor losses = (1.0 - target) * logits - log_sigmoid(logits);
  if (!weight.defined()) return reduced(losses, reduction);
  if (broadcast(logits.shape(), weight.shape(), "bce_with_logits") != logits.shape())
    throw ShapeError(
        fmt::format("bce_with_logits: weight {} does not broadcast to {}", to_string(weight.spec()), to_string(logits.spec())));
  return reduced(losses * weight, reduction);
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
