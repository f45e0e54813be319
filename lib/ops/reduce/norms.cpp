// Reductions that others make up.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/graph/require.h"
#include "lib/ops/as_f32.h"
#include "lib/ops/elementwise/elementwise.h"
#include "lib/ops/reduce/reduce.h"

namespace clnet {

using ops::as_f32;
using ops::reduced_dims;
using ops::root;
using ops::rounded;

Tensor ops::root(const Tensor& x, double p) {
  const Tensor none = eq(x, 0.0), some = where(none, ops::scalar_like(1, x), x);
  return where(none, ops::scalar_like(0, x), p == 2 ? sqrt(some) : pow(some, 1 / p));
}

Tensor stddev(const Tensor& x, const Dims& dims, int correction, bool keepdim) {
  require_defined("stddev", {{"x", x}});
  ops::require_floating("stddev", x.spec());
  (void)reduced_dims("stddev", x.shape(), dims);
  return rounded(root(var(as_f32(x), dims, correction, keepdim), 2), x.dtype());
}

namespace {

Tensor truth(std::string_view op, bool every, const Tensor& x, const Dims& dims, bool keepdim) {
  require_defined(op, {{"x", x}});
  (void)reduced_dims(op, x.shape(), dims);
  const Tensor is = x.dtype() == Dtype::boolean ? x : not_equal(x, 0.0);
  if (x.numel() == 0) return full(sum(is, dims, keepdim).shape(), every ? 1 : 0, Dtype::boolean);
  return every ? min(is, dims, keepdim) : max(is, dims, keepdim);
}

}  // namespace

Tensor any(const Tensor& x, const Dims& dims, bool keepdim) { return truth("any", false, x, dims, keepdim); }
Tensor all(const Tensor& x, const Dims& dims, bool keepdim) { return truth("all", true, x, dims, keepdim); }

bool equal(const Tensor& a, const Tensor& b) {
  require_defined("equal", {{"a", a}, {"b", b}});
  return a.shape() == b.shape() && all(eq(a, b)).item<bool>();
}

Tensor logsumexp(const Tensor& x, const Dims& dims, bool keepdim) {
  require_defined("logsumexp", {{"x", x}});
  ops::require_floating("logsumexp", x.spec());
  (void)reduced_dims("logsumexp", x.shape(), dims);
  const Tensor all = as_f32(x);
  if (x.numel() == 0) return rounded(log(sum(exp(all), dims, keepdim)), x.dtype());
  // Infinite ones are left where they are: infinity minus infinity is no number.
  const Tensor most = max(stop_gradient(all), dims, true);
  const Tensor shift = where(less(abs(most), std::numeric_limits<double>::infinity()), most, ops::scalar_like(0, most));
  const Tensor sums = sum(exp(all - shift), dims, keepdim);
  return rounded(log(sums) + reshape(shift, sums.shape()), x.dtype());
}

Tensor norm(const Tensor& x, double p, const Dims& dims, bool keepdim) {
  require_defined("norm", {{"x", x}});
  ops::require_floating("norm", x.spec());
  (void)reduced_dims("norm", x.shape(), dims);
  if (std::isnan(p)) throw Error("norm: p is NaN");
  if (p < 0 || std::isinf(p)) {
    const auto reduced = reduced_dims("norm", x.shape(), dims);
    for (int d = 0; d < x.rank(); ++d)
      if (reduced[static_cast<std::size_t>(d)] && x.size(d) == 0)
        throw ShapeError(fmt::format("norm: of no elements there is none of p = {}, in {}", p, to_string(x.spec())));
  }
  const Tensor sizes = abs(as_f32(x));
  Tensor result;
  if (p == 0) {
    result = sum(cast(not_equal(sizes, 0.0), sizes.dtype()), dims, keepdim);
  } else if (p == 1) {
    result = sum(sizes, dims, keepdim);
  } else if (p == 2) {
    result = root(sum(square(as_f32(x)), dims, keepdim), 2);
  } else if (std::isinf(p)) {
    result = p > 0 ? max(sizes, dims, keepdim) : min(sizes, dims, keepdim);
  } else if (p < 0) {
    // An element of 0 is an infinite power, whose root is 0.
    const Tensor none = eq(sizes, 0.0), some = where(none, ops::scalar_like(1, sizes), sizes);
    const Tensor sums = sum(pow(some, p), dims, keepdim), any = max(none, dims, keepdim);
    result = where(logical_and(any, eq(sums, sums)), ops::scalar_like(0, sums), pow(sums, 1 / p));
  } else {
    // Below p = 1 the power's slope at 0 is infinite.
    const Tensor none = eq(sizes, 0.0), powers = pow(where(none, ops::scalar_like(1, sizes), sizes), p);
    result = root(sum(where(none, ops::scalar_like(0, sizes), powers), dims, keepdim), p);
  }
  return rounded(result, x.dtype());
}

}  // namespace clnet
