// The cross product, whose gradients are cross products.
#include <fmt/format.h>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/exec/launch/recorder.h"
#include "lib/graph/op.h"
#include "lib/graph/require.h"
#include "lib/ops/elementwise/elementwise.h"
#include "lib/ops/lines.h"

namespace clnet {

namespace {

/// Of vectors along a dimension of extent 3. Inputs: a and b, of one shape and dtype.
class CrossProduct : public Op {
 public:
  explicit CrossProduct(int dim) : dim_(dim) {}
  std::string_view name() const override { return "cross"; }
  Fields fields() const override { return {{"dim", std::int64_t{dim_}}}; }

  Specs infer(const Specs& inputs) const override { return {inputs[0]}; }
  Tensors vjp(const Tensors& inputs, const Tensors&, const Tensors& gradients) const override {
    const auto product = [this](const Tensor& a, const Tensor& b) { return apply(std::make_shared<CrossProduct>(dim_), {a, b}); };
    return {product(inputs[1], gradients[0]), product(gradients[0], inputs[0])};
  }
  void lower(exec::Recorder& recorder) const override {
    const ops::Lines lines(recorder.spec(recorder.output()).shape, dim_);
    if (lines.count() == 0) return;
    auto& launch = recorder.kernel("cross_product", "cross_product").define("ROUND_EACH", 1);
    if (lines.inner == 1) launch.define("DENSE", 1);
    launch.in("a", recorder.input(0)).in("b", recorder.input(1)).out("y", recorder.output());
    launch.args({lines.count(), lines.inner}).range({lines.count()}, {64}).detail(fmt::format("{} vectors", lines.count()));
  }

 private:
  int dim_;
};

}  // namespace

Tensor cross(const Tensor& a, const Tensor& b, int dim) {
  require_defined("cross", {{"a", a}, {"b", b}});
  ops::require_same_dtype("cross", a.spec(), b.spec());
  if (a.dtype() == Dtype::boolean) throw DtypeError(fmt::format("cross: needs numbers, got {}", to_string(a.spec())));
  const auto shape = broadcast(a.shape(), b.shape(), "cross");
  const Tensor x = expand(a, shape), y = expand(b, shape);
  const int at = require_dim("cross", x, dim);
  if (shape[at] != 3) throw ShapeError(fmt::format("cross: dimension {} of {} is not 3", at, to_string(shape)));
  return cast(apply(std::make_shared<CrossProduct>(at), {x, y}), a.dtype());
}

}  // namespace clnet
