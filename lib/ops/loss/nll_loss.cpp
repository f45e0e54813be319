// The loss of classes' logarithms of probabilities: a gather, weighted and reduced.
#include <fmt/format.h>

#include <limits>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/graph/require.h"
#include "lib/ops/as_f32.h"
#include "lib/ops/elementwise/elementwise.h"
#include "lib/ops/loss/labels.h"
#include "lib/ops/loss/reduced.h"

namespace clnet {

using ops::as_f32;

Tensor nll_loss(const Tensor& log_probabilities, const Tensor& targets, const NllLossOptions& options) {
  require_defined("nll_loss", {{"log_probabilities", log_probabilities}, {"targets", targets}});
  ops::require_floating("nll_loss", log_probabilities.spec());
  if (targets.dtype() != Dtype::i32 && targets.dtype() != Dtype::i64)
    throw DtypeError(fmt::format("nll_loss: targets are i32 or i64, got {}", to_string(targets.spec())));
  // One sample is a batch of it.
  if (log_probabilities.rank() == 1 && targets.rank() == 0) {
    const Tensor loss = nll_loss(unsqueeze(log_probabilities, 0), unsqueeze(targets, 0), options);
    return options.reduction == Reduction::none ? squeeze(loss, 0) : loss;
  }
  auto extents = log_probabilities.shape().extents();
  const auto classes = extents.size() < 2 ? 0 : extents[1];
  if (extents.size() >= 2) extents.erase(extents.begin() + 1);
  if (log_probabilities.rank() < 2 || targets.shape() != Shape(extents))
    throw ShapeError(
        fmt::format("nll_loss: targets {} do not fit {}", to_string(targets.spec()), to_string(log_probabilities.spec())));
  if (options.weight.defined()) {
    ops::require_same_dtype("nll_loss's weight", log_probabilities.spec(), options.weight.spec());
    if (options.weight.shape() != Shape{classes})
      throw ShapeError(
          fmt::format("nll_loss: weight {} is not one value for each of {} classes", to_string(options.weight.spec()), classes));
  }
  ops::require_classes("nll_loss", targets, classes, options.ignore_index);
  const Tensor ignored = eq(targets, static_cast<double>(options.ignore_index));
  const Tensor known = where(ignored, ops::scalar_like(0, targets), targets);
  const Tensor picked = as_f32(squeeze(gather(log_probabilities, 1, unsqueeze(known, 1)), 1));
  const Tensor zero = Tensor::scalar(0, picked.dtype()), one = Tensor::scalar(1, picked.dtype());
  // Indices of gather count from the end where negative; no class does.
  const Tensor valid = where(less(known, 0.0), ops::scalar_like(std::numeric_limits<double>::quiet_NaN(), one), one);
  const Tensor weights = where(ignored, zero, options.weight.defined() ? index_select(as_f32(options.weight), 0, known) : one);
  const Tensor losses = where(ignored, zero, -picked * valid * weights);
  const auto dtype = log_probabilities.dtype();
  if (options.reduction == Reduction::mean) return ops::rounded(sum(losses) / sum(weights), dtype);
  return ops::reduced(losses, options.reduction, dtype);
}
Tensor nll_loss(const Tensor& log_probabilities, const Tensor& targets) { return nll_loss(log_probabilities, targets, {}); }

}  // namespace clnet
