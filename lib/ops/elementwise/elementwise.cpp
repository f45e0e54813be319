// The elementwise operations: one row each of name, entry of the catalogue, accepted dtypes, expression and gradient. See
// lib/graph/op.h for what an expression may use.
#include "lib/ops/elementwise/elementwise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/graph/autocast.h"
#include "lib/graph/number.h"
#include "lib/graph/require.h"
#include "lib/ops/as_f32.h"
#include "lib/ops/catalogue.h"
#include "lib/ops/elementwise/f64.h"
#include "lib/ops/elementwise/rows.h"

namespace clnet {

namespace ops {

void require_floating(std::string_view op, const Spec& spec) {
  if (!is_floating(spec.dtype)) throw DtypeError(fmt::format("{}: needs f32, f16, bf16 or f64, got {}", op, to_string(spec)));
}

void require_same_dtype(std::string_view op, const Spec& a, const Spec& b) {
  const auto is_cast = [](const Spec& spec) { return is_floating(spec.dtype) && spec.dtype != Dtype::f64; };
  if (a.dtype == b.dtype || (autocasting() && is_cast(a) && is_cast(b))) return;
  throw DtypeError(fmt::format("{}: operands {} and {} differ in dtype; cast() one", op, to_string(a), to_string(b)));
}

namespace {

struct FirstTable {
  static constexpr int before = __COUNTER__;
};
#define CLNET_TABLE FirstTable

/// Whether f16 and bf16 have the number, as they have 0, 1 and 6.
bool exact_in_halves(double value) {
  constexpr int digits = 8;
  constexpr double least = 0x1p-14, most = 65504;
  int exponent = 0;
  const double scaled = std::ldexp(std::frexp(value, &exponent), digits);
  return value == 0 || (std::abs(value) >= least && std::abs(value) <= most && scaled == std::floor(scaled));
}

/// Beyond it the gradients of activations are 0 or 1 in f32, and at infinity their formulas would be 0 * infinity.
Tensor near_zero(const Tensor& x) { return clamp(x, -1e3, 1e3); }

template <int halves>
Tensors power_vjp(const At& t) {
  return {t.g * (pow(t.a, halves / 2.0 - 1.0) * (halves / 2.0))};
}

/// The gradient of max and min: to the chosen operand, halved where both are equal.
Tensors chosen(const At& t, Tensor (*first)(const Tensor&, const Tensor&), Tensor (*second)(const Tensor&, const Tensor&)) {
  const Tensor rest = where(eq(t.a, t.b), t.g * 0.5, scalar_like(0, t.g));
  return both(
      t, [&] { return where(first(t.a, t.b), t.g, rest); }, [&] { return where(second(t.a, t.b), t.g, rest); });
}

}  // namespace

}  // namespace ops

// The table keeps its rows short by hand.
// clang-format off
CLNET_UNARY(abs, {.torch = "abs", .onnx = {"Abs", 13}, .method = true}, Takes::all, false, "a <= 0 ? 0 - a : a", [](const At& t) { return Tensors{t.g * sign(t.a)}; }, Formula::simple)
CLNET_ROW(neg_row, "neg", 1, {.torch = "neg", .onnx = {"Neg", 13}}, Takes::all, false, "-a", [](const At& t) { return Tensors{-t.g}; }, Formula::simple)
CLNET_UNARY(sign, {.torch = "sign", .onnx = {"Sign", 13}, .gradient = Gradient::none, .method = true}, Takes::all, false, "(a > 0) - (a < 0)", [](const At& t) { return Tensors{zeros_like(t.g)}; }, Formula::simple)
CLNET_UNARY(exp, {.torch = "exp", .onnx = {"Exp", 13}, .roundings = 6, .last_places = 3, .method = true, .a = {-3, 3}}, Takes::floats, false, "clnet_exp(a)", [](const At& t) { return Tensors{t.g * t.y}; }, Formula::simple, Precision::full)
CLNET_UNARY(log, {.torch = "log", .onnx = {"Log", 13}, .roundings = 6, .last_places = 3, .method = true, .a = {0.1}}, Takes::floats, false, "clnet_log(a)", [](const At& t) { return Tensors{t.g / t.a}; }, Formula::simple, Precision::full)
CLNET_UNARY(log1p, {.torch = "log1p", .roundings = 4, .last_places = 2, .method = true, .a = {-0.8}}, Takes::floats, false, "clnet_log1p(a)", [](const At& t) { return Tensors{t.g / (t.a + 1.0)}; }, Formula::composite, Precision::full)
CLNET_UNARY(log2, {.torch = "log2", .roundings = 6, .last_places = 3, .method = true, .a = {0.1}}, Takes::floats, false, "clnet_log2(a)", [](const At& t) { return Tensors{t.g / t.a * 1.4426950408889634}; }, Formula::composite, Precision::full)
CLNET_UNARY(expm1, {.torch = "expm1", .roundings = 6, .last_places = 3, .method = true, .a = {-3, 3}}, Takes::floats, false, "clnet_expm1(a)", [](const At& t) { return Tensors{t.g * (t.y + 1.0)}; }, Formula::composite, Precision::full)
CLNET_UNARY(stop_gradient, {.torch = "Tensor.detach"}, Takes::all, false, "a", nullptr, Formula::simple)
CLNET_UNARY(sqrt, {.torch = "sqrt", .onnx = {"Sqrt", 13}, .roundings = 6, .last_places = 3, .method = true, .a = {0.1}}, Takes::floats, false, "sqrt(a)", [](const At& t) { return Tensors{t.g * 0.5 / t.y}; })
CLNET_UNARY(rsqrt, {.torch = "rsqrt", .roundings = 8, .last_places = 4, .method = true, .a = {0.1}}, Takes::floats, false, "1.0f / sqrt(a)",
    [](const At& t) { return Tensors{t.g * -0.5 * t.y / t.a}; }, Formula::composite, Precision::full)
CLNET_UNARY(square, {.torch = "square", .roundings = 1, .last_places = 0.5, .method = true}, Takes::all, false, "a * a", [](const At& t) { return Tensors{t.g * 2.0 * t.a}; },
    Formula::composite, Precision::full)
CLNET_UNARY(reciprocal, {.torch = "reciprocal", .onnx = {"Reciprocal", 13}, .roundings = 5, .last_places = 2.5, .method = true, .a = {0.3}}, Takes::floats, false, "1.0f / a",
    [](const At& t) { return Tensors{-t.g * square(t.y)}; }, Formula::composite, Precision::full)
CLNET_UNARY(sin, {.torch = "sin", .onnx = {"Sin", 22}, .roundings = 8, .last_places = 4, .method = true}, Takes::floats, false, "clnet_sin(a)", [](const At& t) { return Tensors{t.g * cos(t.a)}; })
CLNET_UNARY(cos, {.torch = "cos", .onnx = {"Cos", 22}, .roundings = 8, .last_places = 4, .method = true}, Takes::floats, false, "clnet_cos(a)", [](const At& t) { return Tensors{-t.g * sin(t.a)}; })
CLNET_UNARY(erf, {.torch = "erf", .onnx = {"Erf", 13}, .roundings = 32, .last_places = 16, .method = true}, Takes::floats, false, "clnet_erf(a)",
    [](const At& t) { return Tensors{t.g * exp(-square(t.a)) * 1.1283791670955126}; })
CLNET_UNARY(floor, {.torch = "floor", .onnx = {"Floor", 13}, .gradient = Gradient::none, .method = true}, Takes::floats, false, "clnet_floor(a)", [](const At& t) { return Tensors{zeros_like(t.g)}; }, Formula::simple)
CLNET_UNARY(ceil, {.torch = "ceil", .onnx = {"Ceil", 13}, .gradient = Gradient::none, .method = true}, Takes::floats, false, "clnet_ceil(a)", [](const At& t) { return Tensors{zeros_like(t.g)}; }, Formula::simple)
CLNET_UNARY(round, {.torch = "round", .onnx = {"Round", 22}, .gradient = Gradient::none, .method = true}, Takes::floats, false, "clnet_rint(a)", [](const At& t) { return Tensors{zeros_like(t.g)}; }, Formula::simple)
CLNET_UNARY(trunc, {.torch = "trunc", .gradient = Gradient::none, .method = true}, Takes::floats, false, "a < 0 ? clnet_ceil(a) : clnet_floor(a)",
    [](const At& t) { return Tensors{zeros_like(t.g)}; }, Formula::simple)
// Recurrences have these two by the thousand, and their gradients are one node each: of a gradient a and an output b.
CLNET_ROW(tanh_gradient_row, "tanh_gradient", 2, {}, Takes::floats, false, "a * (1.0f - b * b)", [](const At& t) {
      return Tensors{t.g * (1.0 - square(t.b)), t.g * t.a * t.b * -2.0};
    })
CLNET_ROW(sigmoid_gradient_row, "sigmoid_gradient", 2, {}, Takes::floats, false, "a * b * (1.0f - b)", [](const At& t) {
      return Tensors{t.g * t.b * (1.0 - t.b), t.g * t.a * (1.0 - t.b * 2.0)};
    })
CLNET_UNARY(tanh, {.torch = "tanh", .onnx = {"Tanh", 13}, .roundings = 10, .last_places = 7, .method = true}, Takes::floats, false, "clnet_tanh(a)",
    [](const At& t) { return Tensors{binary(tanh_gradient_row, t.g, t.y)}; })
CLNET_UNARY(sigmoid, {.torch = "sigmoid", .onnx = {"Sigmoid", 13}, .roundings = 10, .last_places = 7, .method = true}, Takes::floats, false, "clnet_sigmoid(a)",
    [](const At& t) { return Tensors{binary(sigmoid_gradient_row, t.g, t.y)}; })
CLNET_UNARY(log_sigmoid, {.torch = "logsigmoid", .roundings = 10, .last_places = 6}, Takes::floats, false, "fmin(a, 0.0f) - clnet_log1p(clnet_exp(-fabs(a)))",
    [](const At& t) { return Tensors{t.g * sigmoid(-t.a)}; }, Formula::composite, Precision::full)
CLNET_UNARY(relu, {.torch = "relu", .onnx = {"Relu", 14}, .method = true}, Takes::all, false, "a < 0 ? 0 : a",
    [](const At& t) { return Tensors{where(greater(t.y, 0.0), t.g, ops::scalar_like(0, t.g))}; }, Formula::simple)
CLNET_ROW(leaky_relu_row, "leaky_relu", 1, {.torch = "leaky_relu", .onnx = {"LeakyRelu", 16}, .last_places = 0.5}, Takes::floats, false, "a > 0 ? a : p0 * a",
    [](const At& t) {
      // With a positive slope the output tells the sign, and the input need not be kept.
      return Tensors{where(greater(t.p[0] > 0 ? t.y : t.a, 0.0), t.g, t.g * t.p[0])};
    }, Formula::simple)
CLNET_ROW(elu_row, "elu", 1, {.torch = "elu", .onnx = {"Elu", 22}, .roundings = 10, .last_places = 5}, Takes::floats, false, "a > 0 ? a : p0 * clnet_expm1(a)", [](const At& t) {
      return Tensors{where(greater(t.a, 0.0), t.g, t.g * exp(minimum(t.a, 0.0)) * t.p[0])};
    })
CLNET_ROW(celu_row, "celu", 1, {.torch = "celu", .onnx = {"Celu", 28}, .roundings = 10, .last_places = 5}, Takes::floats, false, "a > 0 ? a : p0 * clnet_expm1(a / p0)", [](const At& t) {
      return Tensors{where(greater(t.a, 0.0), t.g, t.g * exp(minimum(t.a, 0.0) / t.p[0]))};
    })
CLNET_UNARY(selu, {.torch = "selu", .onnx = {"Selu", 22}, .roundings = 10, .last_places = 6}, Takes::floats, false, "1.0507009873554805f * (a > 0 ? a : 1.6732632423543772f * clnet_expm1(a))",
    [](const At& t) {
      return Tensors{t.g * 1.0507009873554805 *
                     where(greater(t.a, 0.0), ones_like(t.a), exp(minimum(t.a, 0.0)) * 1.6732632423543772)};
    })
CLNET_ROW(normal_cdf_row, "normal_cdf", 1, {}, Takes::floats, false, "clnet_normal_cdf(a)",
    [](const At& t) { return Tensors{t.g * exp(square(t.a) * -0.5) * 0.3989422804014327}; })
CLNET_ROW(gelu_erf_row, "gelu_erf", 1, {}, Takes::floats, false, "(a < -200.0f ? -200.0f : a) * clnet_normal_cdf(a)", [](const At& t) {
      const Tensor a = near_zero(t.a);
      return Tensors{t.g * (normal_cdf(a) + a * exp(square(a) * -0.5) * 0.3989422804014327)};
    })
CLNET_ROW(gelu_tanh_row, "gelu_tanh", 1, {}, Takes::floats, false,
    "(a < -200.0f ? -200.0f : a) * clnet_sigmoid(1.5957691216057307f * (a + 0.044715f * a * a * a))", [](const At& t) {
      // 1 + tanh(u) = 2 sigma(2u)
      const Tensor a = near_zero(t.a), squared = square(a);
      const Tensor s = sigmoid((a + squared * a * 0.044715) * 1.5957691216057307);
      const Tensor slope = (squared * 0.134145 + 1.0) * 1.5957691216057307;
      return Tensors{t.g * (s + a * s * (1.0 - s) * slope)};
    })
CLNET_UNARY(silu, {.torch = "silu", .onnx = {"Swish", 24}, .roundings = 10, .last_places = 9}, Takes::floats, false, "(a < -200.0f ? -200.0f : a) * clnet_sigmoid(a)", [](const At& t) {
      const Tensor a = near_zero(t.a), s = sigmoid(a);
      return Tensors{t.g * s * (a * (1.0 - s) + 1.0)};
    })
CLNET_UNARY(mish, {.torch = "mish", .onnx = {"Mish", 22}, .roundings = 20, .last_places = 12}, Takes::floats, false, "clnet_mish(a)", [](const At& t) {
      const Tensor a = near_zero(t.a), soft = tanh(softplus(a));
      return Tensors{t.g * (soft + a * sigmoid(a) * (1.0 - square(soft)))};
    })
CLNET_UNARY(hardswish, {.torch = "hardswish", .onnx = {"HardSwish", 22}, .roundings = 8, .last_places = 4}, Takes::floats, false, "a <= -3.0f ? 0.0f : a >= 3.0f ? a : a * (a + 3.0f) / 6.0f", [](const At& t) {
      const Tensor middle = where(less(t.a, 3.0), t.a / 3.0 + 0.5, ops::scalar_like(1, t.a));
      return Tensors{t.g * where(less_equal(t.a, -3.0), ops::scalar_like(0, t.a), middle)};
    })
CLNET_UNARY(hardsigmoid, {.torch = "hardsigmoid", .onnx = {"HardSigmoid", 22}, .roundings = 6, .last_places = 3}, Takes::floats, false, "a <= -3.0f ? 0.0f : a >= 3.0f ? 1.0f : (a + 3.0f) / 6.0f", [](const At& t) {
      const Tensor inside = logical_and(greater(t.a, -3.0), less(t.a, 3.0));
      return Tensors{where(inside, t.g / 6.0, ops::scalar_like(0, t.g))};
    })
CLNET_ROW(softplus_row, "softplus", 1, {.torch = "softplus", .onnx = {"Softplus", 22}, .roundings = 10, .last_places = 7}, Takes::floats, false, "a * p0 > p1 ? a : clnet_log1p(clnet_exp(a * p0)) * p2", [](const At& t) {
      const Tensor scaled = t.a * t.p[0];
      return Tensors{t.g * where(greater(scaled, t.p[1]), ones_like(t.a), sigmoid(scaled))};
    }, Formula::composite, Precision::full)
CLNET_UNARY(softsign, {.torch = "softsign", .onnx = {"Softsign", 22}, .roundings = 8, .last_places = 4}, Takes::floats, false, "fabs(a) > 1e9f ? (a > 0 ? 1.0f : -1.0f) : a / (1.0f + fabs(a))",
    [](const At& t) { return Tensors{t.g / square(abs(t.a) + 1.0)}; })
CLNET_ROW(clamp_row, "clamp", 1, {.torch = "clamp", .onnx = {"Clip", 13}, .method = true}, Takes::floats, false, "a < p0 ? p0 : a > p1 ? p1 : a", [](const At& t) {
      // An infinite bound is none: an infinite element lies within.
      const Tensor above = std::isinf(t.p[0]) ? Tensor{} : greater(t.a, t.p[0]);
      const Tensor below = std::isinf(t.p[1]) ? Tensor{} : less(t.a, t.p[1]);
      if (!above.defined() && !below.defined()) return Tensors{t.g};
      const Tensor inside = !above.defined() ? below : !below.defined() ? above : logical_and(above, below);
      return Tensors{where(inside, t.g, ops::scalar_like(0, t.g))};
    }, Formula::simple)
CLNET_ROW(hardtanh_row, "hardtanh", 1, {.torch = "hardtanh", .onnx = {"Clip", 13}}, Takes::floats, false, "a < p0 ? p0 : a > p1 ? p1 : a", [](const At& t) {
      // The output tells, and the input need not be kept, unless the dtype rounds a bound.
      const bool exact = t.a.dtype() == Dtype::f32 || t.a.dtype() == Dtype::f64 || (exact_in_halves(t.p[0]) && exact_in_halves(t.p[1]));
      const Tensor& x = exact ? t.y : t.a;
      const Tensor inside = logical_and(greater(x, t.p[0]), less(x, t.p[1]));
      return Tensors{where(inside, t.g, ops::scalar_like(0, t.g))};
    }, Formula::simple)
CLNET_UNARY(is_nan, {.torch = "isnan", .onnx = {"IsNaN", 20}, .method = true}, Takes::floats, true, "isnan(a) ? 1 : 0", nullptr)
CLNET_ROW(nan_to_num_row, "nan_to_num", 1, {.torch = "nan_to_num", .method = true}, Takes::floats, false, "a != a ? p0 : a > 3.40282347e38f ? p1 : a < -3.40282347e38f ? p2 : a", [](const At& t) {
      const Tensor finite = less(abs(t.a), std::numeric_limits<double>::infinity());
      return Tensors{where(finite, t.g, ops::scalar_like(0, t.g))};
    }, Formula::simple)
CLNET_UNARY(logical_not, {.torch = "logical_not", .onnx = {"Not", 1}, .method = true}, Takes::bools, true, "!a", nullptr)
CLNET_ROW(add_row, "add", 2, {.torch = "add", .onnx = {"Add", 14}, .roundings = 1, .last_places = 0.5}, Takes::all, false, "a + b", [](const At& t) { return Tensors{t.g, t.g}; }, Formula::simple)
CLNET_ROW(sub_row, "sub", 2, {.torch = "sub", .onnx = {"Sub", 14}, .roundings = 1, .last_places = 0.5}, Takes::all, false, "a - b", [](const At& t) {
      return both(t, [&] { return t.g; }, [&] { return -t.g; });
    }, Formula::simple)
CLNET_ROW(mul_row, "mul", 2, {.torch = "mul", .onnx = {"Mul", 14}, .roundings = 1, .last_places = 0.5}, Takes::all, false, "a * b", [](const At& t) {
      return both(t, [&] { return t.g * t.b; }, [&] { return t.g * t.a; });
    }, Formula::simple)
CLNET_ROW(div_row, "div", 2, {.torch = "div", .onnx = {"Div", 14}, .roundings = 5, .last_places = 2.5, .b = {0.5, 2}}, Takes::all, false, "a / b", [](const At& t) {
      return both(t, [&] { return t.g / t.b; }, [&] { return -t.g * t.y / t.b; });
    }, Formula::composite, Precision::widest,
    // A CPU's division of integers ends the process where it has no result; both sides of a choice of vectors are computed.
    "b == 0 ? 0 : b == -1 ? 0 - a : a / (b == 0 || b == -1 ? 1 : b)")
CLNET_ROW(pow_row, "pow", 2, {.torch = "pow", .onnx = {"Pow", 15}, .roundings = 32, .last_places = 16, .method = true, .a = {0.5, 2}, .b = {-2, 2}}, Takes::floats, false, "clnet_pow(a, b)", [](const At& t) {
      if (const auto power = number_of(t.b)) {
        const double p = power->value;
        return Tensors{p == 0 ? zeros_like(t.a) : t.g * (pow(t.a, p - 1.0) * p), Tensor{}};
      }
      const auto base = [&] {
        return t.g * where(eq(t.b, 0.0), ops::scalar_like(0, t.y), t.b * pow(t.a, t.b - 1.0));
      };
      const auto exponent = [&] {
        const Tensor zero_base = logical_and(eq(t.a, 0.0), greater_equal(t.b, 0.0));
        return t.g * where(zero_base, ops::scalar_like(0, t.y), t.y * log(t.a));
      };
      return both(t, base, exponent);
    }, Formula::composite, Precision::full)
// Powers that need no logarithm, pow()'s at the limits too.
CLNET_ROW(cube_row, "pow_3", 1, {}, Takes::floats, false, "a * a * a", power_vjp<6>, Formula::composite, Precision::full)
CLNET_ROW(fourth_row, "pow_4", 1, {}, Takes::floats, false, "(a * a) * (a * a)", power_vjp<8>, Formula::composite, Precision::full)
CLNET_ROW(inverse_square_row, "pow_minus_2", 1, {}, Takes::floats, false, "(1.0f / a) * (1.0f / a)", power_vjp<-4>, Formula::composite, Precision::full)
CLNET_ROW(half_row, "pow_half", 1, {}, Takes::floats, false, "clnet_root(a)", power_vjp<1>,
    Formula::composite, Precision::full)
CLNET_ROW(minus_half_row, "pow_minus_half", 1, {}, Takes::floats, false, "1.0f / clnet_root(a)", power_vjp<-1>,
    Formula::composite, Precision::full)
CLNET_ROW(three_halves_row, "pow_3_halves", 1, {}, Takes::floats, false, "fabs(a * clnet_root(a))", power_vjp<3>,
    Formula::composite, Precision::full)
CLNET_BINARY(fmod, {.torch = "fmod", .onnx = {"Mod(fmod)", 28}, .method = true, .b = {0.5, 2}}, Takes::floats, false, "clnet_fmod(a, b)", [](const At& t) {
      const auto of_b = [&] {
        const Tensor ratio = t.a / t.b;
        return -t.g * sign(ratio) * floor(abs(ratio));
      };
      return both(t, [&] { return t.g; }, of_b);
    })
CLNET_BINARY(atan2, {.torch = "atan2", .roundings = 12, .last_places = 6, .method = true}, Takes::floats, false, "clnet_atan2(a, b)", [](const At& t) {
      // The origin has no angle, and no gradient, as in PyTorch.
      const Tensor squares = square(t.a) + square(t.b);
      const Tensor scaled = t.g / where(eq(squares, 0.0), std::numeric_limits<double>::infinity(), squares);
      return both(t, [&] { return scaled * t.b; }, [&] { return -scaled * t.a; });
    })
CLNET_BINARY(hypot, {.torch = "hypot", .roundings = 4, .last_places = 3, .method = true, .b = {0.5, 2}}, Takes::floats, false, "fabs(a) > 3.40282347e38f ? fabs(a) : fabs(b) > 3.40282347e38f ? fabs(b) : a == 0 && b == 0 ? 0.0f : fabs(a) > fabs(b) ? "
    "fabs(a) * sqrt(1.0f + (b / a) * (b / a)) : fabs(b) * sqrt(1.0f + (a / b) * (a / b))", [](const At& t) {
      return both(t, [&] { return t.g * (t.a / t.y); }, [&] { return t.g * (t.b / t.y); });
    }, Formula::composite, Precision::full)
CLNET_BINARY(logaddexp, {.torch = "logaddexp", .roundings = 6, .last_places = 3, .method = true}, Takes::floats, false, "a == b ? a + 0.693147181f : (a > b ? a : b) + clnet_log1p(clnet_exp(-fabs(a - b)))", [](const At& t) {
      return both(t, [&] { return t.g * sigmoid(t.a - t.b); }, [&] { return t.g * sigmoid(t.b - t.a); });
    }, Formula::composite, Precision::full)
CLNET_BINARY(xlogy, {.torch = "xlogy", .roundings = 6, .last_places = 4, .method = true, .b = {1.5, 4}}, Takes::floats, false, "b != b ? b : a == 0 ? 0.0f : a * clnet_log(b)", [](const At& t) {
      // Where a is 0 it has a slope all the same, if b has a logarithm.
      const auto of_a = [&] {
        const Tensor none = logical_and(eq(t.a, 0.0), less_equal(t.b, 0.0)), safe = where(none, 1.0, t.b);
        return t.g * where(none, 0.0, log(safe));
      };
      return both(t, of_a, [&] { return t.g * t.a / t.b; });
    }, Formula::composite, Precision::full)

// A NaN in either operand gives NaN, as in PyTorch.
CLNET_BINARY(maximum, {.torch = "maximum", .onnx = {"Max", 13}, .method = true}, Takes::all, false, "a > b || a != a ? a : b",
    [](const At& t) { return chosen(t, greater, less); }, Formula::simple)
CLNET_BINARY(minimum, {.torch = "minimum", .onnx = {"Min", 13}, .method = true}, Takes::all, false, "a < b || a != a ? a : b",
    [](const At& t) { return chosen(t, less, greater); }, Formula::simple)
CLNET_BINARY(eq, {.torch = "eq", .onnx = {"Equal", 19}, .method = true}, Takes::all, true, "a == b", nullptr)
CLNET_BINARY(not_equal, {.torch = "ne", .method = true}, Takes::all, true, "a != b", nullptr)
CLNET_BINARY(less, {.torch = "lt", .onnx = {"Less", 13}, .method = true}, Takes::all, true, "a < b", nullptr)
CLNET_BINARY(less_equal, {.torch = "le", .onnx = {"LessOrEqual", 16}, .method = true}, Takes::all, true, "a <= b", nullptr)
CLNET_BINARY(greater, {.torch = "gt", .onnx = {"Greater", 13}, .method = true}, Takes::all, true, "a > b", nullptr)
CLNET_BINARY(greater_equal, {.torch = "ge", .onnx = {"GreaterOrEqual", 16}, .method = true}, Takes::all, true, "a >= b", nullptr)
CLNET_ROW(logical_and_row, "logical_and", 2, {.torch = "logical_and", .onnx = {"And", 7}, .method = true}, Takes::bools, true, "a && b", nullptr)
CLNET_ROW(logical_or_row, "logical_or", 2, {.torch = "logical_or", .onnx = {"Or", 7}, .method = true}, Takes::bools, true, "a || b", nullptr)
CLNET_ROW(bce_row, "binary_cross_entropy", 2, {}, Takes::floats, false,
    "-(b * (clnet_log(a) < -100.0f ? -100.0f : clnet_log(a)) + (1.0f - b) * (clnet_log1p(-a) < -100.0f ? -100.0f : clnet_log1p(-a)))",
    [](const At& t) {
      const Tensor slope = (t.a - t.b) / maximum(t.a * (1.0 - t.a), 1e-12);
      return Tensors{t.g * slope, t.g * (maximum(log1p(-t.a), -100.0) - maximum(log(t.a), -100.0))};
    })
CLNET_ROW(bce_with_logits_row, "binary_cross_entropy_with_logits", 2, {}, Takes::floats, false, "(a < 0 ? 0 : a) - a * b + clnet_log1p(clnet_exp(-fabs(a)))",
    [](const At& t) {
      return Tensors{t.g * (sigmoid(t.a) - t.b), -t.g * t.a};
    })
CLNET_ROW(gaussian_nll_row, "gaussian_nll", 2, {}, Takes::floats, false,
    "0.5f * (clnet_log(b < p0 ? p0 : b) + a * a / (b < p0 ? p0 : b))", [](const At& t) {
      const Tensor ratio = t.a / maximum(t.b, t.p[0]);
      return Tensors{t.g * ratio, t.g * (reciprocal(maximum(t.b, t.p[0])) - square(ratio)) * 0.5};
    })

namespace ops {

namespace {

constexpr int behind_table = __COUNTER__;
// clang-format on
#undef CLNET_TABLE

class TableOp : public Op {
 public:
  /// number: which input is a C++ number beside a tensor; -1: none.
  TableOp(const Row& row, std::vector<double> parameters, int number = -1)
      : row_(row), parameters_(std::move(parameters)), number_(number) {}
  std::string_view name() const override { return row_.name; }
  Precision precision() const override { return row_.precision; }
  std::optional<std::span<const Tensor>> differentiated() const override {
    if (row_.vjp || row_.gives_bool) return std::nullopt;
    return std::span<const Tensor>();
  }
  Fields fields() const override {
    constexpr std::string_view names[] = {"p0", "p1", "p2"};
    Fields result;
    for (std::size_t i = 0; i < parameters_.size(); ++i) result.emplace_back(names[i], parameters_[i]);
    if (number_ >= 0) result.emplace_back("number", std::int64_t{number_});
    return result;
  }
  Expression expr(const Specs& inputs) const override {
    const auto floating = [](const Spec& spec) { return is_floating(spec.dtype); };
    const bool whole = !row_.whole.empty() && std::none_of(inputs.begin(), inputs.end(), floating);
    const bool f64 = std::any_of(inputs.begin(), inputs.end(), [](const Spec& spec) { return spec.dtype == Dtype::f64; });
    return {std::string(whole ? row_.whole : f64 ? f64_expression(row_.name, row_.expr) : row_.expr), parameters_};
  }

