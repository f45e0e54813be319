// What is found by the order of elements: medians, quantiles, modes. They pick elements by index, so that gradients are gather's.
#include <fmt/format.h>

#include <cmath>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/graph/require.h"
#include "lib/ops/as_f32.h"
#include "lib/ops/elementwise/elementwise.h"
#include "lib/ops/lines.h"

namespace clnet {

namespace ops {

namespace {

/// Lines of at least one element along a dimension from 0 on.
struct OrderedLines {
  Tensor x, order;
  int dim;
  std::int64_t extent;
};

OrderedLines ordered_lines(std::string_view op, const Tensor& x, int dim) {
  const int at = require_line(op, x.shape(), dim);
  const Tensor line = as_line(x);
  if (line.size(at) == 0)
    throw ShapeError(fmt::format("{}: there are no elements along dimension {} of {}", op, at, to_string(x.shape())));
  return {line, argsort(line, at), at, line.size(at)};
}

/// The elements at `indices`, of extent 1 along the dimension.
SortResult picked_at(const Tensor& x, const OrderedLines& lines, const Tensor& indices, bool keepdim) {
  const Tensor values = gather(lines.x, lines.dim, indices);
  if (x.rank() == 0) return {reshape(values, x.shape()), reshape(indices, x.shape())};
  if (keepdim) return {values, indices};
  return {squeeze(values, lines.dim), squeeze(indices, lines.dim)};
}

Tensor nan_count(const OrderedLines& lines) { return sum(is_nan(lines.x), lines.dim, true); }

/// `ignores`: NaN does not count; otherwise the median of a line with NaN is the first NaN.
SortResult median_of(std::string_view op, const Tensor& x, int dim, bool keepdim, bool ignores) {
  require_defined(op, {{"x", x}});
  const auto lines = ordered_lines(op, x, dim);
  const auto middle = (lines.extent - 1) / 2;
  if (!is_floating(x.dtype())) return picked_at(x, lines, slice(lines.order, lines.dim, middle, middle + 1), keepdim);
  if (ignores) {
    const Tensor place = maximum(static_cast<double>(lines.extent - 1) - nan_count(lines), 0.0) / 2.0;
    return picked_at(x, lines, gather(lines.order, lines.dim, cast(place, Dtype::i64)), keepdim);
  }
  const Tensor nan = is_nan(lines.x), first = argmax(cast(nan, Dtype::i32), lines.dim, true);
  const Tensor place = where(any(nan, lines.dim, true), first, slice(lines.order, lines.dim, middle, middle + 1));
  return picked_at(x, lines, place, keepdim);
}

/// Places of two neighbours in order; without a share it is the lower one.
struct QuantilePlaces {
  Tensor lower, upper, share;
};

/// The places below and above `rank`, of any shape in f32, and the upper one's share.
QuantilePlaces interpolated_places(const Tensor& rank, QuantileInterpolation interpolation) {
  const Tensor below = floor(rank), above = ceil(rank);
  const auto whole = [](const Tensor& t) { return cast(t, Dtype::i64); };
  switch (interpolation) {
    case QuantileInterpolation::lower: return {whole(below), whole(below), {}};
    case QuantileInterpolation::higher: return {whole(above), whole(above), {}};
    case QuantileInterpolation::nearest: return {whole(round(rank)), whole(round(rank)), {}};
    case QuantileInterpolation::midpoint:
      return {whole(below), whole(above), where(eq(below, above), 0.0, full({}, 0.5, rank.dtype()))};
    default: return {whole(below), whole(above), rank - below};
  }
}

/// {q's extent, ...} for q {n} in f32, or f64 as x. `ignores`: NaN does not count; otherwise a line with NaN has NaN.
Tensor quantiles(std::string_view op, const Tensor& x, const Tensor& q, std::optional<int> dim, bool keepdim,
                 QuantileInterpolation interpolation, bool ignores) {
  require_defined(op, {{"x", x}});
  require_floating(op, x.spec());
  const Tensor wide = as_f32(x);
  const auto lines = ordered_lines(op, dim ? wide : reshape(wide, std::vector<std::int64_t>{-1}), dim.value_or(0));
  constexpr std::int64_t most = 1 << 24;
  if (lines.extent > most) throw Unsupported(fmt::format("{}: {} elements; f32 counts {}", op, lines.extent, most));
  const Tensor sorted = gather(lines.x, lines.dim, lines.order), nans = nan_count(lines);
  const auto extents = sorted.shape().with(lines.dim, q.numel());
  std::vector<std::int64_t> places(static_cast<std::size_t>(sorted.rank()), 1);
  places[static_cast<std::size_t>(lines.dim)] = q.numel();
  const Tensor parts = reshape(q.dtype() == wide.dtype() ? q : cast(q, wide.dtype()), places);
  // As PyTorch computes it, in the dtype of x.
  const Tensor last = ignores ? maximum(static_cast<double>(lines.extent - 1) - cast(nans, wide.dtype()), 0.0)
                              : full({}, static_cast<double>(lines.extent - 1), wide.dtype());
  const auto [lower, upper, share] = interpolated_places(expand(parts * last, extents), interpolation);
  Tensor result = gather(sorted, lines.dim, lower);
  if (share.defined()) {
    const Tensor above = gather(sorted, lines.dim, upper);
    // Between equal infinities there is no distance, and none from an infinity that has no share.
    const Tensor infinite = logical_and(eq(result, above), eq(abs(result), HUGE_VAL));
    const Tensor same = logical_or(eq(share, 0.0), infinite);
    const Tensor distance = where(same, scalar_like(0, above), above - result);
    // From the nearer end, as PyTorch's lerp().
    result = where(less(share, 0.5), result + share * distance, above - (1.0 - share) * distance);
  }
  if (!ignores) result = where(greater(nans, 0.0), static_cast<double>(NAN), result);
  // The q's dimension to the front, and an extent of 1 in its place.
  std::vector<int> order{lines.dim};
  auto kept = extents.with(lines.dim, 1).extents();
  for (int d = 0; d < sorted.rank(); ++d)
    if (d != lines.dim) order.push_back(d);
  if (!dim) kept.assign(static_cast<std::size_t>(x.rank()), 1);
  if (x.rank() == 0) kept.clear();
  if (!keepdim && !dim) kept.clear();
  if (!keepdim && dim && x.rank() > 0) kept.erase(kept.begin() + lines.dim);
  kept.insert(kept.begin(), q.numel());
  return rounded(reshape(permute(result, order), Shape(kept)), x.dtype());
}

Tensor quantiles(std::string_view op, const Tensor& x, const std::vector<double>& q, std::optional<int> dim, bool keepdim,
                 QuantileInterpolation interpolation, bool ignores) {
  for (const double part : q)
    if (!(part >= 0 && part <= 1)) throw Error(fmt::format("{}: q {} is not within 0..1", op, part));
  const auto dtype = x.defined() && x.dtype() == Dtype::f64 ? Dtype::f64 : Dtype::f32;
  return quantiles(op, x, Tensor::from(q, {static_cast<std::int64_t>(q.size())}, dtype), dim, keepdim, interpolation, ignores);
}

Tensor one_quantile(const Tensor& of_one) {
  const auto& shape = of_one.shape();
  return reshape(of_one, Shape(std::vector<std::int64_t>(shape.begin() + 1, shape.end())));
}

/// For q {} or {n} that may have a gradient.
Tensor quantiles_of_tensor(std::string_view op, const Tensor& x, const Tensor& q, std::optional<int> dim, bool keepdim,
                           QuantileInterpolation interpolation, bool ignores) {
  require_defined(op, {{"x", x}, {"q", q}});
  require_floating(op, x.spec());
  require_same_dtype(op, x.spec(), q.spec());
  if (q.rank() > 1) throw ShapeError(fmt::format("{}: q {} is neither a number nor a vector", op, to_string(q.spec())));
  const Tensor line = as_line(as_f32(q)), inside = logical_and(greater_equal(line, 0.0), less_equal(line, 1.0));
  const Tensor all = quantiles(op, x, where(inside, line, 0.0), dim, keepdim, interpolation, ignores);
  std::vector<std::int64_t> places(static_cast<std::size_t>(all.rank()), 1);
  places.front() = line.numel();
  const Tensor result = where(reshape(inside, places), all, scalar_like(static_cast<double>(NAN), all));
  return q.rank() == 0 ? one_quantile(result) : result;
}

}  // namespace

}  // namespace ops

using namespace ops;

Tensor msort(const Tensor& x) {
  require_defined("msort", {{"x", x}});
  return sort(x, 0).values;
}

SortResult kthvalue(const Tensor& x, std::int64_t k, int dim, bool keepdim) {
  require_defined("kthvalue", {{"x", x}});
  const int at = require_line("kthvalue", x.shape(), dim);
  const auto extent = as_line(x).size(at);
  if (k < 1 || k > extent) throw ShapeError(fmt::format("kthvalue: element {} of {} along dimension {}", k, extent, dim));
  const auto lines = ordered_lines("kthvalue", x, dim);
  return picked_at(x, lines, slice(lines.order, lines.dim, k - 1, k), keepdim);
}

SortResult median(const Tensor& x, int dim, bool keepdim) { return median_of("median", x, dim, keepdim, false); }
SortResult nanmedian(const Tensor& x, int dim, bool keepdim) { return median_of("nanmedian", x, dim, keepdim, true); }

Tensor median(const Tensor& x) {
  require_defined("median", {{"x", x}});
  return median(reshape(x, std::vector<std::int64_t>{-1}), 0).values;
}

SortResult mode(const Tensor& x, int dim, bool keepdim) {
  require_defined("mode", {{"x", x}});
  const auto lines = ordered_lines("mode", x, dim);
  // How many elements of its run each one in order ends; the first of the largest numbers ends the run.
  const Tensor sorted = gather(lines.x, lines.dim, lines.order);
  std::vector<std::int64_t> extents(static_cast<std::size_t>(sorted.rank()), 1);
  extents[static_cast<std::size_t>(lines.dim)] = lines.extent;
  const Tensor places = reshape(arange(lines.extent, 0, 1, Dtype::i32), extents);
  const Tensor begins = logical_or(not_equal(sorted, roll(sorted, {1}, lines.dim)), eq(places, 0.0));
  const Tensor length = places - cummax(where(begins, places, scalar_like(0, places)), lines.dim).values;
  return picked_at(x, lines, gather(lines.order, lines.dim, argmax(length, lines.dim, true)), keepdim);
}

Tensor quantile(const Tensor& x, double q, std::optional<int> dim, bool keepdim, QuantileInterpolation interpolation) {
  return one_quantile(quantiles("quantile", x, {q}, dim, keepdim, interpolation, false));
}

Tensor quantile(const Tensor& x, const std::vector<double>& q, std::optional<int> dim, bool keepdim,
                QuantileInterpolation interpolation) {
  return quantiles("quantile", x, q, dim, keepdim, interpolation, false);
}

Tensor nanquantile(const Tensor& x, double q, std::optional<int> dim, bool keepdim, QuantileInterpolation interpolation) {
  return one_quantile(quantiles("nanquantile", x, {q}, dim, keepdim, interpolation, true));
}

Tensor nanquantile(const Tensor& x, const std::vector<double>& q, std::optional<int> dim, bool keepdim,
                   QuantileInterpolation interpolation) {
  return quantiles("nanquantile", x, q, dim, keepdim, interpolation, true);
}

Tensor quantile(const Tensor& x, const Tensor& q, std::optional<int> dim, bool keepdim, QuantileInterpolation interpolation) {
  return quantiles_of_tensor("quantile", x, q, dim, keepdim, interpolation, false);
}

Tensor nanquantile(const Tensor& x, const Tensor& q, std::optional<int> dim, bool keepdim, QuantileInterpolation interpolation) {
  return quantiles_of_tensor("nanquantile", x, q, dim, keepdim, interpolation, true);
}

}  // namespace clnet
