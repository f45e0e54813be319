// Reductions, cumulative operators and products of matrices.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "clnet/error.h"
#include "clnet/ops/elementwise.h"
#include "clnet/ops/index.h"
#include "clnet/ops/matmul.h"
#include "clnet/ops/norm.h"
#include "clnet/ops/reduce.h"
#include "clnet/ops/shape.h"
#include "lib/onnx/operators.h"

namespace clnet::onnx {
namespace {

using Reduction = Tensor (*)(const Tensor& x, const Dims& dims, bool keepdim);

/// What no element gives, where a reduction has a neutral one: the least or the largest number of the type.
double extreme_of(const Call& call, bool least) {
  switch (call.type(0)) {
    case ElementType::boolean: return least ? 0 : 1;
    case ElementType::u8: return least ? 0 : 255;
    case ElementType::i8: return least ? -128 : 127;
    case ElementType::u16: return least ? 0 : 65535;
    case ElementType::i16: return least ? -32768 : 32767;
    case ElementType::i32: return least ? -2147483648.0 : 2147483647.0;
    case ElementType::u32: return least ? 0 : 4294967295.0;
    case ElementType::i64:
    case ElementType::u64: call.refuse("an extreme of no 64-bit integer");
    default: return least ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  }
}

/// The extremes of nothing.
Outputs nothing_reduced(const Call& call, const Dims& dims, bool keeps) {
  const auto& shape = call.shape(0);
  std::vector<std::int64_t> extents;
  for (int d = 0; d < shape.rank(); ++d) {
    const bool reduced = dims.empty() || std::find(dims.begin(), dims.end(), d) != dims.end();
    if (!reduced)
      extents.push_back(shape[d]);
    else if (keeps)
      extents.push_back(1);
  }
  return {call.give(full(Shape(extents), extreme_of(call, call.name() == "ReduceMax"), dtype_of(call.type(0))))};
}

/// Axes come as an attribute or, in later operator sets, as an input.
Outputs reduced(const Call& call, Reduction f) {
  const auto& shape = call.shape(0);
  const bool keeps = call.attribute("keepdims", std::int64_t{1}) != 0;
  Dims dims;
  for (const auto axis : call.integers(1, "axes")) dims.push_back(Call::axis(axis, shape.rank()));
  // No dimension is reduced, and what the reduction does to each element is done: as over one element.
  if (dims.empty() && call.attribute("noop_with_empty_axes", std::int64_t{0}) != 0)
    return {call.give(f(unsqueeze(call.x(0), 0), {0}, false))};
  if (shape.numel() == 0 && (call.name() == "ReduceMax" || call.name() == "ReduceMin")) return nothing_reduced(call, dims, keeps);
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

/// The product of integers, which wraps around: sums of pieces of the inner dimension that fit into memory.
Tensor whole_product(Tensor a, Tensor b) {
  constexpr std::int64_t piece = 1 << 24;  // elements
  const bool is_row = a.rank() == 1, is_column = b.rank() == 1;
  if (is_row) a = unsqueeze(a, 0);
  if (is_column) b = unsqueeze(b, 1);
  const auto inner = a.size(-1);
  if (b.size(-2) != inner) throw ShapeError(fmt::format("{} and {} have no product", to_string(a.shape()), to_string(b.shape())));
  a = unsqueeze(a, -1);
  b = unsqueeze(b, -3);
  const auto each =
      std::max<std::int64_t>(1, broadcast(a.shape(), b.shape(), "MatMul").numel() / std::max<std::int64_t>(1, inner));
  const auto step = std::max<std::int64_t>(1, piece / each);
  Tensor y;
  for (std::int64_t at = 0; at < inner || !y.defined(); at += step) {
    const auto end = std::min(inner, at + step);
    const Tensor part = sum(slice(a, -2, at, end) * slice(b, -2, at, end), {-2});
    y = y.defined() ? y + part : part;
  }
  if (is_row) y = squeeze(y, is_column ? -2 : y.rank() - 2);
  return is_column ? squeeze(y, -1) : y;
}

Outputs gemm(const Call& call) {
  const double alpha = call.attribute("alpha", 1.0), beta = call.attribute("beta", 1.0);
  const bool transposed_a = call.attribute("transA", std::int64_t{0}) != 0,
             transposed_b = call.attribute("transB", std::int64_t{0}) != 0;
  // A factor that is no integer makes a product of integers one of floats.
  const bool whole = !is_floating(call.type(0)), exact = whole && alpha == std::floor(alpha) && beta == std::floor(beta);
  const auto operand = [&](std::size_t i) { return whole && !exact ? cast(call.x(i), Dtype::f32) : call.x(i); };
  const Tensor a = operand(0), b = operand(1);
  if (a.rank() != 2 || b.rank() != 2)
    call.fail(fmt::format("{} and {} are no matrices", to_string(a.shape()), to_string(b.shape())));
  if (exact) {
    Tensor y = whole_product(transposed_a ? transpose(a, 0, 1) : a, transposed_b ? transpose(b, 0, 1) : b) * alpha;
    if (call.has(2)) y = y + cast(operand(2), y.dtype()) * beta;
    return {call.give(y)};
  }
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
  return {call.give(whole_product(call.x(0), call.x(1)))};
}

/// Of square matrices {..., n, n}: the product of pivots of Gaussian elimination, each the largest of its column.
Outputs determinant(const Call& call) {
  constexpr std::int64_t largest = 256;
  const auto& shape = call.shape(0);
  if (shape.rank() < 2 || shape[-1] != shape[-2]) call.fail(fmt::format("{} has no square matrices", to_string(shape)));
  const auto n = shape[-1];
  if (n > largest) call.refuse(fmt::format("matrices of more than {} rows", largest));
  const Shape batch(std::vector<std::int64_t>(shape.begin(), shape.end() - 2));
  Tensor rest = clnet::reshape(call.x(0), {batch.numel(), n, n});
  Tensor product = ones({batch.numel()}, rest.dtype());
  for (auto size = n; size > 0; --size) {
    const Tensor at = clnet::reshape(argmax(abs(select(rest, 2, 0)), 1), {batch.numel(), 1, 1});
    const Tensor row = gather(rest, 1, expand(at, {batch.numel(), 1, size}));  // {N, 1, size}
    const Tensor pivot = select(select(row, 1, 0), 1, 0);
    product = product * pivot * where(eq(clnet::reshape(at, {-1}), 0.0), ones_like(pivot), -ones_like(pivot));
    if (size == 1) break;
    // The first row takes the place of the pivot's.
    const Tensor others =
        slice(where(eq(clnet::reshape(arange(size), {1, size, 1}), at), slice(rest, 1, 0, 1), rest), 1, 1, size);
    const Tensor divisor = clnet::reshape(where(eq(pivot, 0.0), ones_like(pivot), pivot), {-1, 1, 1});
    rest = slice(others, 2, 1, size) - slice(others, 2, 0, 1) * (slice(row, 2, 1, size) / divisor);
  }
  return {call.give(clnet::reshape(product, batch))};
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
      {"Det", 11, determinant},
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