  Specs infer(const Specs& inputs) const override {
    const auto& tensor = inputs[number_ == 0 ? 1 : 0];
    for (const auto& input : inputs) {
      if (number_ >= 0 && &input != &tensor) continue;
      if (row_.takes == Takes::floats) require_floating(name(), input);
      if (row_.takes == Takes::bools && input.dtype != Dtype::boolean)
        throw DtypeError(fmt::format("{}: needs bool, got {}", name(), to_string(input)));
      if (row_.takes == Takes::whole && is_floating(input.dtype))
        throw DtypeError(fmt::format("{}: needs integers or bool, got {}", name(), to_string(input)));
      if (row_.takes == Takes::integers && (is_floating(input.dtype) || input.dtype == Dtype::boolean))
        throw DtypeError(fmt::format("{}: needs integers, got {}", name(), to_string(input)));
      require_same_dtype(name(), tensor, input);
    }
    auto shape = inputs[0].shape;
    if (inputs.size() == 2) shape = broadcast(shape, inputs[1].shape, name());
    if (row_.gives_bool) return {{shape, Dtype::boolean}};
    if (number_ < 0 || is_floating(tensor.dtype)) return {{shape, tensor.dtype}};
    const auto number = inputs[static_cast<std::size_t>(number_)].dtype;
    if (is_floating(number) && (row_.takes == Takes::whole || row_.takes == Takes::integers))
      throw DtypeError(fmt::format("{}: a number beside {} must be a whole one that it holds", name(), to_string(tensor)));
    if (is_floating(number)) return {{shape, number}};
    return {{shape, tensor.dtype == Dtype::boolean ? Dtype::i64 : tensor.dtype}};
  }

