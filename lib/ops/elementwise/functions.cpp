// More rows of elementwise functions: trigonometry and its inverses, logarithms, the gamma and error functions, remainders.
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/graph/require.h"
#include "lib/ops/as_f32.h"
#include "lib/ops/elementwise/elementwise.h"
#include "lib/ops/elementwise/rows.h"

namespace clnet {

namespace ops {

namespace {

struct FunctionTable {
  static constexpr int before = __COUNTER__;
};
#define CLNET_TABLE FunctionTable

/// 1 - x^2 without cancellation where x is near 1 or -1.
Tensor one_less_square(const Tensor& x) { return (1.0 - x) * (x + 1.0); }

/// n! [1/x^(n+1) + 1/(x+1)^(n+1) + ...], with polygamma's sign.
Tensor polygamma_of(int order, const Tensor& x);

/// The derivative of sin(pi x) / (pi x); y is its value. Near 0, where the formula cancels, its series.
Tensor sinc_slope(const Tensor& x, const Tensor& y) {
  constexpr double pi = std::numbers::pi, square_of_pi = pi * pi;
  const Tensor near = less(abs(x), 0.25), apart = where(near, 1.0, x), z = square(x) * square_of_pi;
  Tensor sum = z / 45360.0 - 1.0 / 840.0;
  if (x.dtype() == Dtype::f64)
    sum =
        ((((z / 22230464256000.0 - 1.0 / 93405312000.0) * z + 1.0 / 518918400.0) * z - 1.0 / 3991680.0) * z + 1.0 / 45360.0) * z -
        1.0 / 840.0;
  const Tensor series = x * ((sum * z + 1.0 / 30.0) * z - 1.0 / 3.0) * square_of_pi;
  return where(near, series, (cos((x - round(x * 0.5) * 2.0) * pi) - y) / apart);
}

}  // namespace

}  // namespace ops

// clang-format off
CLNET_UNARY(tan, {.torch = "tan", .onnx = {"Tan", 22}, .roundings = 10, .last_places = 5, .method = true, .a = {-1.2, 1.2}}, Takes::floats, false, "tan(a)", [](const At& t) { return Tensors{t.g * (square(t.y) + 1.0)}; })
CLNET_UNARY(asin, {.torch = "asin", .onnx = {"Asin", 22}, .roundings = 8, .last_places = 4, .method = true, .a = {-0.9, 0.9}}, Takes::floats, false, "asin(a)", [](const At& t) { return Tensors{t.g * rsqrt(one_less_square(t.a))}; })
CLNET_UNARY(acos, {.torch = "acos", .onnx = {"Acos", 22}, .roundings = 8, .last_places = 4, .method = true, .a = {-0.9, 0.9}}, Takes::floats, false, "acos(a)", [](const At& t) { return Tensors{-t.g * rsqrt(one_less_square(t.a))}; })
CLNET_UNARY(atan, {.torch = "atan", .onnx = {"Atan", 22}, .roundings = 12, .last_places = 6, .method = true}, Takes::floats, false, "clnet_atan2(a, 1.0f)", [](const At& t) { return Tensors{t.g / (square(t.a) + 1.0)}; })
CLNET_UNARY(sinh, {.torch = "sinh", .onnx = {"Sinh", 22}, .roundings = 8, .last_places = 4, .method = true, .a = {-3, 3}}, Takes::floats, false, "sinh(a)", [](const At& t) { return Tensors{t.g * cosh(t.a)}; }, Formula::composite, Precision::full)
CLNET_UNARY(cosh, {.torch = "cosh", .onnx = {"Cosh", 22}, .roundings = 8, .last_places = 4, .method = true, .a = {-3, 3}}, Takes::floats, false, "cosh(a)", [](const At& t) { return Tensors{t.g * sinh(t.a)}; }, Formula::composite, Precision::full)
CLNET_UNARY(asinh, {.torch = "asinh", .onnx = {"Asinh", 22}, .roundings = 8, .last_places = 4, .method = true}, Takes::floats, false, "asinh(a)", [](const At& t) { return Tensors{t.g / hypot(t.a, 1.0)}; })
CLNET_UNARY(acosh, {.torch = "acosh", .onnx = {"Acosh", 22}, .roundings = 8, .last_places = 4, .method = true, .a = {1.2}}, Takes::floats, false, "acosh(a)", [](const At& t) { return Tensors{t.g * (rsqrt(t.a - 1.0) * rsqrt(t.a + 1.0))}; }, Formula::composite, Precision::full)
CLNET_UNARY(atanh, {.torch = "atanh", .onnx = {"Atanh", 22}, .roundings = 10, .last_places = 5, .method = true, .a = {-0.9, 0.9}}, Takes::floats, false, "atanh(a)", [](const At& t) { return Tensors{t.g / one_less_square(t.a)}; })
CLNET_UNARY(exp2, {.torch = "exp2", .roundings = 6, .last_places = 3, .method = true, .a = {-3, 3}}, Takes::floats, false, "exp2(a)", [](const At& t) { return Tensors{t.g * t.y * std::numbers::ln2}; }, Formula::composite, Precision::full)
CLNET_UNARY(log10, {.torch = "log10", .roundings = 6, .last_places = 3, .method = true, .a = {0.1}}, Takes::floats, false, "log10(a)", [](const At& t) { return Tensors{t.g / t.a * std::numbers::log10e}; }, Formula::composite, Precision::full)
CLNET_UNARY(logit, {.torch = "logit", .roundings = 10, .last_places = 6, .method = true, .a = {0.1, 0.9}}, Takes::floats, false, "clnet_logit(a)", [](const At& t) {
      // Outside of 0..1 there is no value, and no slope.
      const Tensor outside = logical_or(less(t.a, 0.0), greater(t.a, 1.0));
      return Tensors{where(outside, std::numeric_limits<double>::quiet_NaN(), t.g / (t.a * (1.0 - t.a)))};
    }, Formula::composite, Precision::full)
CLNET_UNARY(lgamma, {.torch = "lgamma", .roundings = 20, .last_places = 10, .method = true, .a = {0.5}}, Takes::floats, false, "clnet_lgamma(a)", [](const At& t) { return Tensors{t.g * digamma(t.a)}; }, Formula::composite, Precision::full)
CLNET_UNARY(digamma, {.torch = "digamma", .roundings = 20, .last_places = 10, .method = true, .a = {0.5}}, Takes::floats, false, "clnet_digamma(a)", [](const At& t) { return Tensors{t.g * polygamma_of(1, t.a)}; }, Formula::composite, Precision::full)
CLNET_ROW(polygamma_row, "polygamma", 1, {.torch = "polygamma", .roundings = 40, .a = {0.5}}, Takes::floats, false, "clnet_polygamma(p0, p1, a)", [](const At& t) { return Tensors{t.g * polygamma_of(static_cast<int>(t.p[0]) + 1, t.a)}; }, Formula::composite, Precision::full)
CLNET_UNARY(erfc, {.torch = "erfc", .roundings = 32, .last_places = 16, .method = true, .a = {-3, 3}}, Takes::floats, false, "erfc(a)", [](const At& t) { return Tensors{t.g * exp(-square(t.a)) * -1.1283791670955126}; })
CLNET_UNARY(erfinv, {.torch = "erfinv", .roundings = 16, .last_places = 12, .method = true, .a = {-0.9, 0.9}}, Takes::floats, false, "clnet_erfinv(a)", [](const At& t) { return Tensors{t.g * exp(square(t.y)) * 0.8862269254527580}; }, Formula::composite, Precision::full)
CLNET_UNARY(i0, {.torch = "i0", .roundings = 16, .last_places = 10, .method = true, .a = {-9, 9}}, Takes::floats, false, "clnet_i0(a)", [](const At& t) { return Tensors{t.g * i1(t.a)}; }, Formula::composite, Precision::full)
CLNET_UNARY(i1, {.torch = "special.i1", .roundings = 16, .last_places = 10, .method = true, .a = {-9, 9}}, Takes::floats, false, "clnet_i1(a)", [](const At& t) {
      const Tensor none = eq(t.a, 0.0);
      return Tensors{t.g * (i0(t.a) - where(none, 0.5, t.y / where(none, 1.0, t.a)))};
    }, Formula::composite, Precision::full)
CLNET_ROW(nextafter_row, "nextafter", 2, {.torch = "nextafter", .method = true}, Takes::floats, false, "clnet_nextafter(p0, p1, p2, a, b)", [](const At& t) {
      return Tensors{where(eq(t.a, t.b), scalar_like(0, t.g), t.g), zeros_like(t.g)};
    }, Formula::composite, Precision::widest)
CLNET_ROW(poisson_row, "poisson", 2, {}, Takes::floats, false, "clnet_poisson(a, b)", nullptr)
CLNET_UNARY(sinc, {.torch = "sinc", .roundings = 16, .last_places = 8, .method = true}, Takes::floats, false, "a == 0 ? 1.0f : sinpi(a) / (a * 3.14159265f)", [](const At& t) { return Tensors{t.g * sinc_slope(t.a, t.y)}; })
CLNET_UNARY(deg2rad, {.torch = "deg2rad", .roundings = 2, .last_places = 1.5, .method = true}, Takes::floats, false, "a * 0.0174532925f", [](const At& t) { return Tensors{t.g * (std::numbers::pi / 180)}; })
CLNET_UNARY(rad2deg, {.torch = "rad2deg", .roundings = 2, .last_places = 1.5, .method = true}, Takes::floats, false, "a * 57.2957795f", [](const At& t) { return Tensors{t.g * (180 / std::numbers::pi)}; })
CLNET_UNARY(is_finite, {.torch = "isfinite", .method = true}, Takes::floats, true, "fabs(a) <= 3.40282347e38f ? 1 : 0", nullptr)
CLNET_UNARY(is_inf, {.torch = "isinf", .onnx = {"IsInf", 20}, .method = true}, Takes::floats, true, "fabs(a) > 3.40282347e38f ? 1 : 0", nullptr)
CLNET_UNARY(signbit, {.torch = "signbit", .method = true}, Takes::floats, true, "as_int(a) < 0 ? 1 : 0", nullptr)
CLNET_BINARY(logaddexp2, {.torch = "logaddexp2", .roundings = 8, .last_places = 4, .method = true}, Takes::floats, false, "a == b ? a + 1.0f : (a > b ? a : b) + clnet_log1p(exp2(-fabs(a - b))) * 1.44269504f", [](const At& t) {
      return both(t, [&] { return t.g * sigmoid((t.a - t.b) * std::numbers::ln2); }, [&] { return t.g * sigmoid((t.b - t.a) * std::numbers::ln2); });
    }, Formula::composite, Precision::full)
CLNET_BINARY(xlog1py, {.torch = "special.xlog1py", .roundings = 6, .last_places = 4, .method = true, .b = {0.5, 3}}, Takes::floats, false, "b != b ? b : a == 0 ? 0.0f : a * clnet_log1p(b)", [](const At& t) {
      const auto of_a = [&] {
        const Tensor none = logical_and(eq(t.a, 0.0), less_equal(t.b, -1.0)), safe = where(none, 1.0, t.b);
        return t.g * where(none, 0.0, log1p(safe));
      };
      return both(t, of_a, [&] { return t.g * t.a / (t.b + 1.0); });
    }, Formula::composite, Precision::full)
CLNET_BINARY(copysign, {.torch = "copysign", .method = true, .b = {0.5, 2}}, Takes::floats, false, "as_float((as_int(a) & 0x7fffffff) | (as_int(b) & (int)0x80000000))", [](const At& t) {
      const auto of_a = [&] { return where(eq(t.a, 0.0), scalar_like(0, t.g), where(eq(t.a, t.y), t.g, -t.g)); };
      return both(t, of_a, [&] { return zeros_like(t.g); });
    }, Formula::simple)
CLNET_BINARY(heaviside, {.torch = "heaviside", .gradient = Gradient::none, .method = true}, Takes::all, false, "a == 0 ? b : a > 0 ? 1 : 0", nullptr)
// A NaN in one operand gives the other one.
CLNET_BINARY(fmax, {.torch = "fmax", .method = true}, Takes::all, false, "a != a ? b : b != b ? a : a > b ? a : b", [](const At& t) {
      const Tensor first = eq(t.y, t.a), zero = scalar_like(0, t.g);
      return both(t, [&] { return where(first, t.g, zero); }, [&] { return where(first, zero, t.g); });
    }, Formula::simple)
CLNET_BINARY(fmin, {.torch = "fmin", .method = true}, Takes::all, false, "a != a ? b : b != b ? a : a < b ? a : b", [](const At& t) {
      const Tensor first = eq(t.y, t.a), zero = scalar_like(0, t.g);
      return both(t, [&] { return where(first, t.g, zero); }, [&] { return where(first, zero, t.g); });
    }, Formula::simple)
// Divisors of integers are as in operator/: 0 gives 0, and -1 is not divided by.
CLNET_BINARY(floor_divide, {.torch = "floor_divide", .gradient = Gradient::none, .roundings = 8, .last_places = 4, .method = true, .b = {0.5, 2}}, Takes::all, false, "clnet_floor_divide(a, b)", nullptr, Formula::simple, Precision::widest,
    "b == 0 ? 0 : b == -1 ? 0 - a : a / (b == 0 || b == -1 ? 1 : b) - (REMAINDER(a, (b == 0 || b == -1 ? 1 : b)) != 0 && (a < 0) != (b < 0) ? 1 : 0)")
CLNET_BINARY(remainder, {.torch = "remainder", .onnx = {"Mod", 28}, .roundings = 1, .last_places = 0.5, .method = true, .b = {0.5, 2}}, Takes::all, false, "clnet_remainder(a, b)", [](const At& t) {
      return both(t, [&] { return t.g; }, [&] { return -t.g * floor_divide(t.a, t.b); });
    }, Formula::composite, Precision::widest,
    "b == 0 || b == -1 ? 0 : REMAINDER(a, (b == 0 || b == -1 ? 1 : b)) + (REMAINDER(a, (b == 0 || b == -1 ? 1 : b)) != 0 && (a < 0) != (b < 0) ? b : 0)")

namespace ops {

namespace {

constexpr int behind_functions = __COUNTER__;
// clang-format on
#undef CLNET_TABLE

Tensor polygamma_of(int order, const Tensor& x) {
  return unary(polygamma_row, x, {static_cast<double>(order), std::tgamma(order + 1)});
}

}  // namespace

std::vector<Operation> function_rows() {
  auto rows = entries<FunctionTable>(std::make_integer_sequence<int, behind_functions - FunctionTable::before - 1>());
  rows.push_back(entry(polygamma_row));
  rows.push_back(entry(nextafter_row));
  rows.back().dtype_roundings = 3;
  return rows;
}

}  // namespace ops

Tensor polygamma(std::int64_t order, const Tensor& x) {
  require_defined("polygamma", {{"x", x}});
  constexpr std::int64_t most = 10;
  if (order < 0 || order > most) throw Error(fmt::format("polygamma: order {} is not 0 to {}", order, most));
  return order == 0 ? digamma(x) : ops::polygamma_of(static_cast<int>(order), x);
}

Tensor poisson(const Tensor& rates) {
  require_defined("poisson", {{"rates", rates}});
  ops::require_floating("poisson", rates.spec());
  // rand() gives 0, and nothing above 1 - 2^-24.
  const Tensor share = maximum(rand(rates.shape()), 0x1p-25);
  return cast(ops::binary(ops::poisson_row, cast(stop_gradient(rates), Dtype::f32), share), rates.dtype());
}

Tensor nextafter(const Tensor& a, const Tensor& b) {
  require_defined("nextafter", {{"a", a}, {"b", b}});
  ops::require_same_dtype("nextafter", a.spec(), b.spec());
  // The bits of f32 that a dtype lacks; its smallest number with all digits, its smallest number.
  std::vector<double> parameters{1, 0x1p-126, 0x1p-149};
  if (a.dtype() == Dtype::f16) parameters = {0x1p13, 0x1p-14, 0x1p-24};
  if (a.dtype() == Dtype::bf16) parameters = {0x1p16, 0x1p-126, 0x1p-133};
  return ops::binary(ops::nextafter_row, a, b, std::move(parameters));
}

Tensor logit(const Tensor& x, double eps) {
  require_defined("logit", {{"x", x}});
  ops::require_floating("logit", x.spec());
  if (!(eps >= 0)) throw Error(fmt::format("logit: eps {} is not 0 or more", eps));
  // At the bounds themselves there is a slope, as in PyTorch, and none beyond. The lower one counts before the upper one.
  const Tensor wide = ops::as_f32(x), below = less(wide, eps), above = greater(wide, 1 - eps);
  return cast(logit(where(below, eps, where(above, 1 - eps, wide))), x.dtype());
}

Tensor is_close(const Tensor& a, const Tensor& b, double rtol, double atol, bool equal_nan) {
  require_defined("is_close", {{"a", a}, {"b", b}});
  ops::require_same_dtype("is_close", a.spec(), b.spec());
  (void)broadcast(a.shape(), b.shape(), "is_close");
  if (!(rtol >= 0 && atol >= 0)) throw Error(fmt::format("is_close: tolerances {} and {} are not 0 or more", rtol, atol));
  if (!is_floating(a.dtype())) {
    // Bounds of whole numbers, exact where the tolerance is 0.
    const Tensor x = cast(a, Dtype::i64), y = cast(b, Dtype::i64), size = cast(abs(y), Dtype::f32);
    return logical_or(eq(x, y), less_equal(cast(abs(x - y), Dtype::f32), size * rtol + atol));
  }
  const Tensor x = ops::as_f32(a), y = ops::as_f32(b), difference = abs(x - y);
  // Infinities are equal or far apart.
  const Tensor near = logical_and(less_equal(difference, abs(y) * rtol + atol), is_finite(difference));
  const Tensor same = logical_or(eq(x, y), near);
  return equal_nan ? logical_or(same, logical_and(is_nan(x), is_nan(y))) : same;
}

}  // namespace clnet
