// Losses that compare several inputs, with a margin: compositions of elementwise operations and reductions.
#include <fmt/format.h>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/graph/require.h"
#include "lib/ops/as_f32.h"
#include "lib/ops/elementwise/elementwise.h"
#include "lib/ops/index/index_add.h"
#include "lib/ops/loss/labels.h"
#include "lib/ops/loss/reduced.h"

namespace clnet {

using ops::as_f32;
using ops::reduced;
using ops::require_broadcast;

namespace {

/// max(x, 0), with PyTorch's gradient of 1 at 0: what lies on the margin moves.
Tensor hinge(const Tensor& x) { return where(less(x, 0.0), ops::scalar_like(0, x), x); }

/// Shapes that broadcast, but for dimensions that are missing.
void require_one_rank(std::string_view op, const Tensor& a, const Tensor& b) {
  require_broadcast(op, a, b);
  if (a.rank() != b.rank())
    throw ShapeError(
        fmt::format("{}: {} and {} have different numbers of dimensions", op, to_string(a.spec()), to_string(b.spec())));
}

/// |a - b + eps|_p over the last dimension.
Tensor distance(const Tensor& a, const Tensor& b, double p, double eps) { return norm(a - b + eps, p, {-1}); }

/// Classes of which no negative one counts from the end.
Tensor class_or_none(const Tensor& target, std::int64_t classes) {
  return where(less(target, 0.0), Tensor::scalar(static_cast<double>(classes), target.dtype()), target);
}

}  // namespace

Tensor hinge_embedding_loss(const Tensor& input, const Tensor& target, double margin, Reduction reduction) {
  require_defined("hinge_embedding_loss", {{"input", input}, {"target", target}});
  require_broadcast("hinge_embedding_loss", input, target);
  const Tensor x = as_f32(input), t = as_f32(target), zero = ops::scalar_like(0, x);
  const Tensor losses = where(not_equal(t, 1.0), hinge(margin - x), zero) + where(not_equal(t, -1.0), x, zero);
  return reduced(losses, reduction, input.dtype());
}

Tensor margin_ranking_loss(const Tensor& a, const Tensor& b, const Tensor& target, double margin, Reduction reduction) {
  require_defined("margin_ranking_loss", {{"a", a}, {"b", b}, {"target", target}});
  require_one_rank("margin_ranking_loss", a, b);
  require_one_rank("margin_ranking_loss", a, target);
  return reduced(hinge(margin - as_f32(target) * (as_f32(a) - as_f32(b))), reduction, a.dtype());
}

Tensor cosine_embedding_loss(const Tensor& a, const Tensor& b, const Tensor& target, double margin, Reduction reduction) {
  require_defined("cosine_embedding_loss", {{"a", a}, {"b", b}, {"target", target}});
  require_one_rank("cosine_embedding_loss", a, b);
  ops::require_same_dtype("cosine_embedding_loss", a.spec(), target.spec());
  // A target for each row; one row of both inputs, or one target, serves all.
  const auto rows = [&] { return broadcast(a.shape(), b.shape(), "cosine_embedding_loss")[0]; };
  if (a.rank() < 1 || a.rank() > 2 || target.rank() != a.rank() - 1 ||
      (a.rank() == 2 && target.size(0) != rows() && target.size(0) != 1 && rows() != 1))
    throw ShapeError(fmt::format("cosine_embedding_loss: target {} does not belong to inputs {}", to_string(target.spec()),
                                 to_string(a.spec())));
  const Tensor x = as_f32(a), y = as_f32(b), t = as_f32(target), zero = ops::scalar_like(0, x);
  constexpr double eps = 1e-12;
  const Tensor lengths = (sum(square(x), {-1}) + eps) * (sum(square(y), {-1}) + eps);
  const Tensor cosine = sum(x * y, {-1}) * rsqrt(lengths);
  const Tensor losses = where(eq(t, 1.0), 1.0 - cosine, zero) + where(eq(t, -1.0), hinge(cosine - margin), zero);
  return reduced(losses, reduction, a.dtype());
}

Tensor multi_margin_loss(const Tensor& input, const Tensor& target, const MultiMarginOptions& options) {
  constexpr std::string_view op = "multi_margin_loss";
  require_defined(op, {{"input", input}, {"target", target}});
  ops::require_floating(op, input.spec());
  ops::require_indices(op, target);
  // A scalar is the score of the only class.
  if (input.rank() == 0 && target.numel() == 1) return multi_margin_loss(reshape(input, {1}), target, options);
  const bool fits = (input.rank() == 2 && target.shape() == Shape{input.size(0)}) || (input.rank() == 1 && target.numel() == 1);
  if (!fits || input.size(-1) < 1)
    throw ShapeError(fmt::format("{}: input {} and target {} are not {{N, C}} and {{N}}, or {{C}} and {{}}", op,
                                 to_string(input.spec()), to_string(target.spec())));
  if (options.p != 1 && options.p != 2) throw Error(fmt::format("{}: p {} is not 1 or 2", op, options.p));
  if (input.rank() == 1) {
    const auto row = multi_margin_loss(unsqueeze(input, 0), reshape(target, {1}), options);
    return options.reduction == Reduction::none ? squeeze(row, 0) : row;
  }
  const auto classes = input.size(1);
  ops::require_classes(op, target, classes);
  const Tensor x = as_f32(input), own = class_or_none(unsqueeze(target, 1), classes);
  const Tensor beyond = relu(x - gather(x, 1, own) + options.margin), costs = options.p == 2 ? square(beyond) : beyond;
  const Tensor others = not_equal(own, arange(classes, 0, 1, target.dtype()));
  Tensor losses = sum(where(others, costs, ops::scalar_like(0, costs)), 1) / static_cast<double>(classes);
  if (options.weight.defined()) {
    ops::require_same_dtype(op, input.spec(), options.weight.spec());
    if (options.weight.shape() != Shape{classes})
      throw ShapeError(fmt::format("{}: weight {} must be [{}]", op, to_string(options.weight.spec()), classes));
    losses = losses * index_select(as_f32(options.weight), 0, squeeze(own, 1));
  }
  return reduced(losses, options.reduction, input.dtype());
}
Tensor multi_margin_loss(const Tensor& input, const Tensor& target) { return multi_margin_loss(input, target, {}); }

Tensor multilabel_margin_loss(const Tensor& input, const Tensor& target, Reduction reduction) {
  constexpr std::string_view op = "multilabel_margin_loss";
  require_defined(op, {{"input", input}, {"target", target}});
  ops::require_floating(op, input.spec());
  ops::require_indices(op, target);
  if (input.rank() == 0 && target.rank() == 0)
    return multilabel_margin_loss(reshape(input, {1}), reshape(target, {1}), reduction);
  if ((input.rank() != 1 && input.rank() != 2) || target.shape() != input.shape() || input.size(-1) < 1)
    throw ShapeError(fmt::format("{}: input {} and target {} are not both {{N, C}} or {{C}}", op, to_string(input.spec()),
                                 to_string(target.spec())));
  if (input.rank() == 1) {
    const auto row = multilabel_margin_loss(unsqueeze(input, 0), unsqueeze(target, 0), reduction);
    return reduction == Reduction::none ? squeeze(row, 0) : row;
  }
  const auto classes = input.size(1);
  const Tensor x = as_f32(input);
  // {N, j, 1}: which entries of the target count, and {N, j, i}: whether they are class i.
  const Tensor counts = unsqueeze(eq(cumsum(less(target, 0.0), 1), 0.0), 2), own = class_or_none(target, classes);
  const Tensor is = logical_and(eq(unsqueeze(own, 2), arange(classes, 0, 1, target.dtype())), counts);
  const Tensor others = logical_and(logical_not(max(is, 1, true)), counts);
  // Of an entry that does not count any element: ONNX has no index outside of x.
  const Tensor chosen = gather(x, 1, maximum(target, 0.0));
  const Tensor costs = relu(1.0 - unsqueeze(chosen, 2) + unsqueeze(x, 1)), none = ops::scalar_like(0, costs);
  return reduced(sum(where(others, costs, none), {1, 2}) / static_cast<double>(classes), reduction, input.dtype());
}

Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           const TripletMarginOptions& options) {
  require_defined("triplet_margin_loss", {{"anchor", anchor}, {"positive", positive}, {"negative", negative}});
  require_one_rank("triplet_margin_loss", anchor, positive);
  require_one_rank("triplet_margin_loss", anchor, negative);
  if (anchor.rank() < 1) throw ShapeError("triplet_margin_loss: scalars have no last dimension");
  if (!(options.p >= 1)) throw Error(fmt::format("triplet_margin_loss: p {} is below 1", options.p));
  const Tensor a = as_f32(anchor), near = as_f32(positive), far = as_f32(negative);
  Tensor apart = distance(a, far, options.p, options.eps);
  if (options.swap) apart = minimum(apart, distance(near, far, options.p, options.eps));
  const Tensor losses = hinge(distance(a, near, options.p, options.eps) - apart + options.margin);
  return reduced(losses, options.reduction, anchor.dtype());
}
Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative) {
  return triplet_margin_loss(anchor, positive, negative, {});
}

}  // namespace clnet
