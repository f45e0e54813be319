// Places among sorted values: searchsorted, bucketize and isin.
#include <fmt/format.h>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/exec/launch/recorder.h"
#include "lib/graph/op.h"
#include "lib/graph/require.h"
#include "lib/ops/elementwise/elementwise.h"

namespace clnet {

namespace ops {

namespace {

/// Inputs: sorted {n}, one line for all values; or lines, of the values' extents before the last one. Then the values.
class SearchSorted : public Op {
 public:
  explicit SearchSorted(bool right) : right_(right) {}
  std::string_view name() const override { return "searchsorted"; }
  Fields fields() const override { return {{"right", right_}}; }

  Specs infer(const Specs& inputs) const override { return {{inputs[1].shape, Dtype::i64}}; }
  Tensors vjp(const Tensors&, const Tensors&, const Tensors&) const override { return Tensors(2); }
  void lower(exec::Recorder& recorder) const override {
    const auto &sorted = recorder.spec(recorder.input(0)).shape, &values = recorder.spec(recorder.input(1)).shape;
    const auto all = values.numel(), extent = sorted[-1], count = sorted.rank() == 1 ? all : values[-1];
    auto& launch = recorder.kernel("searchsorted", "searchsorted").in("sorted", recorder.input(0));
    launch.in("values", recorder.input(1)).out("y", recorder.output()).args({all, count, extent});
    if (right_) launch.define("RIGHT", 1);
    launch.range({all}, {64}).detail(fmt::format("{} among {}", all, extent));
  }

 private:
  bool right_;
};

Tensor places_among(std::string_view op, const Tensor& sorted, const Tensor& values, bool right) {
  require_same_dtype(op, sorted.spec(), values.spec());
  const auto &lines = sorted.shape(), &of = values.shape();
  const bool fits = lines.rank() == 1 || (lines.rank() > 1 && lines.rank() == of.rank() && lines.with(-1, of[-1]) == of);
  if (!fits)
    throw ShapeError(fmt::format("{}: sorted {} is neither one line, nor a line for each of those of {}", op, to_string(lines),
                                 to_string(of)));
  if (of.numel() == 0 || lines.numel() == 0) return zeros(of, Dtype::i64);
  return apply(std::make_shared<SearchSorted>(right), {sorted, values});
}

}  // namespace

}  // namespace ops

Tensor searchsorted(const Tensor& sorted, const Tensor& values, bool right) {
  require_defined("searchsorted", {{"sorted", sorted}, {"values", values}});
  return ops::places_among("searchsorted", sorted, values, right);
}

Tensor bucketize(const Tensor& x, const Tensor& boundaries, bool right) {
  require_defined("bucketize", {{"x", x}, {"boundaries", boundaries}});
  if (boundaries.rank() != 1)
    throw ShapeError(fmt::format("bucketize: boundaries {} are not one line", to_string(boundaries.shape())));
  return ops::places_among("bucketize", boundaries, x, right);
}

Tensor isin(const Tensor& x, const Tensor& values, bool invert) {
  require_defined("isin", {{"x", x}, {"values", values}});
  ops::require_same_dtype("isin", x.spec(), values.spec());
  if (x.numel() == 0 || values.numel() == 0) return full(x.shape(), invert ? 1 : 0, Dtype::boolean);
  const Tensor sorted = sort(reshape(values, std::vector<std::int64_t>{-1}), 0).values;
  // The last place has a value to compare with, too: no element of x is beyond it and equal to it.
  const Tensor place = minimum(searchsorted(sorted, x), static_cast<double>(values.numel() - 1));
  const Tensor found = index_select(sorted, 0, place);
  return invert ? not_equal(found, x) : eq(found, x);
}

}  // namespace clnet
