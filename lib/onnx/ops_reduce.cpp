// Reductions, cumulative operators and products of matrices.
#include <fmt/format.h>

#include <limits>

#include "clnet/ops/matmul.h"
#include "clnet/ops/norm.h"
#include "clnet/ops/reduce.h"
#include "clnet/ops/shape.h"
#include "lib/onnx/operators.h"

namespace clnet::onnx {
namespace {

using Reduction = Tensor (*)(const Tensor& x, const Dims& dims, bool keepdim);

/// Axes come as an attribute or, in later operator sets, as an input.
Outputs reduced(const Call& call, Reduction f) {
  const auto& shape = call.shape(0);
  const bool keeps = call.attribute("keepdims", std::int64_t{1}) != 0;
  Dims dims;
  for (const auto axis : call.integers(1, "axes")) dims.push_back(Call::axis(axis, shape.rank()));
  // No dimension is reduced, and what the reduction does to each element is done: as over one element.
  if (dims.empty() && call.attribute("noop_with_empty_axes", std::int64_t{0}) != 0)
    return {call.give(f(unsqueeze(call.x(0), 0), {0}, false))};
  if (shape.rank() == 0) return {call.give(clnet::reshape(f(clnet::reshape(call.x(0), Shape{1}), {0}, false), Shape{}))};
  return {call.give(f(call.x(0), dims, keeps))};
}

template <Reduction f>
Outputs reduce(const Call& call) {
  return reduced(call, f);
}

/// As f32 where the type is an integer one and the reduction is of floats.
Tensor floating(const Tensor& x) { return is_floating(x.dtype()) ? x : cast(x, Dtype::f32); }

Tensor reduce_sum(const Tensor& x, const Dims& dims, bool keep) { return sum(x, dims, keep); }
Tensor reduce_mean(const Tensor& x, const Dims& dims, bool keep) { return mean(floating(x), dims, keep); }
Tensor reduce_prod(const Tensor& x, const Dims& dims, bool keep) { return prod(x, dims, keep); }
Tensor reduce_max(const Tensor& x, const Dims& dims, bool keep) {
  return x.dtype() == Dtype::boolean ? any(x, dims, keep) : max(x, dims, keep);
}
Tensor reduce_min(const Tensor& x, const Dims& dims, bool keep) {
  return x.dtype() == Dtype::boolean ? all(x, dims, keep) : min(x, dims, keep);
}
Tensor reduce_l1(const Tensor& x, const Dims& dims, bool keep) { return sum(abs(x), dims, keep); }
Tensor reduce_l2(const Tensor& x, const Dims& dims, bool keep) { return sqrt(sum(square(floating(x)), dims, keep)); }
Tensor reduce_log_sum(const Tensor& x, const Dims& dims, bool keep) { return log(floating(sum(x, dims, keep))); }
Tensor reduce_log_sum_exp(const Tensor& x, const Dims& dims, bool keep) { return logsumexp(floating(x), dims, keep); }
Tensor reduce_sum_square(const Tensor& x, const Dims& dims, bool keep) { return sum(x * x, dims, keep); }

template <Tensor (*f)(const Tensor&, int, bool)>
Outputs arg(const Call& call) {
  const Tensor& x = call.x(0);
  const auto axis = Call::axis(call.attribute("axis", std::int64_t{0}), x.rank());
  const bool keeps = call.attribute("keepdims", std::int64_t{1}) != 0;
  if (call.attribute("select_last_index", std::int64_t{0}) == 0) return {RunValue(f(x, axis, keeps))};
  return {RunValue(static_cast<double>(x.size(axis) - 1) - f(flip(x, {axis}), axis, keeps))};
}

/// Sums or products of all elements up to each; exclusive: before it; reverse: from the end.
template <Tensor (*f)(const Tensor&, int)>
Outputs cumulated(const Call& call, double neutral) {
  Tensor x = call.x(0);
  const auto axis = Call::axis(call.integer(1), x.rank());
  const bool reverse = call.attribute("reverse", std::int64_t{0}) != 0;
  if (reverse) x = flip(x, {axis});
  if (call.attribute("exclusive", std::int64_t{0}) != 0 && x.size(axis) > 0) {
    const Tensor first = full(x.shape().with(axis, 1), neutral, x.dtype());
    x = concat({first, slice(x, axis, 0, -1)}, axis);
  }
  x = f(x, axis);
  return {call.give(reverse ? flip(x, {axis}) : x)};
}
Outputs cumulated_sum(const Call& call) { return cumulated<cumsum>(call, 0); }
Outputs cumulated_product(const Call& call) { return cumulated<cumprod>(call, 1); }

/// Before operator set 13 all dimensions from the axis on count as one.
template <Tensor (*f)(const Tensor&, int)>
Outputs normalized(const Call& call) {
  const Tensor& x = call.x(0);
  const auto rank = x.rank();
  if (call.opset() >= 13) return {call.give(f(x, Call::axis(call.attribute("axis", std::int64_t{-1}), rank)))};
  const auto axis = Call::axis(call.attribute("axis", std::int64_t{1}), rank);
  return {call.give(clnet::reshape(f(flatten(x, axis, rank - 1), axis), x.shape()))};
}

Tensor hardmax(const Tensor& x, int dim) {
  std::vector<std::int64_t> along(static_cast<std::size_t>(x.rank()), 1);
  along[static_cast<std::size_t>(dim)] = x.size(dim);
  return cast(eq(clnet::reshape(arange(x.size(dim)), along), argmax(x, dim, true)), x.dtype());
}

Outputs gemm(const Call& call) {
  const double alpha = call.attribute("alpha", 1.0), beta = call.attribute("beta", 1.0);
  const bool transposed_a = call.attribute("transA", std::int64_t{0}) != 0,
             transposed_b = call.attribute("transB", std::int64_t{0}) != 0;
  const bool whole = !is_floating(call.type(0));
  const auto operand = [&](std::size_t i) { return whole ? cast(call.x(i), Dtype::f32) : call.x(i); };
  const Tensor a = operand(0), b = operand(1);
  if (a.rank() != 2 || b.rank() != 2)
    call.fail(fmt::format("{} and {} are no matrices", to_string(a.shape()), to_string(b.shape())));
  if (!transposed_a && transposed_b && alpha == 1 && beta == 1 && (!call.has(2) || call.shape(2).rank() == 1) &&
      (!call.has(2) || call.shape(2)[0] == b.size(0)))
    return {call.give(linear(a, b, call.has(2) ? operand(2) : Tensor{}))};
  Tensor y = matmul(a, b, {.transpose_a = transposed_a, .transpose_b = transposed_b});
  if (alpha != 1) y = y * alpha;
  if (call.has(2) && beta != 0) y = y + (beta == 1 ? operand(2) : operand(2) * beta);
  return {call.give(y)};
}

Outputs matrix_product(const Call& call) {
  if (is_floating(call.type(0))) return {call.give(matmul(call.x(0), call.x(1)))};
  return {call.give(matmul(cast(call.x(0), Dtype::f32), cast(call.x(1), Dtype::f32)))};
}

Outputs einstein_sum(const Call& call) {
  std::vector<Tensor> operands;
  for (std::size_t i = 0; i < call.count(); ++i) operands.push_back(call.x(i));
  return {call.give(einsum(call.attribute("equation", std::string_view{}), operands))};
}

}  // namespace

std::vector<Operator> reduce_operators() {
  using Role::data;
  const std::vector<Role> axes{data, Role::structure}, weights{data, Role::weight};
  return {
      {"ArgMax", 1, arg<argmax>},
      {"ArgMin", 1, arg<argmin>},
      {"CumProd", 26, cumulated_product, axes},
      {"CumSum", 11, cumulated_sum, axes},
      {"Einsum", 12, einstein_sum},
      {"Gemm", 1, gemm, weights},
      {"Hardmax", 1, normalized<hardmax>},
      {"LogSoftmax", 1, normalized<log_softmax>},
      {"MatMul", 1, matrix_product, {Role::weight}},
      {"ReduceL1", 1, reduce<reduce_l1>, axes},
      {"ReduceL2", 1, reduce<reduce_l2>, axes},
      {"ReduceLogSum", 1, reduce<reduce_log_sum>, axes},
      {"ReduceLogSumExp", 1, reduce<reduce_log_sum_exp>, axes},
      {"ReduceMax", 1, reduce<reduce_max>, axes},
      {"ReduceMean", 1, reduce<reduce_mean>, axes},
      {"ReduceMin", 1, reduce<reduce_min>, axes},
      {"ReduceProd", 1, reduce<reduce_prod>, axes},
      {"ReduceSum", 1, reduce<reduce_sum>, axes},
      {"ReduceSumSquare", 1, reduce<reduce_sum_square>, axes},
      {"Softmax", 1, normalized<softmax>},
  };
}

}  // namespace clnet::onnx
