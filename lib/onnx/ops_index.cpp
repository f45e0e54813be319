// Operators that gather, scatter, sort and search.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "clnet/ops/index.h"
#include "clnet/ops/reduce.h"
#include "clnet/ops/shape.h"
#include "lib/onnx/operators.h"

namespace clnet::onnx {
namespace {

/// Indices below 0 count from the end.
Tensor wrapped(const Tensor& indices, std::int64_t extent) {
  const Tensor at = cast(indices, Dtype::i64);
  return where(less(at, 0.0), at + static_cast<double>(extent), at);
}

/// Throws Error for a constant index out of -extent..extent-1. What data say is not read: such elements are NaN, or 0.
void require_inside(const Call& call, std::size_t input, std::int64_t extent) {
  if (!call.in(input).host()) return;
  for (const auto index : call.integers(input))
    if (index < -extent || index >= extent) call.fail(fmt::format("index {} of {} elements", index, extent));
}

Outputs gather_of(const Call& call) {
  const Tensor &x = call.x(0), &indices = call.x(1);
  const auto axis = Call::axis(call.attribute("axis", std::int64_t{0}), x.rank());
  require_inside(call, 1, x.size(axis));
  std::vector<std::int64_t> extents(x.shape().begin(), x.shape().begin() + axis);
  extents.insert(extents.end(), indices.shape().begin(), indices.shape().end());
  extents.insert(extents.end(), x.shape().begin() + axis + 1, x.shape().end());
  const Tensor lines = index_select(x, axis, reshape(wrapped(indices, x.size(axis)), {-1}));
  return {call.give(reshape(lines, extents))};
}

Outputs gather_elements(const Call& call) {
  const Tensor& x = call.x(0);
  const auto axis = Call::axis(call.attribute("axis", std::int64_t{0}), x.rank());
  require_inside(call, 1, x.size(axis));
  return {call.give(gather(x, axis, wrapped(call.x(1), x.size(axis))))};
}

/// Of index tuples: each number counts from the end of its own dimension where it is below 0.
Tensor wrapped_tuples(const Tensor& indices, const Shape& shape, int first) {
  std::vector<std::int64_t> extents;
  for (std::int64_t d = 0; d < indices.size(-1); ++d) extents.push_back(shape[first + static_cast<int>(d)]);
  const Tensor at = cast(indices, Dtype::i64);
  return where(less(at, 0.0), at + Tensor::from(extents), at);
}

Outputs gather_nd_of(const Call& call) {
  const Tensor& x = call.x(0);
  const auto batches = call.attribute("batch_dims", std::int64_t{0});
  if (batches < 0 || batches >= x.rank()) call.fail(fmt::format("batch_dims is {} of {}", batches, to_string(x.shape())));
  const auto batch = static_cast<int>(batches);
  if (call.shape(1).rank() < 1 || batch + call.shape(1)[-1] > x.rank())
    call.fail(fmt::format("indices {} of {}", to_string(call.shape(1)), to_string(x.shape())));
  return {call.give(gather_nd(x, wrapped_tuples(call.x(1), x.shape(), batch), batch))};
}

std::optional<ScatterReduction> reduction_of(const Call& call) {
  const auto name = call.attribute("reduction", std::string_view("none"));
  if (name == "none") return std::nullopt;
  if (name == "add") return ScatterReduction::sum;
  if (name == "mul") return ScatterReduction::prod;
  if (name == "max") return ScatterReduction::amax;
  if (name == "min") return ScatterReduction::amin;
  call.fail(fmt::format("the reduction is \"{}\"", name));
}

Outputs scatter_elements(const Call& call) {
  const Tensor& x = call.x(0);
  const auto axis = Call::axis(call.attribute("axis", std::int64_t{0}), x.rank());
  require_inside(call, 1, x.size(axis));
  const Tensor at = wrapped(call.x(1), x.size(axis));
  const auto reduction = reduction_of(call);
  return {call.give(reduction ? scatter_reduce(x, axis, at, call.x(2), *reduction) : scatter(x, axis, at, call.x(2)))};
}

Outputs scatter_nd_of(const Call& call) {
  const Tensor& x = call.x(0);
  if (call.shape(1).rank() < 1 || call.shape(1)[-1] > x.rank())
    call.fail(fmt::format("indices {} of {}", to_string(call.shape(1)), to_string(x.shape())));
  const Tensor at = wrapped_tuples(call.x(1), x.shape(), 0);
  const auto reduction = reduction_of(call);
  return {call.give(scatter_nd(x, at, call.x(2), reduction))};
}

Outputs one_hot_of(const Call& call) {
  const auto depth = call.integer(1);
  const auto rank = call.shape(0).rank() + 1;
  const auto axis = Call::axis(call.attribute("axis", std::int64_t{-1}), rank);
  // Indices out of -depth..depth-1 have no element that is on.
  const Tensor at = unsqueeze(wrapped(is_floating(call.type(0)) ? cast(call.x(0), Dtype::i64) : call.x(0), depth), axis);
  std::vector<std::int64_t> along(static_cast<std::size_t>(rank), 1);
  along[static_cast<std::size_t>(axis)] = depth;
  const Tensor& values = call.x(2);
  const Tensor off = slice(values, 0, 0, 1), on = slice(values, 0, 1, 2);
  return {call.give(where(eq(at, reshape(arange(depth), along)), reshape(on, Shape{}), reshape(off, Shape{})), 2)};
}

Outputs top_k(const Call& call) {
  const Tensor& x = call.x(0);
  const auto axis = Call::axis(call.attribute("axis", std::int64_t{-1}), x.rank());
  const auto k = call.opset() < 10 ? call.attribute("k", std::int64_t{0}) : call.integer(1);
  const auto result = topk(x, k, axis, call.attribute("largest", std::int64_t{1}) != 0);
  return {call.give(result.values), RunValue(cast(result.indices, Dtype::i64), ElementType::i64)};
}

Outputs nonzero_of(const Call& call) { return {RunValue(transpose(nonzero(call.x(0)), 0, 1), ElementType::i64)}; }

Outputs compress(const Call& call) {
  const bool flat = !call.has_attribute("axis");
  const Tensor x = flat ? reshape(call.x(0), {-1}) : call.x(0);
  const auto axis = flat ? 0 : Call::axis(call.attribute("axis", std::int64_t{0}), x.rank());
  const auto condition = call.integers(1);
  std::vector<std::int64_t> kept;
  if (std::cmp_greater(condition.size(), x.size(axis)))
    call.fail(fmt::format("{} conditions of {} places", condition.size(), x.size(axis)));
  for (std::size_t i = 0; i < condition.size(); ++i)
    if (condition[i] != 0) kept.push_back(static_cast<std::int64_t>(i));
  return {call.give(index_select(x, axis, Tensor::from(kept)))};
}

}  // namespace

std::vector<Operator> index_operators() {
  using enum Role;
  return {
      {"Compress", 9, compress, {data, structure}},
      {"Gather", 1, gather_of, {weight, data}},
      {"GatherElements", 11, gather_elements},
      {"GatherND", 11, gather_nd_of},
      {"NonZero", 9, nonzero_of},
      {"OneHot", 9, one_hot_of, {data, structure, statistic}},
      {"ScatterElements", 11, scatter_elements},
      {"Scatter", 9, scatter_elements},
      {"ScatterND", 11, scatter_nd_of},
      {"TopK", 1, top_k, {data, structure}},
  };
}

}  // namespace clnet::onnx
