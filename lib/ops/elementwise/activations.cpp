// Activations and choices that other elementwise operations make up; fusion makes one kernel of each.
#include <fmt/format.h>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/graph/require.h"
#include "lib/ops/elementwise/elementwise.h"
#include "lib/ops/wide.h"

namespace clnet {

using ops::scalar_like;
using ops::wide;

Tensor hardshrink(const Tensor& x, double lambda) {
  require_defined("hardshrink", {{"x", x}});
  ops::require_floating("hardshrink", x.spec());
  return where(less_equal(abs(x), lambda), scalar_like(0, x), x);
}

Tensor softshrink(const Tensor& x, double lambda) {
  require_defined("softshrink", {{"x", x}});
  ops::require_floating("softshrink", x.spec());
  if (!(lambda >= 0)) throw Error(fmt::format("softshrink: lambda {} is not 0 or more", lambda));
  return x - clamp(x, -lambda, lambda);
}

Tensor tanhshrink(const Tensor& x) {
  require_defined("tanhshrink", {{"x", x}});
  ops::require_floating("tanhshrink", x.spec());
  const Tensor all = wide(x);
  return cast(all - tanh(all), x.dtype());
}

Tensor threshold(const Tensor& x, double bound, double value) {
  require_defined("threshold", {{"x", x}});
  ops::require_floating("threshold", x.spec());
  return where(less_equal(x, bound), scalar_like(value, x), x);
}

Tensor prelu(const Tensor& x, const Tensor& weight) {
  require_defined("prelu", {{"x", x}, {"weight", weight}});
  ops::require_floating("prelu", x.spec());
  ops::require_same_dtype("prelu", x.spec(), weight.spec());
  const bool channels = x.rank() >= 2 && weight.shape() == Shape{x.size(1)};
  if (!channels && weight.shape() != Shape{1})
    throw ShapeError(fmt::format("prelu: weight {} is neither one number nor one for each channel of {}",
                                 to_string(weight.spec()), to_string(x.spec())));
  std::vector<std::int64_t> extents(static_cast<std::size_t>(x.rank()), 1);
  if (channels) extents[1] = x.size(1);
  return where(greater(x, 0.0), x, reshape(weight, extents) * x);
}

Tensor glu(const Tensor& x, int dim) {
  require_defined("glu", {{"x", x}});
  ops::require_floating("glu", x.spec());
  const auto extent = x.size(dim);
  if (extent % 2 != 0) throw ShapeError(fmt::format("glu: extent {} of {} has no halves", extent, to_string(x.spec())));
  const auto first = slice(x, dim, 0, extent / 2), second = slice(x, dim, extent / 2);
  return cast(wide(first) * sigmoid(wide(second)), x.dtype());
}

Tensor lerp(const Tensor& a, const Tensor& b, double weight) {
  require_defined("lerp", {{"a", a}, {"b", b}});
  ops::require_floating("lerp", a.spec());
  ops::require_same_dtype("lerp", a.spec(), b.spec());
  const Tensor from = wide(a);
  return cast(from + (wide(b) - from) * weight, a.dtype());
}

Tensor lerp(const Tensor& a, const Tensor& b, const Tensor& weight) {
  require_defined("lerp", {{"a", a}, {"b", b}, {"weight", weight}});
  ops::require_floating("lerp", a.spec());
  ops::require_same_dtype("lerp", a.spec(), b.spec());
  ops::require_same_dtype("lerp", a.spec(), weight.spec());
  const Tensor from = wide(a);
  return cast(from + (wide(b) - from) * wide(weight), a.dtype());
}

Tensor masked_fill(const Tensor& x, const Tensor& mask, double value) {
  require_defined("masked_fill", {{"x", x}, {"mask", mask}});
  if (broadcast(x.shape(), mask.shape(), "masked_fill") != x.shape())
    throw ShapeError(fmt::format("masked_fill: mask {} does not broadcast to {}", to_string(mask.spec()), to_string(x.spec())));
  return where(mask, scalar_like(value, x), x);
}

}  // namespace clnet
