// slice_update and narrow: slices whose place is a value.
#include <fmt/format.h>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/exec/launch/recorder.h"
#include "lib/graph/op.h"
#include "lib/graph/require.h"
#include "lib/ops/elementwise/elementwise.h"
#include "lib/ops/shape/strided_copy.h"

namespace clnet {

namespace ops {

namespace {

/// Inputs: x, what replaces a slice of it, and where that begins.
class SliceUpdate : public Op {
 public:
  explicit SliceUpdate(int dim) : dim_(dim) {}
  std::string_view name() const override { return "slice_update"; }
  Fields fields() const override { return {{"dim", std::int64_t{dim_}}}; }
  Specs infer(const Specs& inputs) const override { return {inputs[0]}; }
  Tensors vjp(const Tensors& inputs, const Tensors&, const Tensors& gradients) const override {
    const auto &g = gradients[0], &start = inputs[2], &value = inputs[1];
    return {slice_update(g, dim_, start, zeros_like(value)), slice_if_inside(g, start, value.size(dim_)), Tensor{}};
  }
  void lower(exec::Recorder& recorder) const override {
    const auto &to = recorder.spec(recorder.output()).shape, &value = recorder.spec(recorder.input(1)).shape;
    if (to.numel() == 0) return;
    std::int64_t inner = 1;
    for (int d = dim_ + 1; d < to.rank(); ++d) inner *= to[d];
    const auto add = [&](const char* function, std::int64_t elements) -> exec::Launch& {
      const auto lines = elements / inner, rows = rows_per_item(lines, inner, recorder.device());
      auto& launch = recorder.kernel("slice_update", function);
      if (rows > 0)
        launch.define("ROWS", 1).range({(lines + rows - 1) / rows}, {1});
      else
        launch.range({elements}, {64});
      // One program for both.
      for (const auto* name : {"TYPE_x", "TYPE_y"}) launch.define(name, to_string(recorder.spec(recorder.output()).dtype));
      return launch.detail(fmt::format("{} of {}", to_string(value), to_string(to))).args({elements, rows});
    };
    const auto finish = [&](exec::Launch& launch) -> exec::Launch& {
      launch.in("value", recorder.input(1));
      if (recorder.host_scalar(2))
        launch.define("START_KNOWN", 1).scalar("start", recorder.input(2));
      else
        launch.in("start", recorder.input(2));
      return launch.args({to[dim_], value[dim_], inner});
    };
    const auto y = recorder.output();
    finish(add("slice_update", to.numel()).in("x", recorder.input(0), exec::Access::same_element).out("y", y)).unless_in_place(y);
    // Where x lies there already, as a cache that grows does, only the slice is written.
    finish(add("slice_update_in_place", value.numel()).inout("y", y)).if_in_place(y);
  }

 private:
  /// What is outside was not written: its gradient is 0, where narrow() gives NaN.
  Tensor slice_if_inside(const Tensor& g, const Tensor& start, std::int64_t length) const {
    std::vector<std::int64_t> extents(static_cast<std::size_t>(g.rank() - dim_), 1);
    extents[0] = length;
    const Tensor places = reshape(arange(length) + cast(start, Dtype::i64), Shape(extents));
    const Tensor inside = logical_and(greater_equal(places, 0.0), less(places, static_cast<double>(g.size(dim_))));
    return where(inside, narrow(g, dim_, start, length), scalar_like(0, g));
  }

  int dim_;
};

void require_inside(std::string_view op, const Tensor& x, int dim, std::int64_t start, std::int64_t length) {
  const auto extent = x.size(require_dim(op, x, dim));
  if (start < 0 || length < 0 || start > extent || length > extent - start)
    throw ShapeError(
        fmt::format("{}: {} elements from {} on are not in dimension {} of {}", op, length, start, dim, to_string(x.shape())));
}

}  // namespace

}  // namespace ops

Tensor slice_update(const Tensor& x, int dim, const Tensor& start, const Tensor& value) {
  require_defined("slice_update", {{"x", x}, {"start", start}, {"value", value}});
  require_start("slice_update", start);
  ops::require_same_dtype("slice_update", x.spec(), value.spec());
  const int at = require_dim("slice_update", x, dim);
  if (value.rank() != x.rank() || value.shape().with(at, x.size(at)) != x.shape() || value.size(at) > x.size(at))
    throw ShapeError(
        fmt::format("slice_update: {} is no slice of {} along dimension {}", to_string(value.shape()), to_string(x.shape()), at));
  return apply(std::make_shared<ops::SliceUpdate>(at), {x, value, start.rank() == 0 ? start : reshape(start, Shape{})});
}

Tensor slice_update(const Tensor& x, int dim, std::int64_t start, const Tensor& value) {
  require_defined("slice_update", {{"x", x}, {"value", value}});
  const int at = require_dim("slice_update", x, dim);
  if (value.rank() == x.rank()) ops::require_inside("slice_update", x, at, start, value.size(at));
  return slice_update(x, dim, Tensor::scalar(static_cast<double>(start), Dtype::i64), value);
}

Tensor narrow(const Tensor& x, int dim, const Tensor& start, std::int64_t length) {
  require_defined("narrow", {{"x", x}, {"start", start}});
  require_start("narrow", start);
  const int at = require_dim("narrow", x, dim);
  if (length < 0 || length > x.size(at))
    throw ShapeError(fmt::format("narrow: {} elements are not in dimension {} of {}", length, at, to_string(x.shape())));
  const Tensor places = arange(length) + cast(reshape(start, Shape{}), Dtype::i64);
  // Negative ones would count from the end.
  const auto extent = static_cast<double>(x.size(at));
  return index_select(x, at, where(less(places, 0.0), Tensor::scalar(extent, Dtype::i64), places));
}

Tensor narrow(const Tensor& x, int dim, std::int64_t start, std::int64_t length) {
  require_defined("narrow", {{"x", x}});
  ops::require_inside("narrow", x, dim, start, length);
  return index_select(x, dim, arange(length) + Tensor::scalar(static_cast<double>(start), Dtype::i64));
}

}  // namespace clnet
