// reshape and its relatives: the same elements in the same order, so nothing is copied.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/graph/op.h"
#include "lib/graph/require.h"
#include "lib/ops/hold.h"

namespace clnet {

namespace {

class Reshape : public Op {
 public:
  explicit Reshape(Shape shape) : shape_(std::move(shape)) {}
  std::string_view name() const override { return "reshape"; }
  Fields fields() const override { return {{"shape", shape_.extents()}}; }

  Specs infer(const Specs& inputs) const override {
    if (inputs[0].shape.numel() != shape_.numel())
      throw ShapeError(fmt::format("reshape: {} has {} elements, but shape {} has {}", to_string(inputs[0].shape),
                                   inputs[0].shape.numel(), to_string(shape_), shape_.numel()));
    return {{shape_, inputs[0].dtype}};
  }
  Tensors vjp(const Tensors& inputs, const Tensors&, const Tensors& gradients) const override {
    return {reshape(gradients[0], inputs[0].shape())};
  }
  std::optional<Alias> alias(const Specs&, std::size_t) const override { return Alias{}; }

 private:
  Shape shape_;
};

}  // namespace

Tensor reshape(const Tensor& x, const Shape& shape) {
  require_defined("reshape", {{"x", x}});
  return x.shape() == shape ? x : apply(std::make_shared<Reshape>(shape), {x});
}

namespace ops {
Tensor hold(const Tensor& x) { return apply(std::make_shared<Reshape>(x.shape()), {x}); }
}  // namespace ops

Tensor reshape(const Tensor& x, const std::vector<std::int64_t>& extents) {
  require_defined("reshape", {{"x", x}});
  auto known = extents;
  std::int64_t* open = nullptr;
  for (auto& extent : known) {
    if (extent != -1) continue;
    if (open) throw ShapeError(fmt::format("reshape: more than one extent of [{}] is -1", fmt::join(extents, ", ")));
    open = &extent;
  }
  if (open) {
    *open = 1;
    const auto rest = Shape(known).numel();
    if (rest == 0 || x.numel() % rest != 0)
      throw ShapeError(fmt::format("reshape: {} has {} elements, which [{}] cannot hold", to_string(x.shape()), x.numel(),
                                   fmt::join(extents, ", ")));
    *open = x.numel() / rest;
  }
  return reshape(x, Shape(std::move(known)));
}

Tensor reshape(const Tensor& x, std::initializer_list<std::int64_t> extents) {
  return reshape(x, std::vector<std::int64_t>(extents));
}

Tensor flatten(const Tensor& x, int first, int last) {
  require_defined("flatten", {{"x", x}});
  if (x.rank() == 0) return reshape(x, Shape{1});
  const int from = require_dim("flatten", x, first), to = require_dim("flatten", x, last);
  if (from > to)
    throw ShapeError(
        fmt::format("flatten: dimension {} comes after dimension {} of shape {}", first, last, to_string(x.shape())));
  std::vector<std::int64_t> extents;
  for (int d = 0; d < x.rank(); ++d) {
    if (d > from && d <= to)
      extents.back() *= x.size(d);
    else
      extents.push_back(x.size(d));
  }
  return reshape(x, Shape(std::move(extents)));
}

Tensor squeeze(const Tensor& x, int dim) {
  require_defined("squeeze", {{"x", x}});
  const int at = require_line("squeeze", x.shape(), dim);
  if (x.rank() == 0 || x.size(at) != 1) return x;
  auto extents = x.shape().extents();
  extents.erase(extents.begin() + at);
  return reshape(x, Shape(std::move(extents)));
}

Tensor unsqueeze(const Tensor& x, int dim) {
  require_defined("unsqueeze", {{"x", x}});
  if (dim < -x.rank() - 1 || dim > x.rank())
    throw ShapeError(fmt::format("unsqueeze: dimension {} is out of range for shape {}", dim, to_string(x.shape())));
  auto extents = x.shape().extents();
  extents.insert(extents.begin() + (dim < 0 ? dim + x.rank() + 1 : dim), 1);
  return reshape(x, Shape(std::move(extents)));
}

}  // namespace clnet
