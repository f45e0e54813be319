// Functions that pick or place elements by indices, made of gather, index_select and scatter's parts.
#include <fmt/format.h>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/graph/op.h"
#include "lib/graph/require.h"
#include "lib/ops/elementwise/elementwise.h"
#include "lib/ops/index/index_add.h"
#include "lib/ops/index/scatter.h"
#include "lib/ops/lines.h"

namespace clnet {

namespace ops {

namespace {

Tensor as_one_line(const Tensor& x) { return reshape(x, std::vector<std::int64_t>{-1}); }

/// Something of each place of a dimension, {n}, so that it broadcasts with `like`.
Tensor along(const Tensor& of_places, const Tensor& like, int dim) {
  std::vector<std::int64_t> extents(static_cast<std::size_t>(like.rank()), 1);
  extents[static_cast<std::size_t>(dim)] = of_places.numel();
  return reshape(of_places, extents);
}

/// Parts of x {batches x ..., k dimensions, rest} by lines of indices {batch dimensions, ..., k}.
struct Parts {
  std::int64_t batches = 1, places = 1, inner = 1;  ///< x as {batches places, inner}
  Tensor at;                                        ///< i64, for each line; batches * places where it is out of range
  std::vector<std::int64_t> lines, rest;            ///< extents of the lines, and of a part
};

Parts parts_of(std::string_view op, const Tensor& x, const Tensor& indices, int batch_dims) {
  require_indices(op, indices);
  const auto k = indices.rank() > 0 ? indices.size(-1) : 0;
  bool fits = batch_dims >= 0 && batch_dims < indices.rank() && k >= 1 && k <= x.rank() - batch_dims;
  for (int d = 0; fits && d < batch_dims; ++d) fits = indices.size(d) == x.size(d);
  if (!fits)
    throw ShapeError(fmt::format("{}: the last dimension of indices {} does not name dimensions of {} behind {} batch dimensions",
                                 op, to_string(indices.shape()), to_string(x.shape()), batch_dims));
  Parts parts;
  parts.lines.assign(indices.shape().begin(), indices.shape().end() - 1);
  std::vector<std::int64_t> named, strides(static_cast<std::size_t>(k), 1);
  for (int d = 0; d < x.rank(); ++d) {
    if (d < batch_dims) {
      parts.batches *= x.size(d);
    } else if (d < batch_dims + k) {
      parts.places *= x.size(d);
      named.push_back(x.size(d));
    } else {
      parts.inner *= x.size(d);
      parts.rest.push_back(x.size(d));
    }
  }
  for (auto d = strides.size() - 1; d-- > 0;) strides[d] = strides[d + 1] * named[d + 1];
  const Tensor extents = Tensor::from(named), wide = cast(indices, Dtype::i64);
  const Tensor from_start = where(less(wide, 0.0), wide + extents, wide);
  const Tensor inside = all(logical_and(greater_equal(from_start, 0.0), less(from_start, extents)), Dims{-1});
  Tensor place = sum(from_start * Tensor::from(strides), Dims{-1});
  if (batch_dims > 0) {
    std::vector<std::int64_t> batch(parts.lines.size(), 1);
    for (std::size_t d = 0; d < static_cast<std::size_t>(batch_dims); ++d) batch[d] = parts.lines[d];
    place = place + reshape(arange(parts.batches, 0, static_cast<double>(parts.places)), batch);
  }
  parts.at = as_one_line(where(inside, place, static_cast<double>(parts.batches * parts.places)));
  return parts;
}

}  // namespace

}  // namespace ops

using namespace ops;

Tensor take(const Tensor& x, const Tensor& indices) {
  require_defined("take", {{"x", x}, {"indices", indices}});
  require_indices("take", indices);
  return index_select(as_one_line(x), 0, indices);
}

Tensor take_along_dim(const Tensor& x, const Tensor& indices, std::optional<int> dim) {
  require_defined("take_along_dim", {{"x", x}, {"indices", indices}});
  require_indices("take_along_dim", indices);
  if (!dim) return gather(as_one_line(x), 0, as_one_line(indices));
  const int at = require_line("take_along_dim", x.shape(), *dim);
  const Tensor from = as_line(x), picks = as_line(indices);
  bool fits = from.rank() == picks.rank();
  auto of_x = from.shape(), of_picks = picks.shape();
  for (int d = 0; fits && d < from.rank(); ++d) {
    if (d == at) continue;
    const auto a = from.size(d), b = picks.size(d);
    fits = a == b || a == 1 || b == 1;
    of_x = of_x.with(d, a == 1 ? b : a);
    of_picks = of_picks.with(d, a == 1 ? b : a);
  }
  if (!fits)
    throw ShapeError(fmt::format("take_along_dim: indices {} do not broadcast with {} outside dimension {}",
                                 to_string(indices.shape()), to_string(x.shape()), at));
  const Tensor taken = gather(expand(from, of_x), at, expand(picks, of_picks));
  return x.rank() == 0 ? reshape(taken, indices.shape()) : taken;
}

Tensor gather_nd(const Tensor& x, const Tensor& indices, int batch_dims) {
  require_defined("gather_nd", {{"x", x}, {"indices", indices}});
  const auto parts = parts_of("gather_nd", x, indices, batch_dims);
  auto extents = parts.lines;
  extents.insert(extents.end(), parts.rest.begin(), parts.rest.end());
  return reshape(index_select(reshape(x, {parts.batches * parts.places, parts.inner}), 0, parts.at), Shape(extents));
}

Tensor scatter_nd(const Tensor& x, const Tensor& indices, const Tensor& source, std::optional<ScatterReduction> reduction) {
  constexpr std::string_view op = "scatter_nd";
  require_defined(op, {{"x", x}, {"indices", indices}, {"source", source}});
  require_same_dtype(op, x.spec(), source.spec());
  const auto parts = parts_of(op, x, indices, 0);
  auto extents = parts.lines;
  extents.insert(extents.end(), parts.rest.begin(), parts.rest.end());
  if (source.shape() != Shape(extents))
    throw ShapeError(fmt::format("{}: source {} is not {}, a part of {} for each line of indices {}", op,
                                 to_string(source.shape()), to_string(Shape(extents)), to_string(x.shape()),
                                 to_string(indices.shape())));
  if (reduction) (void)summable(op, x);
  if (reduction == ScatterReduction::mean) require_floating(fmt::format("{}'s mean", op), x.spec());
  if (source.numel() == 0) return x;
  const auto count = parts.at.numel();
  const Tensor to = reshape(x, {parts.places, parts.inner}), from = reshape(source, {count, parts.inner});
  if (!reduction) return reshape(index_copy(to, 0, parts.at, from), x.shape());
  if (*reduction == ScatterReduction::sum) return reshape(index_add(to, 0, parts.at, from), x.shape());
  const Tensor of_elements = expand(reshape(parts.at, {count, 1}), from.shape());
  return reshape(scatter_reduce(to, 0, of_elements, from, *reduction), x.shape());
}

Tensor index_fill(const Tensor& x, int dim, const Tensor& indices, double value) {
  require_defined("index_fill", {{"x", x}, {"indices", indices}});
  require_indices("index_fill", indices);
  const int at = require_line("index_fill", x.shape(), dim);
  if (indices.rank() > 1)
    throw ShapeError(fmt::format("index_fill: indices {} are neither {{n}} nor a scalar", to_string(indices.shape())));
  require_held("index_fill", value, x.dtype());
  const Tensor number = scalar_like(value, x), to = as_line(x);
  if (indices.numel() == 0) return x;
  const Tensor named = greater_equal(last_picks(as_line(indices), 0, to.size(at)), 0.0);
  return reshape(where(along(named, to, at), number, to), x.shape());
}

Tensor index_copy(const Tensor& x, int dim, const Tensor& indices, const Tensor& source) {
  require_defined("index_copy", {{"x", x}, {"indices", indices}, {"source", source}});
  require_indices("index_copy", indices);
  require_same_dtype("index_copy", x.spec(), source.spec());
  const int at = require_line("index_copy", x.shape(), dim);
  const Tensor to = as_line(x), picks = as_line(indices), from = as_line(source);
  if (picks.rank() != 1 || source.rank() != x.rank() || from.shape() != to.shape().with(at, indices.numel()))
    throw ShapeError(fmt::format("index_copy: source {} is not {} with one element at dimension {} for each of indices {}",
                                 to_string(source.shape()), to_string(x.shape()), at, to_string(indices.shape())));
  if (indices.numel() == 0) return x;
  const Tensor last = last_picks(picks, 0, to.size(at));
  const Tensor picked = index_select(from, at, maximum(last, 0.0));
  return reshape(where(along(greater_equal(last, 0.0), to, at), picked, to), x.shape());
}

}  // namespace clnet
