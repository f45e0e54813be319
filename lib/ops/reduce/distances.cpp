// Distances and similarities of vectors, by norm() and sums.
#include <fmt/format.h>

#include <algorithm>

#include "clnet/autocast.h"
#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/graph/require.h"
#include "lib/ops/as_f32.h"
#include "lib/ops/elementwise/elementwise.h"

namespace clnet {

namespace {

/// Two floating tensors of one dtype. Throws, naming the operation, where they do not broadcast.
Shape require_pair(std::string_view op, const Tensor& a, const Tensor& b) {
  require_defined(op, {{"a", a}, {"b", b}});
  ops::require_floating(op, a.spec());
  ops::require_same_dtype(op, a.spec(), b.spec());
  return broadcast(a.shape(), b.shape(), op);
}

/// x over its norm along a dimension, in f32.
Tensor directed(const Tensor& x, double p, int dim, double eps) { return x / maximum(norm(x, p, Dims{dim}, true), eps); }

/// The square root of |x|^2 + |y|^2 - 2 x y of all rows. A distance of 0 has no gradient.
Tensor distances_by_product(const Tensor& a, const Tensor& b) {
  const Autocast as_written(Dtype::f32);
  const Tensor of_a = sum(square(a), Dims{-1}, true), of_b = unsqueeze(sum(square(b), Dims{-1}), -2);
  const Tensor squares = of_a + of_b - matmul(a, b, {.transpose_b = true}) * 2.0, apart = greater(squares, 0.0);
  return where(apart, sqrt(where(apart, squares, 1.0)), 0.0);
}

}  // namespace

Tensor distance(const Tensor& a, const Tensor& b, double p) {
  (void)require_pair("distance", a, b);
  return ops::rounded(norm(ops::as_f32(a) - ops::as_f32(b), p), a.dtype());
}

Tensor cosine_similarity(const Tensor& a, const Tensor& b, int dim, double eps) {
  const auto shape = require_pair("cosine_similarity", a, b);
  const int at = require_line("cosine_similarity", shape, dim);
  const Tensor x = directed(expand(ops::as_f32(a), shape), 2, at, eps), y = directed(expand(ops::as_f32(b), shape), 2, at, eps);
  return ops::rounded(sum(x * y, Dims{at}), a.dtype());
}

Tensor pairwise_distance(const Tensor& a, const Tensor& b, double p, double eps, bool keepdim) {
  const auto shape = require_pair("pairwise_distance", a, b);
  if (shape.rank() == 0) throw ShapeError("pairwise_distance: scalars have no last dimension");
  return ops::rounded(norm(ops::as_f32(a) - ops::as_f32(b) + eps, p, Dims{-1}, keepdim), a.dtype());
}

Tensor cdist(const Tensor& a, const Tensor& b, double p) {
  require_defined("cdist", {{"a", a}, {"b", b}});
  ops::require_floating("cdist", a.spec());
  ops::require_same_dtype("cdist", a.spec(), b.spec());
  if (a.rank() < 2 || b.rank() < 2 || a.size(-1) != b.size(-1))
    throw ShapeError(
        fmt::format("cdist: {} and {} are not {{..., M, K}} and {{..., N, K}}", to_string(a.spec()), to_string(b.spec())));
  // As PyTorch, which takes the product from so many rows on.
  constexpr std::int64_t few_rows = 25;
  if (p == 2 && (a.size(-2) > few_rows || b.size(-2) > few_rows) && a.size(-1) > 0)
    return ops::rounded(distances_by_product(ops::as_f32(a), ops::as_f32(b)), a.dtype());
  const Tensor x = unsqueeze(ops::as_f32(a), -2), y = unsqueeze(ops::as_f32(b), -3);
  // Rows in parts, where all differences together would be too many for one tensor.
  const int rows_at = x.rank() - 3;
  const auto per_row = broadcast(x.shape().with(rows_at, 1), y.shape(), "cdist").numel();
  constexpr std::int64_t most = std::int64_t{1} << 28;
  if (const auto rows = a.size(-2); per_row > 0 && rows > std::max<std::int64_t>(1, most / per_row)) {
    std::vector<Tensor> parts;
    for (const auto& part : split(x, std::max<std::int64_t>(1, most / per_row), rows_at))
      parts.push_back(norm(part - y, p, Dims{-1}));
    return ops::rounded(concat(parts, -2), a.dtype());
  }
  return ops::rounded(norm(x - y, p, Dims{-1}), a.dtype());
}

Tensor normalize(const Tensor& x, double p, int dim, double eps) {
  require_defined("normalize", {{"x", x}});
  ops::require_floating("normalize", x.spec());
  return ops::rounded(directed(ops::as_f32(x), p, require_dim("normalize", x, dim), eps), x.dtype());
}

}  // namespace clnet
