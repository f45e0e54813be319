// cumprod, as a linear recurrence: its gradient is one from the other end, which divides by nothing.
#include <fmt/format.h>

#include <algorithm>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/exec/launch/recorder.h"
#include "lib/graph/op.h"
#include "lib/graph/require.h"
#include "lib/ops/as_f32.h"
#include "lib/ops/elementwise/elementwise.h"
#include "lib/ops/lines.h"
#include "lib/ops/reduce/linear_scan.h"

namespace clnet {

namespace ops {

namespace {

/// y[i] = a[i] y[i - 1] + b[i] along a dimension, y[0] being b[0]; `backwards`: from the other end. Inputs a, b of one shape;
/// f32, or i64, which has no gradient.
class LinearScan : public Op {
 public:
  LinearScan(int dim, bool backwards) : dim_(dim), backwards_(backwards) {}
  std::string_view name() const override { return "linear_scan"; }
  Precision precision() const override { return Precision::full; }
  Fields fields() const override { return {{"dim", std::int64_t{dim_}}, {"backwards", backwards_}}; }

  Specs infer(const Specs& inputs) const override { return {inputs[1]}; }

  Tensors vjp(const Tensors& inputs, const Tensors& outputs, const Tensors& gradients) const override {
    // y[i] counts in itself and, a[i + 1] times, in what follows. The first a is read by nobody, here as well.
    const auto& y = outputs[0];
    const auto last = y.size(dim_) - 1;
    const Tensor next = roll(inputs[0], {backwards_ ? 1 : -1}, dim_);
    const Tensor all = apply(std::make_shared<LinearScan>(dim_, !backwards_), {next, gradients[0]});
    std::vector<std::int64_t> before(static_cast<std::size_t>(y.rank())), after = before;
    (backwards_ ? after : before)[static_cast<std::size_t>(dim_)] = 1;
    const Tensor previous = backwards_ ? slice(y, dim_, 1) : slice(y, dim_, 0, last);
    return {all * pad(previous, before, after), all};
  }

  void lower(exec::Recorder& recorder) const override {
    const auto& spec = recorder.spec(recorder.output());
    if (spec.shape.numel() == 0) return;
    const Lines lines(spec.shape, dim_);
    in_pieces(lines.extent, [&](std::int64_t begin, std::int64_t end) {
      auto& launch = recorder.kernel("linear_scan", "linear_scan").in("a", recorder.input(0)).in("b", recorder.input(1));
      if (spec.dtype == Dtype::i64) launch.define("WHOLE", 1);
      begin == 0 ? launch.out("y", recorder.output()) : launch.inout("y", recorder.output());
      launch.args({lines.count(), lines.extent, lines.inner}).arg(backwards_).args({begin, end});
      launch.range({lines.count()}, {64}).detail(to_string(spec.shape));
    });
  }

 private:
  int dim_;
  bool backwards_;
};

}  // namespace

Tensor linear_scan(const Tensor& a, const Tensor& b, int dim, bool backwards) {
  return apply(std::make_shared<LinearScan>(dim, backwards), {a, b});
}

}  // namespace ops

Tensor cumprod(const Tensor& x, int dim) {
  require_defined("cumprod", {{"x", x}});
  const int at = require_line("cumprod", x.shape(), dim);
  const Tensor line = ops::as_line(x), factors = is_floating(x.dtype()) ? ops::as_f32(line) : cast(line, Dtype::i64);
  std::vector<std::int64_t> places(static_cast<std::size_t>(line.rank()), 1);
  places[static_cast<std::size_t>(at)] = line.size(at);
  const Tensor first = eq(reshape(arange(line.size(at)), Shape(places)), 0.0);
  const Tensor start = where(first, factors, ops::scalar_like(0, factors));
  return reshape(cast(ops::linear_scan(factors, start, at, false), is_floating(x.dtype()) ? x.dtype() : Dtype::i64), x.shape());
}

Tensor vander(const Tensor& x, std::optional<std::int64_t> n, bool increasing) {
  require_defined("vander", {{"x", x}});
  const Tensor line = ops::as_line(x);
  const auto powers = n.value_or(line.size(-1));
  if (powers < 0) throw ShapeError(fmt::format("vander: {} powers", powers));
  auto extents = line.shape().extents();
  extents.push_back(std::max<std::int64_t>(powers - 1, 0));
  const auto dtype = is_floating(x.dtype()) ? x.dtype() : Dtype::i64;
  const Tensor ahead = unsqueeze(ones_like(line), -1), rest = expand(unsqueeze(line, -1), shape_of("vander", extents));
  const Tensor rising = powers == 0 ? cast(rest, dtype) : cumprod(concat({ahead, rest}, -1), -1);
  return increasing ? rising : flip(rising, {-1});
}

}  // namespace clnet
