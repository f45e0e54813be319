// concat and stack.
#include <fmt/format.h>

#include <algorithm>

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
  FusionHints fusion(const Specs& inputs) const override {
    const auto& shape = inputs[0].shape;
    return {.joins_inputs = std::all_of(shape.begin(), shape.begin() + dim_, [](auto extent) { return extent == 1; })};
  }
  void lower(exec::Recorder& recorder) const override {
    const auto& all = recorder.spec(recorder.output()).shape;
    const auto inner = ops::strides_of(all)[static_cast<std::size_t>(dim_)], row = inner * all[dim_];
    const auto outer = row == 0 ? 0 : all.numel() / row;
    if (outer > 1 && recorder.device().prefers_vector_kernels) return lower_rows(recorder, outer, row, inner);
    auto to = recorder.output();
    for (std::size_t k = 0; k < recorder.input_count(); ++k) {
      const auto block = recorder.spec(recorder.input(k)).shape[dim_] * inner;
      if (!recorder.is_there(k, to)) ops::strided_copy({recorder.input(k), to, {{outer, block, row}, {block, 1, 1}}}, recorder);
      to = to.at(block);
    }
  }

 private:
  /// A launch for several inputs: beside small ones it would cost more than copying them.
  void lower_rows(exec::Recorder& recorder, std::int64_t outer, std::int64_t row, std::int64_t inner) const {
    constexpr std::size_t most = 8;  // of kernels/shape/concat_rows.cl
    constexpr std::int64_t worthwhile = 4096;
    auto to = recorder.output();
    std::vector<exec::Ref> parts;
    for (std::size_t k = 0; k < recorder.input_count(); ++k)
      if (recorder.spec(recorder.input(k)).shape.numel() > 0) parts.push_back(recorder.input(k));
    for (std::size_t first = 0; first < parts.size(); first += most) {
      const auto count = std::min(most, parts.size() - first);
      auto& launch = recorder.kernel("concat_rows", "concat_rows").define("COUNT", static_cast<std::int64_t>(count)).out("y", to);
      std::int64_t width = 0;
      const auto block = [&](std::size_t k) { return recorder.spec(parts[first + k]).shape[dim_] * inner; };
      for (std::size_t k = 0; k < count; ++k) width += block(k);
      const auto tasks = std::clamp<std::int64_t>(outer * width / worthwhile, 1, 4 * recorder.device().compute_units);
      const auto rows = (outer + tasks - 1) / tasks;
      launch.touches((outer - 1) * row + width).args({outer, row, rows});
      for (std::size_t k = 0; k < count; ++k) launch.in(fmt::format("x{}", k), parts[first + k]).arg(block(k));
      launch.range({(outer + rows - 1) / rows}, {1}).detail(to_string(recorder.spec(recorder.output()).shape));
      to = to.at(width);
    }
  }

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
