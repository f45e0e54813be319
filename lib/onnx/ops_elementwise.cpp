// Elementwise operators.
#include <fmt/format.h>

#include <limits>

#include "clnet/ops/elementwise.h"
#include "clnet/ops/reduce.h"
#include "clnet/ops/shape.h"
#include "lib/graph/composition.h"
#include "lib/onnx/operators.h"

namespace clnet::onnx {
namespace {

template <Tensor (*f)(const Tensor&)>
Outputs unary(const Call& call) {
  return {call.give(f(call.x(0)))};
}
/// Of a floating result; integers are computed as they are.
template <Tensor (*f)(const Tensor&)>
Outputs rounding(const Call& call) {
  if (!is_floating(call.type(0))) return {call.in(0)};
  return {call.give(f(call.x(0)))};
}
/// The second operand. Before operator set 7 its first dimension could be put beside `axis` of the first operand's.
Tensor second(const Call& call) {
  const auto* axis = call.opset() < 7 ? call.attribute("axis") : nullptr;
  if (!axis) return call.x(1);
  const auto rank = call.shape(0).rank(), own = call.shape(1).rank();
  const auto first = Call::axis(axis->integer, rank);
  if (first + own > rank)
    call.fail(fmt::format("axis {} of {} and {}", first, to_string(call.shape(0)), to_string(call.shape(1))));
  std::vector<std::int64_t> extents(call.shape(1).begin(), call.shape(1).end());
  extents.resize(static_cast<std::size_t>(rank - first), 1);
  return reshape(call.x(1), extents);
}

constexpr std::int64_t sign_bit = std::numeric_limits<std::int64_t>::min();

/// Numbers of 64 bits without a sign are stored as those with one. With the sign bit turned they have the same order.
Tensor ordered(const Tensor& x, ElementType type) { return type == ElementType::u64 ? x ^ sign_bit : x; }

/// Without the sign's copies that come in from above.
Tensor shifted_right(const Tensor& x, const Tensor& by, ElementType type) {
  if (type != ElementType::u64) return bitwise_right_shift(x, by);
  const Tensor half = bitwise_right_shift(x, 1.0) & std::numeric_limits<std::int64_t>::max();
  return where(eq(by, 0.0), x, bitwise_right_shift(half, by - 1.0));
}

/// The quotient of numbers without a sign: that of half of a, doubled, is right or one too small.
Tensor unsigned_quotient(const Tensor& a, const Tensor& b) {
  const auto reaches = [](const Tensor& x, const Tensor& y) { return greater_equal(x ^ sign_bit, y ^ sign_bit); };
  const Tensor half = bitwise_right_shift(a, 1.0) & std::numeric_limits<std::int64_t>::max();
  const Tensor near = half / b * 2.0;
  const Tensor quotient = near + cast(reaches(a - near * b, b), Dtype::i64);
  return where(less(b, 0.0), cast(reaches(a, b), Dtype::i64), quotient);
}

template <Tensor (*f)(const Tensor&, const Tensor&)>
Outputs binary(const Call& call) {
  return {call.give(f(call.x(0), second(call)))};
}
template <Tensor (*f)(const Tensor&, const Tensor&)>
Outputs comparison(const Call& call) {
  return {RunValue(f(ordered(call.x(0), call.type(0)), ordered(second(call), call.type(0))))};
}
template <Tensor (*f)(const Tensor&)>
Outputs predicate(const Call& call) {
  return {RunValue(f(call.x(0)))};
}
template <Tensor (*f)(const Tensor&, const Tensor&)>
Outputs variadic(const Call& call) {
  Tensor y = call.x(0);
  for (std::size_t i = 1; i < call.count(); ++i) y = f(y, call.x(i));
  return {call.give(y)};
}

template <Tensor (*f)(const Tensor&, const Tensor&)>
Outputs extreme(const Call& call) {
  Tensor y = ordered(call.x(0), call.type(0));
  for (std::size_t i = 1; i < call.count(); ++i) y = f(y, ordered(call.x(i), call.type(0)));
  return {call.give(ordered(y, call.type(0)))};
}

Outputs mean_of(const Call& call) {
  Tensor y = call.x(0);
  for (std::size_t i = 1; i < call.count(); ++i) y = y + call.x(i);
  return {call.give(y / static_cast<double>(call.count()))};
}

Tensor absolute(const Tensor& x) { return x.dtype() == Dtype::u8 || x.dtype() == Dtype::boolean ? x : abs(x); }

/// NaN of a NaN, as NumPy and onnxruntime have it; sign() gives PyTorch's 0. The export knows it by its name.
Tensor sign_of(const Tensor& x) {
  if (!is_floating(x.dtype())) return sign(x);
  return composed(where(is_nan(x), std::numeric_limits<double>::quiet_NaN(), sign(x)), [&] {
    return Composition{"onnx_sign", {x}, {}, {}};
  });
}

Outputs quotient(const Call& call) {
  const Tensor b = second(call);
  return {call.give(call.type(0) == ElementType::u64 ? unsigned_quotient(call.x(0), b) : call.x(0) / b)};
}

Outputs mod(const Call& call) {
  const Tensor &a = call.x(0), &b = call.x(1);
  const bool as_c = call.attribute("fmod", std::int64_t{0}) != 0;
  // Of a rest that is 0 only the sign is another than remainder()'s.
  if (is_floating(call.type(0))) return {call.give(as_c ? fmod(a, b) : copysign(remainder(a, b), b))};
  if (call.type(0) == ElementType::u64) return {call.give(a - unsigned_quotient(a, b) * b)};
  const Tensor rest = a - a / b * b;
  if (as_c || a.dtype() == Dtype::u8) return {call.give(rest)};
  // The sign of the divisor, as Python.
  const Tensor zero = zeros_like(rest);
  return {call.give(where(logical_and(not_equal(rest, zero), not_equal(less(rest, zero), less(b, zero))), rest + b, rest))};
}

/// The exponent may have another type than the base, whose type the result has.
Outputs power(const Call& call) {
  const auto base = call.type(0);
  if (is_floating(base)) return {call.give(pow(call.x(0), cast(call.x(1), call.x(0).dtype())))};
  // A whole exponent by products, exact as long as the type holds them.
  if (call.in(1).host() && call.shape(1).numel() == 1 && !is_floating(call.type(1)) && call.integer(1) >= 0 &&
      call.integer(1) <= 64) {
    Tensor y = ones_like(call.x(0)), square = call.x(0);
    for (auto rest = call.integer(1); rest > 0; rest >>= 1) {
      if (rest & 1) y = y * square;
      if (rest > 1) square = square * square;
    }
    return {call.give(y)};
  }
  if (is_floating(call.type(1)))
    return {call.give_as(trunc(pow(cast(call.x(0), Dtype::f32), cast(call.x(1), Dtype::f32))), base)};
  // Whole exponents of data: products by their bits. A power below 0 is 0 but for 1 and -1.
  constexpr int bits = 32;
  const Tensor exponent = cast(call.x(1), Dtype::i64);
  Tensor square = call.x(0), y = ones_like(square);
  for (int bit = 0; bit < bits; ++bit) {
    if (bit > 0) square = square * square;
    y = where(eq((exponent >> bit) & 1, 1.0), y * square, y);
  }
  const Tensor odd = eq(exponent & 1, 1.0);
  const Tensor wide = cast(call.x(0), Dtype::i64);
  const Tensor root = where(eq(wide, 1.0), 1.0, where(eq(wide, -1.0), where(odd, -1.0, 1.0), 0.0));
  return {call.give(where(less(exponent, 0.0), cast(root, y.dtype()), y))};
}

Outputs bit_shift(const Call& call) {
  const auto direction = call.attribute("direction", std::string_view{});
  if (direction == "LEFT") return {call.give(bitwise_left_shift(call.x(0), call.x(1)))};
  if (direction == "RIGHT") return {call.give(shifted_right(call.x(0), call.x(1), call.type(0)))};
  call.fail(fmt::format("the direction is \"{}\"", direction));
}

Outputs clip(const Call& call) {
  Tensor x = call.x(0);
  if (call.opset() < 11) {
    const double low = call.attribute("min", -std::numeric_limits<double>::infinity());
    return {call.give(clamp(x, low, call.attribute("max", std::numeric_limits<double>::infinity())))};
  }
  const auto has = [&](std::size_t i) { return !call.has(i) || call.in(i).host(); };
  if (is_floating(call.type(0)) && has(1) && has(2)) {
    const double low = call.has(1) ? call.number(1) : -std::numeric_limits<double>::infinity();
    const double high = call.has(2) ? call.number(2) : std::numeric_limits<double>::infinity();
    if (low <= high) return {call.give(clamp(x, low, high))};
  }
  if (call.has(1)) x = maximum(x, call.x(1));
  if (call.has(2)) x = minimum(x, call.x(2));
  return {call.give(x)};
}

Outputs leaky(const Call& call) { return {call.give(leaky_relu(call.x(0), call.attribute("alpha", 0.01)))}; }
Outputs elu_of(const Call& call) { return {call.give(elu(call.x(0), call.attribute("alpha", 1.0)))}; }
Outputs celu_of(const Call& call) { return {call.give(celu(call.x(0), call.attribute("alpha", 1.0)))}; }

Outputs selu_of(const Call& call) {
  const auto* alpha = call.attribute("alpha");
  const auto* gamma = call.attribute("gamma");
  if (!alpha && !gamma) return {call.give(selu(call.x(0)))};
  const double a = call.attribute("alpha", 1.6732632423543772), g = call.attribute("gamma", 1.0507009873554805);
  return {call.give(elu(call.x(0), a) * g)};
}

Outputs thresholded(const Call& call) { return {call.give(threshold(call.x(0), call.attribute("alpha", 1.0), 0))}; }

Outputs hard_sigmoid(const Call& call) {
  const double alpha = call.attribute("alpha", 0.2), beta = call.attribute("beta", 0.5);
  return {call.give(clamp(call.x(0) * alpha + beta, 0, 1))};
}

Outputs gelu_of(const Call& call) {
  const bool by_tanh = call.attribute("approximate", std::string_view("none")) == "tanh";
  return {call.give(by_tanh ? gelu(call.x(0), Gelu::tanh) : gelu(call.x(0)))};
}

Tensor swish_of(const Call& call) {
  const double alpha = call.attribute("alpha", 1.0);
  return alpha == 1 ? silu(call.x(0)) : call.x(0) * sigmoid(call.x(0) * alpha);
}
Outputs swish(const Call& call) { return {call.give(swish_of(call))}; }

Outputs swiglu(const Call& call) {
  if (!(call.shape(0) == call.shape(1)))
    call.fail(fmt::format("a gate {} of values {}", to_string(call.shape(0)), to_string(call.shape(1))));
  return {call.give(swish_of(call) * call.x(1))};
}

Outputs shrink(const Call& call) {
  const double lambda = call.attribute("lambd", 0.5), bias = call.attribute("bias", 0.0);
  const bool whole = !is_floating(call.type(0));
  const Tensor x = whole ? cast(call.x(0), Dtype::f32) : call.x(0);
  return {call.give(where(less(x, -lambda), x + bias, where(greater(x, lambda), x - bias, 0.0)))};
}

Outputs prelu_of(const Call& call) {
  const Tensor& x = call.x(0);
  Tensor slope = call.x(1);
  if (call.opset() < 7 && slope.rank() == 1 && x.rank() > 1 && slope.numel() > 1) {
    std::vector<std::int64_t> channels(static_cast<std::size_t>(x.rank()), 1);
    channels[1] = slope.numel();
    slope = reshape(slope, channels);
  }
  return {call.give(where(less(x, zeros_like(x)), x * slope, x))};
}

Outputs infinite(const Call& call) {
  const Tensor& x = call.x(0);
  const bool above = call.attribute("detect_positive", std::int64_t{1}) != 0;
  const bool below = call.attribute("detect_negative", std::int64_t{1}) != 0;
  const Tensor all = is_inf(x);
  if (above && below) return {RunValue(all)};
  const Tensor sign = above ? greater(x, 0.0) : below ? less(x, 0.0) : is_nan(zeros_like(x));
  return {RunValue(logical_and(all, sign))};
}

Outputs choose(const Call& call) { return {call.give(where(call.x(0), call.x(1), call.x(2)), 1)}; }

Tensor add(const Tensor& a, const Tensor& b) { return a + b; }
Tensor sub(const Tensor& a, const Tensor& b) { return a - b; }
Tensor mul(const Tensor& a, const Tensor& b) { return a * b; }
Tensor negated(const Tensor& x) { return -x; }
Tensor soft_plus(const Tensor& x) { return softplus(x, 1); }

}  // namespace

std::vector<Operator> elementwise_operators() {
  // clang-format off
  return {
      {"Abs", 1, unary<absolute>}, {"Acos", 1, unary<acos>}, {"Acosh", 9, unary<acosh>}, {"Add", 1, binary<add>},
      {"And", 1, comparison<logical_and>}, {"Asin", 1, unary<asin>}, {"Asinh", 9, unary<asinh>},
      {"Atan", 1, unary<atan>}, {"Atanh", 9, unary<atanh>}, {"BitShift", 11, bit_shift},
      {"BitwiseAnd", 18, binary<bitwise_and>}, {"BitwiseNot", 18, unary<bitwise_not>}, {"BitwiseOr", 18, binary<bitwise_or>},
      {"BitwiseXor", 18, binary<bitwise_xor>}, {"Ceil", 1, rounding<ceil>}, {"Celu", 12, celu_of}, {"Clip", 1, clip},
      {"Cos", 1, unary<cos>}, {"Cosh", 9, unary<cosh>}, {"Div", 1, quotient}, {"Elu", 1, elu_of},
      {"Equal", 1, comparison<eq>}, {"Erf", 9, unary<erf>}, {"Exp", 1, unary<exp>}, {"Floor", 1, rounding<floor>},
      {"Gelu", 20, gelu_of}, {"Greater", 1, comparison<greater>}, {"GreaterOrEqual", 12, comparison<greater_equal>},
      {"HardSigmoid", 1, hard_sigmoid}, {"HardSwish", 14, unary<hardswish>}, {"IsInf", 10, infinite},
      {"IsNaN", 9, predicate<is_nan>}, {"LeakyRelu", 1, leaky}, {"Less", 1, comparison<less>},
      {"LessOrEqual", 12, comparison<less_equal>}, {"Log", 1, unary<log>}, {"Max", 1, extreme<maximum>},
      {"Mean", 1, mean_of}, {"Min", 1, extreme<minimum>}, {"Mish", 18, unary<mish>}, {"Mod", 10, mod},
      {"Mul", 1, binary<mul>}, {"Neg", 1, unary<negated>}, {"Not", 1, predicate<logical_not>},
      {"Or", 1, comparison<logical_or>}, {"PRelu", 1, prelu_of, {Role::data, Role::weight}}, {"Pow", 1, power},
      {"Reciprocal", 1, unary<reciprocal>}, {"Relu", 1, unary<relu>}, {"Round", 11, rounding<round>}, {"Selu", 1, selu_of},
      {"Shrink", 9, shrink}, {"Sigmoid", 1, unary<sigmoid>}, {"Sign", 9, unary<sign_of>}, {"Sin", 1, unary<sin>},
      {"Sinh", 9, unary<sinh>}, {"Softplus", 1, unary<soft_plus>}, {"Softsign", 1, unary<softsign>}, {"Sqrt", 1, unary<sqrt>},
      {"Sub", 1, binary<sub>}, {"Sum", 1, variadic<add>}, {"SwiGLU", 28, swiglu}, {"Swish", 24, swish},
      {"Tan", 1, unary<tan>}, {"Tanh", 1, unary<tanh>}, {"ThresholdedRelu", 10, thresholded}, {"Where", 9, choose},
      {"Xor", 1, comparison<logical_xor>},
  };
  // clang-format on
}

}  // namespace clnet::onnx
