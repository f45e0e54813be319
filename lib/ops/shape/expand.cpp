// expand: x repeated along dimensions of extent 1, and along new ones in front.
#include <fmt/format.h>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/graph/op.h"
#include "lib/graph/require.h"

namespace clnet {

namespace {

class Expand : public Op {
 public:
  explicit Expand(Shape shape) : shape_(std::move(shape)) {}
  std::string_view name() const override { return "expand"; }
  Fields fields() const override { return {{"shape", shape_.extents()}}; }

  Specs infer(const Specs& inputs) const override {
    const auto& from = inputs[0].shape;
    bool fits = from.rank() <= shape_.rank();
    for (int back = 1; back <= from.rank() && fits; ++back) fits = from[-back] == 1 || from[-back] == shape_[-back];
    if (!fits) throw ShapeError(fmt::format("expand: shape {} cannot become {}", to_string(from), to_string(shape_)));
    return {{shape_, inputs[0].dtype}};
  }
  // The lowering of elementwise operations broadcasts.
  Expression expr(const Specs&) const override { return {"a"}; }
  Tensors vjp(const Tensors& inputs, const Tensors&, const Tensors& gradients) const override {
    return {sum_to(gradients[0], inputs[0].shape())};
  }

 private:
  Shape shape_;
};

}  // namespace

Tensor expand(const Tensor& x, const Shape& shape) {
  require_defined("expand", {{"x", x}});
  return x.shape() == shape ? x : apply(std::make_shared<Expand>(shape), {x});
}

}  // namespace clnet
