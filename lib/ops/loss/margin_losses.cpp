// Losses that compare several inputs, with a margin: compositions of elementwise operations and reductions.
#include <fmt/format.h>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/graph/require.h"
#include "lib/ops/elementwise/elementwise.h"
#include "lib/ops/loss/reduced.h"
#include "lib/ops/wide.h"

namespace clnet {

using ops::reduced;
using ops::require_same;
using ops::wide;

namespace {

/// max(x, 0), with PyTorch's gradient of 1 at 0: what lies on the margin moves.
Tensor hinge(const Tensor& x) { return clamp(x, 0); }

/// |a - b + eps|_p over the last dimension.
Tensor distance(const Tensor& a, const Tensor& b, double p, double eps) { return norm(a - b + eps, p, {-1}); }

}  // namespace

Tensor hinge_embedding_loss(const Tensor& input, const Tensor& target, double margin, Reduction reduction) {
  require_defined("hinge_embedding_loss", {{"input", input}, {"target", target}});
  require_same("hinge_embedding_loss", input, target);
  const Tensor x = wide(input), t = wide(target), zero = ops::scalar_like(0, x);
  const Tensor losses = where(not_equal(t, 1.0), hinge(margin - x), zero) + where(not_equal(t, -1.0), x, zero);
  return reduced(losses, reduction, input.dtype());
}

Tensor margin_ranking_loss(const Tensor& a, const Tensor& b, const Tensor& target, double margin, Reduction reduction) {
  require_defined("margin_ranking_loss", {{"a", a}, {"b", b}, {"target", target}});
  require_same("margin_ranking_loss", a, b);
  require_same("margin_ranking_loss", a, target);
  return reduced(hinge(margin - wide(target) * (wide(a) - wide(b))), reduction, a.dtype());
}

Tensor cosine_embedding_loss(const Tensor& a, const Tensor& b, const Tensor& target, double margin, Reduction reduction) {
  require_defined("cosine_embedding_loss", {{"a", a}, {"b", b}, {"target", target}});
  require_same("cosine_embedding_loss", a, b);
  ops::require_same_dtype("cosine_embedding_loss", a.spec(), target.spec());
  if (a.rank() < 1 || a.rank() > 2 || target.rank() != a.rank() - 1 || (a.rank() == 2 && target.size(0) != a.size(0)))
    throw ShapeError(fmt::format("cosine_embedding_loss: target {} does not belong to inputs {}", to_string(target.spec()),
                                 to_string(a.spec())));
  const Tensor x = wide(a), y = wide(b), t = wide(target), zero = ops::scalar_like(0, x);
  constexpr double eps = 1e-12;
  const Tensor lengths = (sum(square(x), {-1}) + eps) * (sum(square(y), {-1}) + eps);
  const Tensor cosine = sum(x * y, {-1}) * rsqrt(lengths);
  const Tensor losses = where(equal(t, 1.0), 1.0 - cosine, zero) + where(equal(t, -1.0), hinge(cosine - margin), zero);
  return reduced(losses, reduction, a.dtype());
}

Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           const TripletMarginOptions& options) {
  require_defined("triplet_margin_loss", {{"anchor", anchor}, {"positive", positive}, {"negative", negative}});
  require_same("triplet_margin_loss", anchor, positive);
  require_same("triplet_margin_loss", anchor, negative);
  if (anchor.rank() < 1) throw ShapeError("triplet_margin_loss: scalars have no last dimension");
  if (!(options.p >= 1)) throw Error(fmt::format("triplet_margin_loss: p {} is below 1", options.p));
  const Tensor a = wide(anchor), near = wide(positive), far = wide(negative);
  Tensor apart = distance(a, far, options.p, options.eps);
  if (options.swap) apart = minimum(apart, distance(near, far, options.p, options.eps));
  const Tensor losses = hinge(distance(a, near, options.p, options.eps) - apart + options.margin);
  return reduced(losses, options.reduction, anchor.dtype());
}
Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative) {
  return triplet_margin_loss(anchor, positive, negative, {});
}

}  // namespace clnet