  Tensors vjp(const Tensors& inputs, const Tensors& outputs, const Tensors& gradients) const override {
    if (!row_.vjp) return Tensors(inputs.size());
    const auto operand = [&](const Tensor& x) { return row_.formula == Formula::simple || number_of(x) ? x : as_f32(x); };
    auto result =
        row_.vjp({operand(inputs[0]), operand(inputs.back()), operand(outputs[0]), operand(gradients[0]), parameters_, number_});
    for (std::size_t i = 0; i < result.size(); ++i) {
      if (static_cast<int>(i) == number_)
        result[i] = {};
      else
        result[i] = cast(sum_to(result[i], inputs[i].shape()), inputs[i].dtype());
    }
    return result;
  }

 private:
  const Row& row_;
  std::vector<double> parameters_;
  int number_;
};

template <class T>
Tensor number_leaf(double number, T value) {
  std::vector<std::byte> bytes(sizeof value);
  std::memcpy(bytes.data(), &value, sizeof value);
  return make_leaf({Shape{}, dtype_of<T>}, std::make_shared<NumberValue>(number, std::move(bytes)));
}

/// The integer that compares with every integer as the number with a fraction does.
double compared(std::string_view comparison, double number) {
  if (comparison == "eq" || comparison == "not_equal") return std::numeric_limits<double>::quiet_NaN();
  const bool up = comparison == "less" || comparison == "greater_equal";
  return up ? std::ceil(number) : std::floor(number);
}

/// Whether an integer dtype has this number; bool counts as the i64 that it becomes.
bool holds(Dtype dtype, double number) {
  const auto within = [&](double least, double end) { return number == std::floor(number) && number >= least && number < end; };
  switch (dtype) {
    case Dtype::i8: return within(-0x1p7, 0x1p7);
    case Dtype::u8: return within(0, 0x1p8);
    case Dtype::i32: return within(-0x1p31, 0x1p31);
    default: return within(-0x1p63, 0x1p63);
  }
}

/// The number as an operand beside `tensor`: f64 beside f64, otherwise f32, or an integer where the tensor and the number are
/// integers. `swapped`: the number stands first.
Tensor number_beside(const Row& row, const Tensor& tensor, double number, bool swapped) {
  if (tensor.dtype() == Dtype::f64) return number_leaf(number, number);
  if (is_floating(tensor.dtype())) return number_leaf(number, static_cast<float>(number));
  if (row.gives_bool) {
    if (std::isfinite(number) && number != std::floor(number)) {
      static const std::map<std::string_view, std::string_view> mirrored{
          {"less", "greater"}, {"less_equal", "greater_equal"}, {"greater", "less"}, {"greater_equal", "less_equal"}};
      const auto found = mirrored.find(row.name);
      number = compared(swapped && found != mirrored.end() ? found->second : row.name, number);
    }
    // Beside a float an i64 is rounded to one: a number beyond every i64 must be beyond all that it may be rounded to.
    if (!std::isnan(number) && !holds(Dtype::i64, number))
      number = std::copysign(std::numeric_limits<double>::infinity(), number);
  }
  if (!holds(row.gives_bool ? Dtype::i64 : tensor.dtype(), number)) return number_leaf(number, static_cast<float>(number));
  const auto whole = static_cast<std::int64_t>(number);
  const bool narrow = tensor.dtype() != Dtype::i64 && tensor.dtype() != Dtype::boolean && holds(Dtype::i32, number);
  return narrow ? number_leaf(number, static_cast<std::int32_t>(whole)) : number_leaf(number, whole);
}

/// The narrowest integer dtype that has all values of both.
Dtype common_integer(Dtype a, Dtype b) {
  for (const auto wide : {Dtype::i64, Dtype::i32})
    if (a == wide || b == wide) return wide;
  if (a == Dtype::boolean) return b;
  if (b == Dtype::boolean) return a;
  return Dtype::i32;
}

class Where : public Op {
 public:
  std::string_view name() const override { return "where"; }
  Specs infer(const Specs& inputs) const override {
    if (inputs[0].dtype != Dtype::boolean)
      throw DtypeError(fmt::format("where: the condition must be bool, got {}", to_string(inputs[0])));
    require_same_dtype(name(), inputs[1], inputs[2]);
    return {{broadcast(inputs[0].shape, broadcast(inputs[1].shape, inputs[2].shape, name()), name()), inputs[1].dtype}};
  }
  Expression expr(const Specs&) const override { return {"a ? b : c"}; }
  Tensors vjp(const Tensors& inputs, const Tensors&, const Tensors& gradients) const override {
    const Tensor zero = scalar_like(0, gradients[0]);
    return {Tensor{}, sum_to(where(inputs[0], gradients[0], zero), inputs[1].shape()),
            sum_to(where(inputs[0], zero, gradients[0]), inputs[2].shape())};
  }
};

}  // namespace

std::shared_ptr<const NumberValue> number_of(const Tensor& tensor) {
  const auto& node = node_of(tensor);
  return node && !node->op ? std::dynamic_pointer_cast<const NumberValue>(node->values[0].get()) : nullptr;
}

namespace {

/// As kernels that compute in float get them.
void round_to_f32(std::vector<double>& parameters) {
  for (auto& parameter : parameters) parameter = double{static_cast<float>(parameter)};
}

}  // namespace

Tensor unary(const Row& row, const Tensor& x, std::vector<double> parameters) {
  require_defined(row.name, {{"x", x}});
  if (x.dtype() != Dtype::f64) round_to_f32(parameters);
  return apply(std::make_shared<TableOp>(row, std::move(parameters)), {x});
}
Tensor binary(const Row& row, const Tensor& a, const Tensor& b) {
  require_defined(row.name, {{"a", a}, {"b", b}});
  if (row.gives_bool && a.dtype() != b.dtype() && !is_floating(a.dtype()) && !is_floating(b.dtype())) {
    const auto wide = common_integer(a.dtype(), b.dtype());
    return binary(row, convert(a, wide), convert(b, wide));
  }
  // A gradient's formula meets its operation's number as an operand.
  const bool first = number_of(a) != nullptr, second = number_of(b) != nullptr;
  return apply(std::make_shared<TableOp>(row, std::vector<double>{}, first == second ? -1 : first ? 0 : 1), {a, b});
}
Tensor binary(const Row& row, const Tensor& a, const Tensor& b, std::vector<double> parameters) {
  if (a.dtype() != Dtype::f64) round_to_f32(parameters);
  return apply(std::make_shared<TableOp>(row, std::move(parameters)), {a, b});
}
Tensor binary(const Row& row, const Tensor& a, double b) {
  require_defined(row.name, {{"a", a}});
  return binary(row, a, number_beside(row, a, b, false));
}
Tensor binary(const Row& row, double a, const Tensor& b) {
  require_defined(row.name, {{"b", b}});
  return binary(row, number_beside(row, b, a, true), b);
}

std::vector<Operation> elementwise_rows() {
  auto rows = entries<FirstTable>(std::make_integer_sequence<int, behind_table - FirstTable::before - 1>());
  // Operators, and functions with parameters.
  for (auto more : {function_rows(), whole_rows()}) rows.insert(rows.end(), more.begin(), more.end());
  for (const auto& row : {entry(add_row, operator+, operator+, operator+), entry(sub_row, operator-, operator-, operator-),
                          entry(mul_row, operator*, operator*, operator*), entry(div_row, operator/, operator/, operator/),
                          entry(neg_row, static_cast<Tensor (*)(const Tensor&)>(operator-)), entry(pow_row, pow, pow, pow),
                          entry(logical_and_row, logical_and), entry(logical_or_row, logical_or),
                          entry(leaky_relu_row, leaky_relu), entry(elu_row, elu), entry(celu_row, celu),
                          entry(hardtanh_row, hardtanh), entry(softplus_row, softplus), entry(clamp_row), entry(nan_to_num_row)})
    rows.push_back(row);
  return rows;
}

Tensor normal_cdf(const Tensor& x) { return unary(normal_cdf_row, x); }
Tensor cross_entropy_of_bits(const Tensor& x, const Tensor& t) { return binary(bce_row, x, t); }
Tensor cross_entropy_of_logits(const Tensor& x, const Tensor& t) { return binary(bce_with_logits_row, x, t); }
Tensor gaussian_nll(const Tensor& d, const Tensor& var, double eps) { return binary(gaussian_nll_row, d, var, {eps}); }

}  // namespace ops

using namespace ops;

Tensor cast(const Tensor& x, Dtype dtype) {
  require_defined("cast", {{"x", x}});
  return convert(x, dtype);
}

#define CLNET_OPERATOR(sign, row)                                                      \
  Tensor operator sign(const Tensor& a, const Tensor& b) { return binary(row, a, b); } \
  Tensor operator sign(const Tensor& a, double b) { return binary(row, a, b); }        \
  Tensor operator sign(double a, const Tensor& b) { return binary(row, a, b); }
CLNET_OPERATOR(+, add_row)
CLNET_OPERATOR(-, sub_row)
CLNET_OPERATOR(*, mul_row)
CLNET_OPERATOR(/, div_row)
#undef CLNET_OPERATOR

Tensor pow(const Tensor& a, const Tensor& b) { return binary(pow_row, a, b); }
Tensor pow(double a, const Tensor& b) { return binary(pow_row, a, b); }
Tensor pow(const Tensor& a, double b) {
  static const std::map<double, const Row*> rows{
      {-2, &inverse_square_row}, {-1, &reciprocal_row}, {-0.5, &minus_half_row}, {0.5, &half_row},
      {1.5, &three_halves_row},  {2, &square_row},      {3, &cube_row},          {4, &fourth_row}};
  // NaN would be found at the first key.
  const auto row = b == b ? rows.find(b) : rows.end();
  // Other dtypes keep the error that names pow.
  const bool short_ = row != rows.end() && a.defined() && is_floating(a.dtype());
  return short_ ? unary(*row->second, a) : binary(pow_row, a, b);
}

Tensor logical_and(const Tensor& a, const Tensor& b) { return binary(logical_and_row, a, b); }
Tensor logical_or(const Tensor& a, const Tensor& b) { return binary(logical_or_row, a, b); }
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b) {
  require_defined("where", {{"condition", condition}, {"a", a}, {"b", b}});
  return apply(std::make_shared<Where>(), {condition, a, b});
}

