// Quantized operators, computed by plain arithmetic: integers as floats that hold them exactly.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "clnet/ops/elementwise.h"
#include "clnet/ops/matmul.h"
#include "clnet/ops/reduce.h"
#include "clnet/ops/shape.h"
#include "lib/onnx/operators.h"
#include "lib/onnx/windows.h"

namespace clnet::onnx {
namespace {

/// The smallest and largest number of a type. Throws Unsupported for those that are no integers of 8 or 16 bits.
std::pair<double, double> range_of(const Call& call, ElementType type) {
  switch (type) {
    case ElementType::u8: return {0, 255};
    case ElementType::i8: return {-128, 127};
    case ElementType::u16: return {0, 65535};
    case ElementType::i16: return {-32768, 32767};
    case ElementType::i32: return {-2147483648.0, 2147483520.0};
    default: call.refuse(fmt::format("quantized elements of type {}", to_string(type)));
  }
}

/// A scale or zero point as it is multiplied with x: one number, one per place of the axis, or one per block of it.
Tensor along_axis(const Call& call, const Tensor& values, const Tensor& x) {
  if (values.numel() == 1) return reshape(values, Shape{});
  const auto axis = Call::axis(call.attribute("axis", std::int64_t{1}), x.rank());
  if (values.rank() == 1) {
    std::vector<std::int64_t> extents(static_cast<std::size_t>(x.rank()), 1);
    extents[static_cast<std::size_t>(axis)] = values.numel();
    return reshape(values, extents);
  }
  const auto block = call.attribute("block_size", std::int64_t{0});
  if (values.rank() != x.rank() || block < 1)
    call.fail(fmt::format("a scale {} of {}", to_string(values.shape()), to_string(x.shape())));
  const Tensor repeated = repeat_interleave(values, block, axis);
  return slice(repeated, axis, 0, x.size(axis));
}

Tensor saturated(const Call& call, const Tensor& numbers, ElementType type) {
  const auto [low, high] = range_of(call, type);
  return clamp(numbers, low, high);
}

RunValue quantized(const Call& call, const Tensor& x, const Tensor& scale, const Tensor& zero, ElementType type) {
  Tensor y = round(cast(x, Dtype::f32) / cast(scale, Dtype::f32));
  if (zero.defined()) y = y + cast(zero, Dtype::f32);
  return call.give_as(saturated(call, y, type), type);
}

Outputs quantize(const Call& call) {
  const auto& x = call.x(0);
  const auto type = call.has(2) ? call.type(2) : call.element_type("output_dtype", ElementType::u8);
  const Tensor zero = call.has(2) ? along_axis(call, call.x(2), x) : Tensor{};
  return {quantized(call, x, along_axis(call, call.x(1), x), zero, type)};
}

Outputs dequantize(const Call& call) {
  const auto& x = call.x(0);
  range_of(call, call.type(0));
  Tensor y = cast(x, Dtype::f32);
  if (call.has(2)) y = y - cast(along_axis(call, call.x(2), x), Dtype::f32);
  return {call.give(y * cast(along_axis(call, call.x(1), x), Dtype::f32), 1)};
}

Outputs dynamic_quantize(const Call& call) {
  const Tensor& x = call.x(0);
  const Tensor low = minimum(min(x), Tensor::scalar(0)), high = maximum(max(x), Tensor::scalar(0));
  const Tensor scale = (high - low) / 255.0;
  const Tensor zero = clamp(round(where(eq(scale, 0.0), 0.0, -low / scale)), 0, 255);
  const Tensor y = clamp(round(where(eq(scale, 0.0), zeros_like(x), x / scale)) + zero, 0, 255);
  return {call.give_as(y, ElementType::u8), RunValue(scale), call.give_as(zero, ElementType::u8)};
}

/// So many products of numbers up to 255 fit into the 24 bits of f32.
constexpr std::int64_t most_whole = 258;

/// Sums of products of whole numbers below 2^9, exact as i32: f32 holds sums up to 2^24. A number is 16 times its high part plus
/// its low part below 16, so a product of a part has 13 bits, and 2048 of them may be added. Up to `whole` are added at once.
Tensor exact_sums(const Tensor& a, std::int64_t products, std::int64_t whole, const std::function<Tensor(const Tensor&)>& sums) {
  // Rounded: a solver may reach a whole sum by fractions.
  const auto exact = [&](const Tensor& part) { return cast(round(sums(part)), Dtype::i32); };
  if (products <= whole) return exact(a);
  const Tensor high = floor(a / 16.0), low = a - high * 16.0;
  return exact(high) * 16.0 + exact(low);
}

/// The product of integers, in pieces of the inner dimension that are exact.
Tensor integer_product(const Tensor& a, const Tensor& b) {
  constexpr std::int64_t piece = 2048;
  const auto inner = a.size(-1);
  Tensor total;
  for (std::int64_t at = 0; at < inner || !total.defined(); at += piece) {
    const auto end = std::min(inner, at + piece);
    const Tensor part_a = inner > piece ? slice(a, -1, at, end) : a;
    const Tensor part_b = inner > piece ? slice(b, b.rank() > 1 ? -2 : 0, at, end) : b;
    const Tensor part = exact_sums(part_a, end - at, most_whole, [&](const Tensor& x) { return matmul(x, part_b); });
    total = total.defined() ? total + part : part;
  }
  return total;
}

/// Without its zero point; one per row of a (`row`), or per column.
Tensor centered(const Tensor& x, const Tensor& zero, bool rows) {
  const Tensor numbers = cast(x, Dtype::f32);
  if (!zero.defined()) return numbers;
  const Tensor shift = cast(zero, Dtype::f32);
  if (shift.numel() == 1) return numbers - reshape(shift, Shape{});
  return numbers - (rows && shift.rank() == 1 ? unsqueeze(shift, 1) : shift);
}

/// The same of a weight and its zero point, which is computed once.
Tensor centered_weight(const Call& call, std::size_t weight, std::size_t zero,
                       const std::function<Tensor(const Tensor&)>& shaped) {
  (void)call.in(weight);
  return call.made_of({weight, zero}, 0, [&](const std::vector<Tensor>& given) {
    return std::vector<Tensor>{centered(given[0], given[1].defined() ? shaped(given[1]) : given[1], false)};
  })[0];
}

Outputs matmul_integer(const Call& call) {
  const Tensor a = centered(call.x(0), call.optional(2), true);
  const Tensor b = centered_weight(call, 1, 3, [](const Tensor& zero) { return zero; });
  return {call.give_as(integer_product(a, b), ElementType::i32)};
}

/// a, its scale and zero point, b, its scale and zero point, the result's scale and zero point.
Outputs matmul_quantized(const Call& call) {
  const Tensor a = centered(call.x(0), call.x(2), true);
  const Tensor b = centered_weight(call, 3, 5, [](const Tensor& zero) { return zero; });
  const auto by_row = [](const Tensor& scale) { return scale.rank() == 1 && scale.numel() > 1 ? unsqueeze(scale, 1) : scale; };
  const Tensor scale = by_row(cast(call.x(1), Dtype::f32)) * cast(call.x(4), Dtype::f32);
  const Tensor sums = cast(integer_product(a, b), Dtype::f32);
  return {quantized(call, sums * scale, reshape(call.x(6), Shape{}), reshape(call.x(7), Shape{}), call.type(7))};
}

/// The sums of a convolution of whole numbers, as i32.
Tensor integer_convolution(const Call& call, const Tensor& x, const Tensor& weight) {
  if (weight.rank() < 3) call.fail(fmt::format("the weight is {}", to_string(weight.shape())));
  const std::vector<std::int64_t> kernel(weight.shape().begin() + 2, weight.shape().end());
  const auto w = Windows::of(call, x.shape(), kernel);
  const auto groups = call.attribute("group", std::int64_t{1});
  // As many channels of each group as have exact sums.
  constexpr std::int64_t most = 2048;
  const auto channels = weight.size(1), window = weight.numel() / std::max<std::int64_t>(1, weight.size(0) * channels);
  if (window > most) call.refuse(fmt::format("a quantized convolution by windows of {} elements", window));
  if (x.rank() != weight.rank() || groups < 1 || x.size(1) != groups * channels)
    call.fail(fmt::format("{} groups of a weight {} for {}", groups, to_string(weight.shape()), to_string(x.shape())));
  // Larger windows may be computed by fractions, as by Winograd's method, and leave some bits to them.
  const std::int64_t whole = std::all_of(kernel.begin(), kernel.end(), [](auto extent) { return extent == 1; }) ? most_whole : 63;
  const auto step = most / std::max<std::int64_t>(1, window);
  Tensor total;
  for (std::int64_t at = 0; at < channels || !total.defined(); at += step) {
    const auto end = std::min(channels, at + step);
    Tensor part = x, own = weight;
    if (channels > step) {
      part = flatten(slice(unflatten(x, 1, {groups, channels}), 2, at, end), 1, 2);
      own = slice(weight, 1, at, end);
    }
    const Tensor sums =
        exact_sums(part, (end - at) * window, whole, [&](const Tensor& piece) { return convolution(piece, own, {}, w, groups); });
    total = total.defined() ? total + sums : sums;
  }
  return total;
}

/// One number, or one per output channel: {out, 1, ...}.
Tensor per_output(const Tensor& values, int rank) {
  if (!values.defined() || values.numel() == 1) return values;
  std::vector<std::int64_t> extents(static_cast<std::size_t>(rank), 1);
  extents[0] = values.numel();
  return reshape(values, extents);
}

Outputs conv_integer(const Call& call) {
  const Tensor x = centered(call.x(0), call.optional(2), false);
  const auto rank = call.shape(1).rank();
  const Tensor weight = centered_weight(call, 1, 3, [rank](const Tensor& zero) { return per_output(zero, rank); });
  return {call.give_as(integer_convolution(call, x, weight), ElementType::i32)};
}

/// x, its scale and zero point, the weight, its scale and zero point, the result's scale and zero point, and a bias of i32.
Outputs conv_quantized(const Call& call) {
  const auto rank = call.shape(3).rank();
  const Tensor x = centered(call.x(0), call.x(2), false);
  const Tensor weight = centered_weight(call, 3, 5, [rank](const Tensor& zero) { return per_output(zero, rank); });
  std::vector<std::int64_t> channels(static_cast<std::size_t>(rank), 1);
  const auto by_channel = [&](const Tensor& values) {
    if (values.numel() == 1) return reshape(values, Shape{});
    channels[1] = values.numel();
    return reshape(values, channels);
  };
  Tensor sums = integer_convolution(call, x, weight);
  if (call.has(8)) sums = sums + by_channel(call.x(8));
  const Tensor scale = reshape(call.x(1), Shape{}) * by_channel(call.x(4));
  return {
      quantized(call, cast(sums, Dtype::f32) * scale, reshape(call.x(6), Shape{}), reshape(call.x(7), Shape{}), call.type(7))};
}

/// onnxruntime's sum of two quantized tensors: a, its scale and zero point, b, its own, the result's.
Outputs add_quantized(const Call& call) {
  const auto number = [&](std::size_t input) { return cast(reshape(call.x(input), Shape{}), Dtype::f32); };
  const auto operand = [&](std::size_t first) {
    const Tensor x = cast(call.x(first), Dtype::f32);
    return (call.has(first + 2) ? x - number(first + 2) : x) * number(first + 1);
  };
  const Tensor zero = call.has(7) ? number(7) : Tensor{};
  return {quantized(call, operand(0) + operand(3), number(6), zero, call.type(0))};
}

}  // namespace

std::vector<Operator> quantized_operators() {
  // Scales and zero points are buffers.
  const std::vector<Role> roles{Role::data, Role::statistic};
  constexpr std::string_view microsoft = "com.microsoft";
  return {
      {"ConvInteger", 10, conv_integer, roles},           {"DequantizeLinear", 10, dequantize, roles},
      {"DynamicQuantizeLinear", 11, dynamic_quantize},    {"MatMulInteger", 10, matmul_integer, roles},
      {"QLinearAdd", 1, add_quantized, roles, microsoft}, {"QLinearConv", 10, conv_quantized, roles},
      {"QLinearMatMul", 10, matmul_quantized, roles},     {"QuantizeLinear", 10, quantize, roles},
  };
}

}  // namespace clnet::onnx
