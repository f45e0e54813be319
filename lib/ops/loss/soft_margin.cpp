// Losses of logits against signs or several classes at once.
#include <fmt/format.h>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/graph/require.h"
#include "lib/ops/as_f32.h"
#include "lib/ops/elementwise/elementwise.h"
#include "lib/ops/loss/reduced.h"

namespace clnet {

using ops::as_f32;

Tensor soft_margin_loss(const Tensor& input, const Tensor& target, Reduction reduction) {
  require_defined("soft_margin_loss", {{"input", input}, {"target", target}});
  if (ops::require_broadcast("soft_margin_loss", input, target) != input.shape())
    throw ShapeError(fmt::format("soft_margin_loss: target {} does not broadcast to input {}", to_string(target.spec()),
                                 to_string(input.spec())));
  return ops::reduced(-log_sigmoid(as_f32(target) * as_f32(input)), reduction, input.dtype());
}

Tensor multilabel_soft_margin_loss(const Tensor& input, const Tensor& target, Reduction reduction, const Tensor& weight) {
  require_defined("multilabel_soft_margin_loss", {{"input", input}, {"target", target}});
  ops::require_broadcast("multilabel_soft_margin_loss", input, target);
  if (input.rank() == 0) throw ShapeError(fmt::format("multilabel_soft_margin_loss: {} has no classes", to_string(input.spec())));
  const Tensor x = as_f32(input), t = as_f32(target);
  const Tensor losses = ops::weighted("multilabel_soft_margin_loss", ops::cross_entropy_of_logits(x, t), weight, input.dtype());
  // The classes are the input's, as in PyTorch, also where the target has more of them or more dimensions.
  return ops::reduced(sum(losses, {input.rank() - 1}) / static_cast<double>(input.size(-1)), reduction, input.dtype());
}

}  // namespace clnet
