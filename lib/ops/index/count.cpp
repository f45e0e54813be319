// Counts of equal elements and of elements in ranges: bincount and histc.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/graph/require.h"
#include "lib/ops/as_f32.h"
#include "lib/ops/elementwise/elementwise.h"
#include "lib/ops/index/index_add.h"
#include "lib/ops/index/known.h"
#include "lib/ops/index/scatter.h"

namespace clnet {

using namespace ops;

Tensor bincount(const Tensor& x, const Tensor& weights, std::int64_t min_length, std::optional<std::int64_t> length) {
  constexpr std::string_view op = "bincount";
  require_defined(op, {{"x", x}});
  require_indices(op, x);
  if (x.rank() != 1 || (weights.defined() && weights.shape() != x.shape()))
    throw ShapeError(fmt::format("{}: x {} and weights must be of one shape {{n}}", op, to_string(x.shape())));
  const auto given = length.value_or(min_length);
  if (given < 0) throw ShapeError(fmt::format("{}: a length of {}", op, given));
  const Tensor added = weights.defined() ? summable(op, weights) : Tensor{};
  const auto dtype = weights.defined() ? computed_in(weights.dtype()) : Dtype::i64;
  auto places = given;
  if (!length) {
    require_known(op);
    const auto values = x.to_vector<std::int64_t>();
    for (const auto value : values) {
      if (value < 0) throw Error(fmt::format("{}: element {} is negative", op, value));
      if (value >= std::numeric_limits<std::int32_t>::max())
        throw ShapeError(fmt::format("{}: element {} is too large", op, value));
      places = std::max(places, value + 1);
    }
    if (!weights.defined()) {
      std::vector<std::int64_t> counts(static_cast<std::size_t>(places));
      for (const auto value : values) ++counts[static_cast<std::size_t>(value)];
      return Tensor::from(counts);
    }
  }
  if (places == 0 || x.numel() == 0) return zeros({places}, dtype);
  // A negative index counts from the end elsewhere: it leads out of range here.
  const Tensor at = where(less(x, 0.0), scalar_like(static_cast<double>(places), x), x);
  return cast(added_at(weights.defined() ? added : ones(x.shape(), Dtype::i64), 0, at, false, {places}), dtype);
}

Tensor histc(const Tensor& x, std::int64_t bins, double low, double high) {
  require_defined("histc", {{"x", x}});
  require_floating("histc", x.spec());
  if (bins < 1) throw ShapeError(fmt::format("histc: {} bins", bins));
  if (!(low <= high)) throw Error(fmt::format("histc: the range {} to {} does not ascend", low, high));
  if (!std::isfinite(low) || !std::isfinite(high)) throw Error(fmt::format("histc: the range {} to {} is not finite", low, high));
  if (x.numel() == 0) return zeros({bins}, x.dtype());
  const Tensor values = reshape(as_f32(stop_gradient(x)), std::vector<std::int64_t>{-1});
  Tensor first = full({}, low, values.dtype()), last = full({}, high, values.dtype());
  if (low == high) {
    first = min(values);
    last = max(values);
    const Tensor equal_ends = eq(first, last);
    first = where(equal_ends, first - 1.0, first);
    last = where(equal_ends, last + 1.0, last);
  }
  const Tensor inside = logical_and(greater_equal(values, first), less_equal(values, last));
  const Tensor part = (values - first) * static_cast<double>(bins) / (last - first);
  // Within an infinite range infinities have no bin.
  const Tensor counted = logical_and(inside, is_finite(part));
  const Tensor bin = cast(minimum(where(counted, part, 0.0), static_cast<double>(bins - 1)), Dtype::i32);
  // What is not counted adds 0: ONNX has no index outside.
  return cast(added_at(cast(counted, Dtype::i32), 0, bin, false, {bins}), x.dtype());
}

}  // namespace clnet
