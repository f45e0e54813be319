// Reductions in pairs, of what is not NaN or not 0, and differences of neighbours.
#include <fmt/format.h>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/graph/require.h"
#include "lib/ops/as_f32.h"
#include "lib/ops/elementwise/elementwise.h"
#include "lib/ops/reduce/reduce.h"

namespace clnet {

namespace {

void require_reducible(std::string_view op, const Tensor& x, const Dims& dims) {
  require_defined(op, {{"x", x}});
  (void)ops::reduced_dims(op, x.shape(), dims);
}
void require_reducible_floats(std::string_view op, const Tensor& x, const Dims& dims) {
  require_reducible(op, x, dims);
  ops::require_floating(op, x.spec());
}

}  // namespace

VarMean var_mean(const Tensor& x, const Dims& dims, int correction, bool keepdim) {
  require_reducible_floats("var_mean", x, dims);
  return {var(x, dims, correction, keepdim), mean(x, dims, keepdim)};
}

StdMean std_mean(const Tensor& x, const Dims& dims, int correction, bool keepdim) {
  require_reducible_floats("std_mean", x, dims);
  return {stddev(x, dims, correction, keepdim), mean(x, dims, keepdim)};
}

MinMax aminmax(const Tensor& x, const Dims& dims, bool keepdim) {
  require_reducible("aminmax", x, dims);
  return {min(x, dims, keepdim), max(x, dims, keepdim)};
}

Tensor count_nonzero(const Tensor& x, const Dims& dims, bool keepdim) {
  require_reducible("count_nonzero", x, dims);
  return sum(x.dtype() == Dtype::boolean ? x : not_equal(x, 0.0), dims, keepdim);
}

Tensor nansum(const Tensor& x, const Dims& dims, bool keepdim) {
  require_reducible_floats("nansum", x, dims);
  return sum(where(is_nan(x), ops::scalar_like(0, x), x), dims, keepdim);
}

Tensor nanmean(const Tensor& x, const Dims& dims, bool keepdim) {
  require_reducible_floats("nanmean", x, dims);
  const Tensor all = ops::as_f32(x), none = is_nan(all);
  const Tensor count = cast(sum(logical_not(none), dims, keepdim), all.dtype());
  return ops::rounded(sum(where(none, ops::scalar_like(0, all), all), dims, keepdim) / count, x.dtype());
}

bool all_close(const Tensor& a, const Tensor& b, double rtol, double atol, bool equal_nan) {
  require_defined("all_close", {{"a", a}, {"b", b}});
  return a.shape() == b.shape() && all(is_close(a, b, rtol, atol, equal_nan)).item<bool>();
}

Tensor diff(const Tensor& x, int order, int dim) {
  require_defined("diff", {{"x", x}});
  const int at = require_dim("diff", x, dim);
  if (order < 0) throw Error(fmt::format("diff: the order {} is negative", order));
  Tensor result = x;
  for (int i = 0; i < order && result.size(at) > 0; ++i)
    result = slice(result, at, 1) - slice(result, at, 0, result.size(at) - 1);
  return result;
}

}  // namespace clnet
