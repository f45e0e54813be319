// slice and split.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/exec/collect/work.h"
#include "lib/graph/capture.h"
#include "lib/graph/op.h"
#include "lib/graph/require.h"
#include "lib/ops/shape/strided_copy.h"

namespace clnet {

namespace {

/// `count` elements from `start` on with a positive step; or, with step -1, the whole dimension backwards.
class Slice : public Op {
 public:
  Slice(int dim, std::int64_t start, std::int64_t count, std::int64_t step)
      : dim_(dim), start_(start), count_(count), step_(step) {}
  std::string_view name() const override { return "slice"; }
  Fields fields() const override { return {{"dim", std::int64_t{dim_}}, {"start", start_}, {"count", count_}, {"step", step_}}; }

  Specs infer(const Specs& inputs) const override { return {{inputs[0].shape.with(dim_, count_), inputs[0].dtype}}; }
  Tensors vjp(const Tensors& inputs, const Tensors&, const Tensors& gradients) const override {
    const auto& shape = inputs[0].shape();
    auto g = gradients[0];
    if (step_ < 0) return {apply(std::make_shared<Slice>(dim_, start_, count_, step_), {g})};
    auto length = count_;
    std::vector<std::int64_t> none(static_cast<std::size_t>(shape.rank()), 0);
    if (step_ > 1) {  // zeros between the elements: a new dimension behind, padded and joined
      auto after = none;
      after.insert(after.begin() + dim_ + 1, step_ - 1);
      g = flatten(pad(unsqueeze(g, dim_ + 1), std::vector<std::int64_t>(after.size(), 0), after), dim_, dim_ + 1);
      length *= step_;
    }
    auto before = none, after = none;
    before[static_cast<std::size_t>(dim_)] = start_;
    after[static_cast<std::size_t>(dim_)] = shape[dim_] - start_ - length;
    return {pad(g, before, after)};
  }
  std::optional<Alias> alias(const Specs& inputs, std::size_t) const override {
    const auto& from = inputs[0].shape;
    if (outer(from) != 1 || step_ != 1 || from.numel() == 0 || count_ == 0) return std::nullopt;
    return Alias{0, start_ * ops::strides_of(from)[static_cast<std::size_t>(dim_)]};
  }
  FusionHints fusion(const Specs& inputs) const override {
    return {.input_slice = is_input_slice(inputs) ? std::optional(InputSlice{dim_, start_}) : std::nullopt};
  }
  Expression expr(const Specs& inputs) const override { return {is_input_slice(inputs) ? "a" : ""}; }
  void lower(exec::Recorder& recorder) const override {
    const auto& from = recorder.spec(recorder.input(0)).shape;
    const auto inner = ops::strides_of(from)[static_cast<std::size_t>(dim_)];
    const auto base = recorder.input(0).at(start_ * inner);
    ops::strided_copy({base,
                       recorder.output(),
                       {{outer(from), from[dim_] * inner, count_ * inner}, {count_, step_ * inner, inner}, {inner, 1, 1}}},
                      recorder);
  }

 private:
  /// Rows that are too short for vectors are copied.
  bool is_input_slice(const Specs& inputs) const {
    constexpr std::int64_t shortest = 16;
    const auto& from = inputs[0].shape;
    return step_ == 1 && from.numel() != 0 && !alias(inputs, 0) &&
           count_ * ops::strides_of(from)[static_cast<std::size_t>(dim_)] >= shortest;
  }

  std::int64_t outer(const Shape& from) const {
    std::int64_t product = 1;
    for (int d = 0; d < dim_; ++d) product *= from[d];
    return product;
  }

