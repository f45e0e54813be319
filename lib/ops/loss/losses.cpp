// Losses by element: compositions of elementwise operations, which fuse into one kernel with the reduction.
#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/base/log.h"
#include "lib/graph/require.h"
#include "lib/ops/as_f32.h"
#include "lib/ops/elementwise/elementwise.h"
#include "lib/ops/loss/reduced.h"

namespace clnet {

using ops::as_f32;
using ops::reduced;
using ops::require_broadcast;
using ops::require_same;
using ops::weighted;

namespace {

/// Shapes that broadcast, which is seldom meant of {N} and {N, 1}.
void require_regression(std::string_view op, const Tensor& input, const Tensor& target) {
  const auto shape = require_broadcast(op, input, target);
  if (input.shape() != target.shape())
    logging::warn_once(fmt::format("{}: input {} and target {} differ in shape, and are broadcast to {}", op,
                                   to_string(input.shape()), to_string(target.shape()), to_string(shape)));
}

/// scale m (d - m / 2) with m = min(d, bound): d^2 / 2 below the bound, linear beyond, with a finite gradient for an infinite d.
Tensor huber(const Tensor& input, const Tensor& target, double bound, double scale = 1) {
  const Tensor distance = abs(as_f32(input) - as_f32(target)), inner = minimum(distance, bound);
  return (scale == 1 ? inner : inner * scale) * (distance - inner * 0.5);
}

}  // namespace

Tensor mse_loss(const Tensor& input, const Tensor& target, Reduction reduction) {
  require_defined("mse_loss", {{"input", input}, {"target", target}});
  require_regression("mse_loss", input, target);
  return reduced(square(as_f32(input) - as_f32(target)), reduction, input.dtype());
}

Tensor l1_loss(const Tensor& input, const Tensor& target, Reduction reduction) {
  require_defined("l1_loss", {{"input", input}, {"target", target}});
  require_regression("l1_loss", input, target);
  return reduced(abs(as_f32(input) - as_f32(target)), reduction, input.dtype());
}

Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, Reduction reduction, double beta) {
  require_defined("smooth_l1_loss", {{"input", input}, {"target", target}});
  require_regression("smooth_l1_loss", input, target);
  if (!(beta >= 0)) throw Error(fmt::format("smooth_l1_loss: beta {} is not 0 or more", beta));
  if (beta == 0) return l1_loss(input, target, reduction);
  return reduced(huber(input, target, beta, 1 / beta), reduction, input.dtype());
}

Tensor huber_loss(const Tensor& input, const Tensor& target, Reduction reduction, double delta) {
  require_defined("huber_loss", {{"input", input}, {"target", target}});
  require_regression("huber_loss", input, target);
  if (!(delta > 0)) throw Error(fmt::format("huber_loss: delta {} is not positive", delta));
  return reduced(huber(input, target, delta), reduction, input.dtype());
}

Tensor binary_cross_entropy(const Tensor& input, const Tensor& target, Reduction reduction, const Tensor& weight) {
  require_defined("binary_cross_entropy", {{"input", input}, {"target", target}});
  require_same("binary_cross_entropy", input, target);
  return reduced(
      weighted("binary_cross_entropy", ops::cross_entropy_of_bits(as_f32(input), as_f32(target)), weight, input.dtype()),
      reduction, input.dtype());
}

Tensor binary_cross_entropy_with_logits(const Tensor& logits, const Tensor& target, Reduction reduction, const Tensor& weight,
                                        const Tensor& pos_weight) {
  require_defined("binary_cross_entropy_with_logits", {{"logits", logits}, {"target", target}});
  require_same("binary_cross_entropy_with_logits", logits, target);
  const Tensor x = as_f32(logits), t = as_f32(target);
  const Tensor losses = pos_weight.defined()
                            ? (t - 1.0) * log_sigmoid(-x) - weighted("binary_cross_entropy_with_logits", t * log_sigmoid(x),
                                                                     pos_weight, logits.dtype(), "pos_weight")
                            : ops::cross_entropy_of_logits(x, t);
  return reduced(weighted("binary_cross_entropy_with_logits", losses, weight, logits.dtype()), reduction, logits.dtype());
}

