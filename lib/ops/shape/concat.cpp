// concat and stack.
#include <fmt/format.h>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/graph/op.h"
#include "lib/graph/require.h"
#include "lib/ops/elementwise/elementwise.h"
#include "lib/ops/shape/strided_copy.h"

namespace clnet {

namespace {

class Concat : public Op {
 public:
  explicit Concat(int dim) : dim_(dim) {}
  std::string_view name() const override { return "concat"; }
  Fields fields() const override { return {{"dim", std::int64_t{dim_}}}; }

  Specs infer(const Specs& inputs) const override {
    std::int64_t extent = 0;
    for (const auto& input : inputs) {
      ops::require_same_dtype(name(), inputs[0], input);
      if (input.shape.rank() != inputs[0].shape.rank() || input.shape.with(dim_, 0) != inputs[0].shape.with(dim_, 0))
        throw ShapeError(fmt::format("concat: {} and {} differ in more than dimension {}", to_string(inputs[0].shape),
                                     to_string(input.shape), dim_));
      extent += input.shape[dim_];
    }
    return {{inputs[0].shape.with(dim_, extent), inputs[0].dtype}};
  }
  Tensors vjp(const Tensors& inputs, const Tensors&, const Tensors& gradients) const override {
    std::vector<std::int64_t> lengths;
    for (const auto& input : inputs) lengths.push_back(input.size(dim_));
    return split(gradients[0], lengths, dim_);
  }
  void lower(exec::Recorder& recorder) const override {
    const auto& all = recorder.spec(recorder.output()).shape;
    const auto inner = ops::strides_of(all)[static_cast<std::size_t>(dim_)], row = inner * all[dim_];
    const auto outer = row == 0 ? 0 : all.numel() / row;
    auto to = recorder.output();
    for (std::size_t k = 0; k < recorder.input_count(); ++k) {
      const auto block = recorder.spec(recorder.input(k)).shape[dim_] * inner;
      ops::strided_copy({recorder.input(k), to, {{outer, block, row}, {block, 1, 1}}}, recorder);
      to = to.at(block);
    }
  }

 private:
  int dim_;
};

}  // namespace

Tensor concat(const std::vector<Tensor>& tensors, int dim) {
  require_defined("concat", "tensors", tensors);
  if (tensors.empty()) throw Error("concat: no tensors were given");
  const int at = require_dim("concat", tensors[0], dim);
  return tensors.size() == 1 ? tensors[0] : clnet::apply(std::make_shared<Concat>(at), tensors);
}

Tensor stack(const std::vector<Tensor>& tensors, int dim) {
  require_defined("stack", "tensors", tensors);
  if (tensors.empty()) throw Error("stack: no tensors were given");
  const int rank = tensors[0].rank();
  if (dim < -rank - 1 || dim > rank)
    throw ShapeError(fmt::format("stack: dimension {} is out of range for shape {}", dim, to_string(tensors[0].shape())));
  std::vector<Tensor> thicker;
  for (const auto& tensor : tensors) {
    if (tensor.shape() != tensors[0].shape())
      throw ShapeError(fmt::format("stack: shapes {} and {} differ", to_string(tensors[0].shape()), to_string(tensor.shape())));
    thicker.push_back(unsqueeze(tensor, dim));
  }
  return concat(thicker, dim < 0 ? dim + rank + 1 : dim);
}

}  // namespace clnet
