// Dropping and choosing at random, of what other operations make up.
#include <fmt/format.h>

#include <cmath>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/graph/require.h"
#include "lib/ops/as_f32.h"
#include "lib/ops/elementwise/elementwise.h"
#include "lib/ops/lines.h"

namespace clnet {

namespace {

void require_probability(std::string_view op, const Tensor& x, double p) {
  require_defined(op, {{"x", x}});
  ops::require_floating(op, x.spec());
  if (!(p >= 0 && p <= 1)) throw Error(fmt::format("{}: the probability must be in [0, 1], got {}", op, p));
}

/// The shape with one element per channel; `channel` is its dimension.
Shape channels_of(const Tensor& x, int channel) {
  std::vector<std::int64_t> extents(static_cast<std::size_t>(x.rank()), 1);
  for (int d = 0; d <= channel; ++d) extents[static_cast<std::size_t>(d)] = x.size(d);
  return Shape(extents);
}

/// Channels of x as a whole; x has `rank` dimensions, or (`also_single`) one less without a batch.
Tensor drop_channels(std::string_view op, const Tensor& x, double p, int rank, bool also_single) {
  require_probability(op, x, p);
  if (x.rank() != rank && !(also_single && x.rank() == rank - 1))
    throw ShapeError(fmt::format("{}: {} does not have {} dimensions", op, to_string(x.spec()), rank));
  const Tensor mask = dropout(ones(channels_of(x, x.rank() - rank + 1), ops::computed_in(x.dtype())), p);
  return cast(ops::as_f32(x) * mask, x.dtype());
}

/// SELU's limit where the mask drops, and all of it at mean 0 and variance 1 again.
Tensor drop_to_limit(const Tensor& x, double p, const Shape& mask_shape) {
  if (p == 0) return x;
  if (p == 1) return zeros_like(x);
  constexpr double limit = -1.7580993408473766;
  const double scale = 1 / std::sqrt((limit * limit * p + 1) * (1 - p)), shift = -scale * limit * p;
  const Tensor dropped = less(rand(mask_shape), p);
  return cast(where(dropped, Tensor::scalar(limit, ops::computed_in(x.dtype())), ops::as_f32(x)) * scale + shift, x.dtype());
}

}  // namespace

Tensor dropout1d(const Tensor& x, double p) { return drop_channels("dropout1d", x, p, 3, true); }
Tensor dropout2d(const Tensor& x, double p) {
  return drop_channels("dropout2d", x, p, x.defined() && x.rank() == 3 ? 3 : 4, false);
}
Tensor dropout3d(const Tensor& x, double p) { return drop_channels("dropout3d", x, p, 5, true); }

Tensor alpha_dropout(const Tensor& x, double p) {
  require_probability("alpha_dropout", x, p);
  return drop_to_limit(x, p, x.shape());
}

Tensor feature_alpha_dropout(const Tensor& x, double p) {
  require_probability("feature_alpha_dropout", x, p);
  if (x.rank() < 2) throw ShapeError(fmt::format("feature_alpha_dropout: {} is no {{N, C, ...}}", to_string(x.spec())));
  return drop_to_limit(x, p, channels_of(x, 1));
}

Tensor rrelu(const Tensor& x, double lower, double upper, bool training) {
  require_defined("rrelu", {{"x", x}});
  ops::require_floating("rrelu", x.spec());
  if (!(lower <= upper) || !std::isfinite(lower) || !std::isfinite(upper))
    throw Error(fmt::format("rrelu: there are no slopes from {} to {}", lower, upper));
  if (!training) return leaky_relu(x, (lower + upper) / 2);
  const Tensor slopes = rand(x.shape(), ops::computed_in(x.dtype())) * (upper - lower) + lower, all = ops::as_f32(x);
  return cast(where(less(all, 0.0), all * slopes, all), x.dtype());
}

Tensor gumbel_softmax(const Tensor& logits, double tau, bool hard, int dim) {
  require_defined("gumbel_softmax", {{"logits", logits}});
  ops::require_floating("gumbel_softmax", logits.spec());
  if (!(tau > 0)) throw Error(fmt::format("gumbel_softmax: tau {} is not positive", tau));
  const int at = require_line("gumbel_softmax", logits.shape(), dim);
  const Tensor soft =
      softmax((ops::as_f32(logits) - log(exponential(logits.shape(), 1, ops::computed_in(logits.dtype())))) / tau, at);
  if (!hard) return cast(soft, logits.dtype());
  const auto extent = ops::Lines(logits.shape(), at).extent;
  std::vector<std::int64_t> extents(static_cast<std::size_t>(logits.rank()), 1);
  if (!extents.empty()) extents[static_cast<std::size_t>(at)] = extent;
  const Tensor chosen = eq(argmax(soft, at, true), reshape(arange(extent), Shape(extents)));
  // The value of the choice, exactly, and the gradient of the soft one.
  return cast(cast(chosen, soft.dtype()) + (soft - stop_gradient(soft)), logits.dtype());
}

Tensor bernoulli(const Tensor& probabilities) {
  require_defined("bernoulli", {{"probabilities", probabilities}});
  ops::require_floating("bernoulli", probabilities.spec());
  return cast(less(rand(probabilities.shape(), ops::computed_in(probabilities.dtype())), ops::as_f32(probabilities)),
              probabilities.dtype());
}

}  // namespace clnet