  int dim_;
  std::int64_t start_, count_, step_;
};

}  // namespace

Tensor slice(const Tensor& x, int dim, std::int64_t start, std::int64_t stop, std::int64_t step) {
  require_defined("slice", {{"x", x}});
  const int at = require_dim("slice", x, dim);
  if (step == 0) throw Error("slice: the step must not be 0");
  const auto extent = x.size(at);
  // Backwards, the position before the first element is a valid stop.
  const std::int64_t low = step < 0 ? -1 : 0, high = step < 0 ? extent - 1 : extent;
  const auto place = [&](std::int64_t position) { return std::clamp(position < 0 ? position + extent : position, low, high); };
  const auto first = place(start), last = place(stop);
  // Unsigned: the distance to a step of -2^63 has no negative.
  const auto stride = step < 0 ? 0 - static_cast<std::uint64_t>(step) : static_cast<std::uint64_t>(step);
  const auto way = step < 0 ? first - last : last - first;
  const auto count = way <= 0 ? 0 : static_cast<std::int64_t>((static_cast<std::uint64_t>(way) - 1) / stride) + 1;
  const auto pace = count <= 1 ? 1 : static_cast<std::int64_t>(stride);
  if (step > 0) {
    if (count == extent && pace == 1) return x;
    return apply(std::make_shared<Slice>(at, count == 0 ? 0 : first, count, pace), {x});
  }
  const auto forwards = slice(x, at, count == 0 ? 0 : first - (count - 1) * pace, count == 0 ? 0 : first + 1, pace);
  return count <= 1 ? forwards : apply(std::make_shared<Slice>(at, count - 1, count, -1), {forwards});
}

namespace {

/// Elements that are there. Of a value that is known, as a data set, another start comes with each step, and must not make a plan
/// of its own; of one that is still to be computed, as the outputs of a recurrent layer, of parameters and within compile() they
/// are a view, whose gradient is a range as well.
Tensor range(const Tensor& x, bool known, int dim, std::int64_t start, std::int64_t count) {
  if (count == 0 || count == x.size(dim) || !known) return slice(x, dim, start, start + count);
  const Tensor first = Tensor::scalar(static_cast<double>(start), Dtype::i64);
  return index_select(x, dim, count == 1 ? reshape(first, {1}) : arange(count) + first);
}

}  // namespace

Tensor Tensor::operator[](std::initializer_list<Index> parts) const {
  require_defined("x[...]", {{"x", *this}});
  if (static_cast<int>(parts.size()) > rank())
    throw ShapeError(fmt::format("x[...]: {} parts for {}", parts.size(), to_string(spec())));
  const bool known = exec::asked_value_of(*this) && node_->slot == 0 && !capturing();
  Tensor result = *this;
  int dim = 0;
  for (const auto& part : parts) {
    const auto extent = result.size(dim);
    if (!part.is_element) {
      if (part.step < 1)
        throw Error(fmt::format("x[...]: the step must be at least 1, not {}, in dimension {} of {}", part.step,
                                &part - parts.begin(), to_string(spec())));
      const auto place = [&](std::int64_t at) { return std::clamp(at < 0 ? at + extent : at, std::int64_t{0}, extent); };
      const auto first = place(part.start), count = std::max(place(part.stop) - first, std::int64_t{0});
      result = part.step == 1 ? range(result, known, dim, first, count) : slice(result, dim, part.start, part.stop, part.step);
      ++dim;
      continue;
    }
    if (part.start < -extent || part.start >= extent)
      throw ShapeError(fmt::format("x[...]: there is no element {} in dimension {} of {}", part.start, &part - parts.begin(),
                                   to_string(spec())));
    const auto at = part.start < 0 ? part.start + extent : part.start;
    result = range(result, known, dim, at, 1).squeeze(dim);
  }
  return result;
}

std::vector<Tensor> split(const Tensor& x, const std::vector<std::int64_t>& lengths, int dim) {
  require_defined("split", {{"x", x}});
  const int at = require_dim("split", x, dim);
  std::int64_t sum = 0;
  for (auto length : lengths) {
    if (length < 0 || length > x.size(at) - sum) sum = x.size(at);
    sum += length < 0 ? 1 : length;
  }
  if (sum != x.size(at))
    throw ShapeError(fmt::format("split: lengths [{}] do not add up to dimension {} of {}", fmt::join(lengths, ", "), at,
                                 to_string(x.shape())));
  std::vector<Tensor> pieces;
  std::int64_t start = 0;
  for (auto length : lengths) {
    pieces.push_back(slice(x, at, start, start + length));
    start += length;
  }
  return pieces;
}

}  // namespace clnet