Tensor operator-(const Tensor& x) { return unary(neg_row, x); }
Tensor relu6(const Tensor& x) {
  require_defined("relu6", {{"x", x}});
  require_floating("relu6", x.spec());
  return hardtanh(x, 0, 6);
}
Tensor leaky_relu(const Tensor& x, double negative_slope) { return unary(leaky_relu_row, x, {negative_slope}); }
Tensor elu(const Tensor& x, double alpha) { return unary(elu_row, x, {alpha}); }
Tensor celu(const Tensor& x, double alpha) { return unary(celu_row, x, {alpha}); }
Tensor gelu(const Tensor& x, Gelu form) {
  require_defined("gelu", {{"x", x}});
  return unary(form == Gelu::erf ? gelu_erf_row : gelu_tanh_row, x);
}
Tensor gelu(const Tensor& x) { return gelu(x, Gelu::erf); }
Tensor hardtanh(const Tensor& x, double low, double high) {
  if (!(low <= high)) throw Error(fmt::format("hardtanh: the lower bound {} is above the upper bound {}", low, high));
  return unary(hardtanh_row, x, {low, high});
}
Tensor softplus(const Tensor& x, double beta, double threshold) { return unary(softplus_row, x, {beta, threshold, 1 / beta}); }
Tensor clamp(const Tensor& x, double low, double high) {
  if (!(low <= high)) throw Error(fmt::format("clamp: the lower bound {} is above the upper bound {}", low, high));
  return unary(clamp_row, x, {low, high});
}
Tensor nan_to_num(const Tensor& x, double nan, std::optional<double> positive, std::optional<double> negative) {
  require_defined("nan_to_num", {{"x", x}});
  const double most = x.dtype() == Dtype::f16    ? 65504
                      : x.dtype() == Dtype::bf16 ? 0x1.fep127
                      : x.dtype() == Dtype::f64  ? std::numeric_limits<double>::max()
                                                 : std::numeric_limits<float>::max();
  return unary(nan_to_num_row, x, {nan, positive.value_or(most), negative.value_or(-most)});
}

}  // namespace clnet