Tensor sigmoid_focal_loss(const Tensor& logits, const Tensor& target, Reduction reduction, double alpha, double gamma) {
  require_defined("sigmoid_focal_loss", {{"logits", logits}, {"target", target}});
  require_same("sigmoid_focal_loss", logits, target);
  const Tensor x = as_f32(logits), t = as_f32(target), other = 1.0 - t;
  const Tensor missed = sigmoid(x) * other + sigmoid(-x) * t;
  Tensor losses = ops::cross_entropy_of_logits(x, t) * pow(missed, gamma);
  if (alpha >= 0) losses = losses * (t * alpha + other * (1 - alpha));
  return reduced(losses, reduction, logits.dtype());
}

Tensor kl_div(const Tensor& input, const Tensor& target, const KlDivOptions& options) {
  require_defined("kl_div", {{"input", input}, {"target", target}});
  require_broadcast("kl_div", input, target);
  const Tensor x = as_f32(input), t = as_f32(target);
  Tensor losses;
  if (options.log_target) {
    losses = exp(t) * (t - x);
  } else {
    // A target that is no probability gives NaN.
    const Tensor counts = not_equal(t, 0.0);
    losses = where(counts, t * (log(where(counts, t, ops::scalar_like(1, t))) - x), ops::scalar_like(0, t));
  }
  if (!options.batch_mean) return reduced(losses, options.reduction, input.dtype());
  const double batch = input.rank() > 0 ? static_cast<double>(input.size(0)) : 1;
  return ops::rounded(sum(losses) / batch, input.dtype());
}
Tensor kl_div(const Tensor& input, const Tensor& target) { return kl_div(input, target, {}); }

Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, const PoissonNllOptions& options) {
  require_defined("poisson_nll_loss", {{"input", input}, {"target", target}});
  require_broadcast("poisson_nll_loss", input, target);
  const Tensor x = as_f32(input), t = as_f32(target);
  Tensor losses = options.log_input ? exp(x) - t * x : x - t * log(x + options.eps);
  if (options.full) {
    const Tensor counts = greater(t, 1.0), one = ops::scalar_like(1, t), some = where(counts, t, one);
    const Tensor stirling = some * log(some) - some + log(some * (2 * std::numbers::pi)) * 0.5;
    losses = losses + where(counts, stirling, ops::scalar_like(0, t));
  }
  return reduced(losses, options.reduction, input.dtype());
}
Tensor poisson_nll_loss(const Tensor& input, const Tensor& target) { return poisson_nll_loss(input, target, {}); }

Tensor gaussian_nll_loss(const Tensor& input, const Tensor& target, const Tensor& var, const GaussianNllOptions& options) {
  require_defined("gaussian_nll_loss", {{"input", input}, {"target", target}, {"var", var}});
  require_broadcast("gaussian_nll_loss", input, target);
  ops::require_same_dtype("gaussian_nll_loss", input.spec(), var.spec());
  if (!(options.eps > 0)) throw Error(fmt::format("gaussian_nll_loss: eps {} is not positive", options.eps));
  auto one_per_row = input.shape().extents();
  if (!one_per_row.empty()) one_per_row.pop_back();
  const Tensor columns = var.shape() == Shape(one_per_row) && input.rank() > 0 ? unsqueeze(var, -1) : var;
  one_per_row.push_back(1);
  if (columns.shape() != input.shape() && columns.shape() != Shape(one_per_row))
    throw ShapeError(
        fmt::format("gaussian_nll_loss: var {} does not fit input {}", to_string(var.spec()), to_string(input.spec())));
  Tensor losses = ops::gaussian_nll(as_f32(input) - as_f32(target), as_f32(columns), options.eps);
  if (options.full) losses = losses + 0.5 * std::log(2 * std::numbers::pi);
  return reduced(losses, options.reduction, input.dtype());
}
Tensor gaussian_nll_loss(const Tensor& input, const Tensor& target, const Tensor& var) {
  return gaussian_nll_loss(input, target, var, {});
}

}  // namespace clnet
