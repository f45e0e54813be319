// Activations and choices that other elementwise operations make up; fusion makes one kernel of each.
#include <fmt/format.h>

#include <cmath>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/graph/require.h"
#include "lib/ops/as_f32.h"
#include "lib/ops/elementwise/elementwise.h"

namespace clnet {

using ops::as_f32;
using ops::scalar_like;

namespace {

/// The value as a scalar of x's dtype. Throws DtypeError where it lies outside.
Tensor held_by(std::string_view op, double value, const Tensor& x) {
  ops::require_held(op, value, x.dtype());
  return scalar_like(value, x);
}

}  // namespace

void ops::require_held(std::string_view op, double value, Dtype dtype) {
  constexpr double halves_end = 65520;  // from here on a number rounds to infinity
  const bool fraction_lost = !is_floating(dtype) && value != std::floor(value);
  try {
    if (!fraction_lost && (dtype != Dtype::f16 || !std::isfinite(value) || std::abs(value) < halves_end)) {
      Tensor::scalar(value, dtype);
      return;
    }
  } catch (const DtypeError&) {
    // Told below, with the operation's name.
  }
  throw DtypeError(fmt::format("{}: {} does not fit in {}", op, value, to_string(dtype)));
}

Tensor hardshrink(const Tensor& x, double lambda) {
  require_defined("hardshrink", {{"x", x}});
  ops::require_floating("hardshrink", x.spec());
  return where(less_equal(abs(x), lambda), scalar_like(0, x), x);
}

Tensor softshrink(const Tensor& x, double lambda) {
  require_defined("softshrink", {{"x", x}});
  ops::require_floating("softshrink", x.spec());
  if (!(lambda >= 0)) throw Error(fmt::format("softshrink: lambda {} is not 0 or more", lambda));
  return where(less_equal(abs(x), lambda), scalar_like(0, x), x - clamp(x, -lambda, lambda));
}

Tensor tanhshrink(const Tensor& x) {
  require_defined("tanhshrink", {{"x", x}});
  ops::require_floating("tanhshrink", x.spec());
  const Tensor all = as_f32(x);
  return cast(all - tanh(all), x.dtype());
}

Tensor threshold(const Tensor& x, double bound, double value) {
  require_defined("threshold", {{"x", x}});
  ops::require_floating("threshold", x.spec());
  return where(less_equal(x, bound), held_by("threshold", value, x), x);
}

Tensor prelu(const Tensor& x, const Tensor& weight) {
  require_defined("prelu", {{"x", x}, {"weight", weight}});
  ops::require_floating("prelu", x.spec());
  ops::require_same_dtype("prelu", x.spec(), weight.spec());
  const bool channels = x.rank() >= 2 && weight.shape() == Shape{x.size(1)};
  if (!channels && (weight.rank() > 1 || weight.numel() != 1))
    throw ShapeError(fmt::format("prelu: weight {} is neither one number nor one for each channel of {}",
                                 to_string(weight.spec()), to_string(x.spec())));
  std::vector<std::int64_t> extents(static_cast<std::size_t>(x.rank()), 1);
  if (channels) extents[1] = x.size(1);
  // The weight's gradient does not see positive elements, infinite ones above all.
  const Tensor positive = greater(x, 0.0), rest = where(positive, scalar_like(0, x), x);
  return where(positive, x, reshape(weight, extents) * rest);
}

Tensor glu(const Tensor& x, int dim) {
  require_defined("glu", {{"x", x}});
  ops::require_floating("glu", x.spec());
  const auto extent = x.size(require_dim("glu", x, dim));
  if (extent % 2 != 0) throw ShapeError(fmt::format("glu: extent {} of {} has no halves", extent, to_string(x.spec())));
  const auto first = slice(x, dim, 0, extent / 2), second = slice(x, dim, extent / 2);
  return cast(as_f32(first) * sigmoid(as_f32(second)), x.dtype());
}

Tensor lerp(const Tensor& a, const Tensor& b, double weight) {
  require_defined("lerp", {{"a", a}, {"b", b}});
  ops::require_floating("lerp", a.spec());
  ops::require_same_dtype("lerp", a.spec(), b.spec());
  (void)broadcast(a.shape(), b.shape(), "lerp");
  const Tensor from = as_f32(a);
  const Tensor to = as_f32(b);
  return cast(std::abs(weight) < 0.5 ? from + (to - from) * weight : to - (to - from) * (1 - weight), a.dtype());
}

Tensor lerp(const Tensor& a, const Tensor& b, const Tensor& weight) {
  require_defined("lerp", {{"a", a}, {"b", b}, {"weight", weight}});
  ops::require_floating("lerp", a.spec());
  ops::require_same_dtype("lerp", a.spec(), b.spec());
  ops::require_same_dtype("lerp", a.spec(), weight.spec());
  (void)broadcast(broadcast(a.shape(), b.shape(), "lerp"), weight.shape(), "lerp");
  const Tensor from = as_f32(a);
  const Tensor to = as_f32(b), share = as_f32(weight);
  return cast(where(less(abs(share), 0.5), from + (to - from) * share, to - (to - from) * (1.0 - share)), a.dtype());
}

namespace {

/// x + value `change`, of three tensors.
Tensor added(std::string_view op, const Tensor& x, const Tensor& a, const Tensor& b, double value,
             Tensor (*change)(const Tensor&, const Tensor&)) {
  require_defined(op, {{"x", x}, {"a", a}, {"b", b}});
  ops::require_floating(op, x.spec());
  ops::require_same_dtype(op, x.spec(), a.spec());
  ops::require_same_dtype(op, x.spec(), b.spec());
  (void)broadcast(broadcast(x.shape(), a.shape(), op), b.shape(), op);
  const Tensor all = change(as_f32(a), as_f32(b));
  return cast(as_f32(x) + (value == 1 ? all : all * value), x.dtype());
}

}  // namespace

Tensor addcmul(const Tensor& x, const Tensor& a, const Tensor& b, double value) {
  return added("addcmul", x, a, b, value, operator*);
}
Tensor addcdiv(const Tensor& x, const Tensor& a, const Tensor& b, double value) {
  return added("addcdiv", x, a, b, value, operator/);
}

Tensor frac(const Tensor& x) {
  require_defined("frac", {{"x", x}});
  ops::require_floating("frac", x.spec());
  return x - trunc(x);
}

Tensor masked_fill(const Tensor& x, const Tensor& mask, double value) {
  require_defined("masked_fill", {{"x", x}, {"mask", mask}});
  if (broadcast(x.shape(), mask.shape(), "masked_fill") != x.shape())
    throw ShapeError(fmt::format("masked_fill: mask {} does not broadcast to {}", to_string(mask.spec()), to_string(x.spec())));
  if (mask.dtype() != Dtype::boolean)
    throw DtypeError(fmt::format("masked_fill: the mask must be bool, got {}", to_string(mask.spec())));
  return where(mask, held_by("masked_fill", value, x), x);
}

Tensor where(const Tensor& condition, const Tensor& a, double b) {
  require_defined("where", {{"condition", condition}, {"a", a}});
  return where(condition, a, held_by("where", b, a));
}

Tensor where(const Tensor& condition, double a, const Tensor& b) {
  require_defined("where", {{"condition", condition}, {"b", b}});
  return where(condition, held_by("where", a, b), b);
}

Tensor where(const Tensor& condition, double a, double b) {
  require_defined("where", {{"condition", condition}});
  return where(condition, Tensor::scalar(a), Tensor::scalar(b));
}

}  // namespace clnet
