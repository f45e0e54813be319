#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/graph/op.h"
#include "lib/graph/require.h"
#include "lib/ops/shape/strided_copy.h"
#include "lib/ops/stand_in.h"

namespace clnet {

namespace {

class Permute : public Op {
 public:
  explicit Permute(std::vector<int> dims) : dims_(std::move(dims)) {}
  std::string_view name() const override { return "permute"; }
  TuningHints tuning(const Specs&) const override { return {.list = "strided_copy", .last = true}; }
  Fields fields() const override { return {{"dims", std::vector<std::int64_t>(dims_.begin(), dims_.end())}}; }

  Specs infer(const Specs& inputs) const override {
    std::vector<std::int64_t> extents;
    for (int dim : dims_) extents.push_back(inputs[0].shape[dim]);
    return {{Shape(std::move(extents)), inputs[0].dtype}};
  }
  Tensors vjp(const Tensors&, const Tensors&, const Tensors& gradients) const override {
    std::vector<int> inverse(dims_.size());
    for (std::size_t i = 0; i < dims_.size(); ++i) inverse[static_cast<std::size_t>(dims_[i])] = static_cast<int>(i);
    return {permute(gradients[0], inverse)};
  }
  std::optional<Alias> alias(const Specs& inputs, std::size_t) const override {
    return keeps_order(inputs[0].shape) ? std::optional(Alias{}) : std::nullopt;
  }
  /// A dimension of one element moves for nothing.
  Tensors at_length(const Specs& inputs, std::int64_t from, std::int64_t to) const override {
    Tensors result;
    const auto& [shape, dtype] = inputs[0];
    for (int dim = 0; dim < shape.rank(); ++dim)
      if (shape[dim] == from) result.push_back(permute(ops::stand_in({shape.with(dim, to), dtype}), dims_));
    return result;
  }
  void lower(exec::Recorder& recorder) const override {
    const auto& from = recorder.spec(recorder.input(0)).shape;
    const auto from_steps = ops::strides_of(from), to_steps = ops::strides_of(recorder.spec(recorder.output()).shape);
    ops::StridedCopy copy{recorder.input(0), recorder.output(), {}};
    for (std::size_t i = 0; i < dims_.size(); ++i)
      copy.dims.push_back({from[dims_[i]], from_steps[static_cast<std::size_t>(dims_[i])], to_steps[i]});
    ops::strided_copy(std::move(copy), recorder);
  }

 private:
  /// Only dimensions of one element move.
  bool keeps_order(const Shape& from) const {
    int last = -1;
    for (int dim : dims_) {
      if (from[dim] == 1) continue;
      if (dim < last) return false;
      last = dim;
    }
    return true;
  }

  std::vector<int> dims_;
};

}  // namespace

Tensor permute(const Tensor& x, const std::vector<int>& dims) {
  require_defined("permute", {{"x", x}});
  auto order = dims;
  std::vector<int> sorted(dims.size());
  if (static_cast<int>(dims.size()) == x.rank()) {
    for (auto& dim : order) dim = require_dim("permute", x, dim);
    sorted = order;
    std::sort(sorted.begin(), sorted.end());
  }
  std::vector<int> all(static_cast<std::size_t>(x.rank()));
  std::iota(all.begin(), all.end(), 0);
  if (sorted != all)
    throw ShapeError(
        fmt::format("permute: [{}] does not name each dimension of {} once", fmt::join(dims, ", "), to_string(x.shape())));
  return order == all ? x : apply(std::make_shared<Permute>(std::move(order)), {x});
}

Tensor transpose(const Tensor& x, int dim0, int dim1) {
  require_defined("transpose", {{"x", x}});
  const int first = require_line("transpose", x.shape(), dim0), second = require_line("transpose", x.shape(), dim1);
  if (x.rank() == 0) return x;
  std::vector<int> dims(static_cast<std::size_t>(x.rank()));
  std::iota(dims.begin(), dims.end(), 0);
  std::swap(dims[static_cast<std::size_t>(first)], dims[static_cast<std::size_t>(second)]);
  return permute(x, dims);
}

}  // namespace clnet
