// The elementwise operations in double precision, in forms that keep their digits, by the operations' names.
#pragma once

#include <cmath>
#include <string_view>

#include "tests/reference/elementwise/special.h"
#include "tests/reference/shape/arrange.h"

namespace clnet::testing::reference {

struct Formula {
  std::string_view name;
  int inputs;
  double (*of)(const double* in, const double* parameters);
  bool exact = false;  ///< the result is an input's value, a whole number or a truth value: nothing is rounded
};

inline double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
inline double softplus(double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }
/// x times a gate from 0 to 1 that vanishes faster than x grows.
inline double gated(double x, double gate) { return x < -1e4 ? -0.0 : x * gate; }
inline double clamped(double x, double low, double high) { return x < low ? low : x > high ? high : x; }

inline double logaddexp(double x, double y) {
  return x == y ? x + std::log(2.0) : std::fmax(x, y) + std::log1p(std::exp(-std::fabs(x - y)));
}
inline double xlogy(double x, double y) { return std::isnan(y) ? y : x == 0 ? 0 : x * std::log(y); }

/// -(t log x + (1 - t) log(1 - x)), each logarithm at least -100.
inline double binary_cross_entropy(double x, double t) {
  return -(t * std::fmax(std::log(x), -100) + (1 - t) * std::fmax(std::log1p(-x), -100));
}

// clang-format off
inline constexpr Formula formulas[] = {
    {"abs", 1, [](const double* x, const double*) { return std::fabs(*x); }, true},
    {"neg", 1, [](const double* x, const double*) { return -*x; }, true},
    {"sign", 1, [](const double* x, const double*) { return double(*x > 0) - double(*x < 0); }, true},
    {"exp", 1, [](const double* x, const double*) { return std::exp(*x); }},
    {"log", 1, [](const double* x, const double*) { return std::log(*x); }},
    {"log1p", 1, [](const double* x, const double*) { return std::log1p(*x); }},
    {"log2", 1, [](const double* x, const double*) { return std::log2(*x); }},
    {"expm1", 1, [](const double* x, const double*) { return std::expm1(*x); }},
    {"stop_gradient", 1, [](const double* x, const double*) { return *x; }, true},
    {"sqrt", 1, [](const double* x, const double*) { return std::sqrt(*x); }},
    {"rsqrt", 1, [](const double* x, const double*) { return 1 / std::sqrt(*x); }},
    {"square", 1, [](const double* x, const double*) { return *x * *x; }},
    {"reciprocal", 1, [](const double* x, const double*) { return 1 / *x; }},
    {"pow_3", 1, [](const double* x, const double*) { return *x * *x * *x; }},
    {"pow_4", 1, [](const double* x, const double*) { return *x * *x * *x * *x; }},
    {"pow_minus_2", 1, [](const double* x, const double*) { return 1 / (*x * *x); }},
    {"pow_half", 1, [](const double* x, const double*) { return std::pow(*x, 0.5); }},
    {"pow_minus_half", 1, [](const double* x, const double*) { return std::pow(*x, -0.5); }},
    {"pow_3_halves", 1, [](const double* x, const double*) { return std::pow(*x, 1.5); }},
    {"normal_cdf", 1, [](const double* x, const double*) { return 0.5 * std::erfc(-*x * std::sqrt(0.5)); }},
    {"sin", 1, [](const double* x, const double*) { return std::sin(*x); }},
    {"cos", 1, [](const double* x, const double*) { return std::cos(*x); }},
    {"tan", 1, [](const double* x, const double*) { return std::tan(*x); }},
    {"asin", 1, [](const double* x, const double*) { return std::asin(*x); }},
    {"acos", 1, [](const double* x, const double*) { return std::acos(*x); }},
    {"atan", 1, [](const double* x, const double*) { return std::atan(*x); }},
    {"sinh", 1, [](const double* x, const double*) { return std::sinh(*x); }},
    {"cosh", 1, [](const double* x, const double*) { return std::cosh(*x); }},
    {"asinh", 1, [](const double* x, const double*) { return std::asinh(*x); }},
    {"acosh", 1, [](const double* x, const double*) { return std::acosh(*x); }},
    {"atanh", 1, [](const double* x, const double*) { return std::atanh(*x); }},
    {"exp2", 1, [](const double* x, const double*) { return std::exp2(*x); }},
    {"log10", 1, [](const double* x, const double*) { return std::log10(*x); }},
    {"logit", 1, [](const double* x, const double*) { return logit(*x); }},
    {"lgamma", 1, [](const double* x, const double*) { return std::lgamma(*x); }},
    {"digamma", 1, [](const double* x, const double*) { return digamma(*x); }},
    {"polygamma", 1, [](const double* x, const double* p) { return polygamma(p[0], *x); }},
    {"erfc", 1, [](const double* x, const double*) { return std::erfc(*x); }},
    {"erfinv", 1, [](const double* x, const double*) { return erfinv(*x); }},
    {"i0", 1, [](const double* x, const double*) { return i0(*x); }},
    {"i1", 1, [](const double* x, const double*) { return i1(*x); }},
    {"nextafter", 2, [](const double* x, const double*) { return double(std::nextafter(float(x[0]), float(x[1]))); }},
    {"poisson", 2, [](const double* x, const double*) { return poisson(x[0], x[1]); }},
    {"sinc", 1, [](const double* x, const double*) { return sinc(*x); }},
    {"deg2rad", 1, [](const double* x, const double*) { return *x * (std::numbers::pi / 180); }},
    {"rad2deg", 1, [](const double* x, const double*) { return *x * (180 / std::numbers::pi); }},
    {"is_finite", 1, [](const double* x, const double*) { return double(std::isfinite(*x)); }, true},
    {"is_inf", 1, [](const double* x, const double*) { return double(std::isinf(*x)); }, true},
    {"signbit", 1, [](const double* x, const double*) { return double(std::signbit(*x)); }, true},
    {"logaddexp2", 2, [](const double* x, const double*) { return logaddexp2(x[0], x[1]); }},
    {"xlog1py", 2, [](const double* x, const double*) { return xlog1py(x[0], x[1]); }},
    {"copysign", 2, [](const double* x, const double*) { return std::copysign(x[0], x[1]); }, true},
    {"heaviside", 2, [](const double* x, const double*) { return x[0] == 0 ? x[1] : double(x[0] > 0); }, true},
    {"fmax", 2, [](const double* x, const double*) { return std::fmax(x[0], x[1]); }, true},
    {"fmin", 2, [](const double* x, const double*) { return std::fmin(x[0], x[1]); }, true},
    {"floor_divide", 2, [](const double* x, const double*) { return floor_divide(x[0], x[1]); }},
    {"remainder", 2, [](const double* x, const double*) { return remainder(x[0], x[1]); }},
    {"bitwise_and", 2, [](const double* x, const double*) { return double(bits(x[0]) & bits(x[1])); }, true},
    {"bitwise_or", 2, [](const double* x, const double*) { return double(bits(x[0]) | bits(x[1])); }, true},
    {"bitwise_xor", 2, [](const double* x, const double*) { return double(bits(x[0]) ^ bits(x[1])); }, true},
    {"bitwise_left_shift", 2, [](const double* x, const double*) { return std::ldexp(x[0], int(x[1])); }, true},
    {"bitwise_right_shift", 2, [](const double* x, const double*) { return std::floor(std::ldexp(x[0], -int(x[1]))); }, true},
    {"logical_xor", 2, [](const double* x, const double*) { return double((x[0] != 0) != (x[1] != 0)); }, true},
    {"bitwise_not", 1, [](const double* x, const double*) { return -*x - 1; }, true},
    {"erf", 1, [](const double* x, const double*) { return std::erf(*x); }},
    {"floor", 1, [](const double* x, const double*) { return std::floor(*x); }, true},
    {"ceil", 1, [](const double* x, const double*) { return std::ceil(*x); }, true},
    {"round", 1, [](const double* x, const double*) { return std::nearbyint(*x); }, true},
    {"trunc", 1, [](const double* x, const double*) { return std::trunc(*x); }, true},
    {"frac", 1, [](const double* x, const double*) { return *x - std::trunc(*x); }, true},
    {"tanh", 1, [](const double* x, const double*) { return std::tanh(*x); }},
    {"tanhshrink", 1, [](const double* x, const double*) { return *x - std::tanh(*x); }},
    {"hardshrink", 1, [](const double* x, const double*) { return std::fabs(*x) <= 0.5 ? 0 : *x; }, true},
    {"softshrink", 1, [](const double* x, const double*) { return std::fabs(*x) <= 0.5 ? 0 : *x - std::copysign(0.5, *x); }},
    {"sigmoid", 1, [](const double* x, const double*) { return sigmoid(*x); }},
    {"tanh_gradient", 2, [](const double* x, const double*) { return x[0] * (1 - x[1] * x[1]); }},
    {"sigmoid_gradient", 2, [](const double* x, const double*) { return x[0] * x[1] * (1 - x[1]); }},
    {"log_sigmoid", 1, [](const double* x, const double*) { return -softplus(-*x); }},
    {"relu", 1, [](const double* x, const double*) { return *x < 0 ? 0 : *x; }, true},
    {"leaky_relu", 1, [](const double* x, const double* p) { return *x > 0 ? *x : p[0] * *x; }},
    {"elu", 1, [](const double* x, const double* p) { return *x > 0 ? *x : p[0] * std::expm1(*x); }},
    {"celu", 1, [](const double* x, const double* p) { return *x > 0 ? *x : p[0] * std::expm1(*x / p[0]); }},
    {"selu", 1, [](const double* x, const double*) {
       return 1.0507009873554804934 * (*x > 0 ? *x : 1.6732632423543772848 * std::expm1(*x)); }},
    {"gelu_erf", 1, [](const double* x, const double*) { return gated(*x, 0.5 * std::erfc(-*x * std::sqrt(0.5))); }},
    {"gelu_tanh", 1, [](const double* x, const double*) {
       return gated(*x, 0.5 * (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846) * (*x + 0.044715 * *x * *x * *x)))); }},
    {"silu", 1, [](const double* x, const double*) { return gated(*x, sigmoid(*x)); }},
    {"mish", 1, [](const double* x, const double*) { return gated(*x, std::tanh(softplus(*x))); }},
    {"hardswish", 1, [](const double* x, const double*) { return *x <= -3 ? 0 : *x * clamped(*x + 3, 0, 6) / 6; }},
    {"hardsigmoid", 1, [](const double* x, const double*) { return clamped(*x + 3, 0, 6) / 6; }},
    {"softplus", 1, [](const double* x, const double* p) { return *x * p[0] > p[1] ? *x : softplus(*x * p[0]) / p[0]; }},
    {"softsign", 1, [](const double* x, const double*) { return std::isinf(*x) ? std::copysign(1.0, *x) : *x / (1 + std::fabs(*x)); }},
    {"clamp", 1, [](const double* x, const double* p) { return clamped(*x, p[0], p[1]); }, true},
    {"hardtanh", 1, [](const double* x, const double* p) { return clamped(*x, p[0], p[1]); }, true},
    {"is_nan", 1, [](const double* x, const double*) { return double(std::isnan(*x)); }, true},
    {"nan_to_num", 1, [](const double* x, const double* p) {
       return std::isnan(*x) ? p[0] : !std::isinf(*x) ? *x : *x > 0 ? p[1] : p[2]; }, true},
    {"logical_not", 1, [](const double* x, const double*) { return double(*x == 0); }, true},
    {"add", 2, [](const double* x, const double*) { return x[0] + x[1]; }},
    {"sub", 2, [](const double* x, const double*) { return x[0] - x[1]; }},
    {"mul", 2, [](const double* x, const double*) { return x[0] * x[1]; }},
    {"div", 2, [](const double* x, const double*) { return x[0] / x[1]; }},
    {"pow", 2, [](const double* x, const double*) { return std::pow(x[0], x[1]); }},
    {"fmod", 2, [](const double* x, const double*) { return std::fmod(x[0], x[1]); }},
    {"atan2", 2, [](const double* x, const double*) { return std::atan2(x[0], x[1]); }},
    {"hypot", 2, [](const double* x, const double*) { return std::hypot(x[0], x[1]); }},
    {"logaddexp", 2, [](const double* x, const double*) { return logaddexp(x[0], x[1]); }},
    {"xlogy", 2, [](const double* x, const double*) { return xlogy(x[0], x[1]); }},
    {"maximum", 2, [](const double* x, const double*) { return x[0] > x[1] || std::isnan(x[0]) ? x[0] : x[1]; }, true},
    {"minimum", 2, [](const double* x, const double*) { return x[0] < x[1] || std::isnan(x[0]) ? x[0] : x[1]; }, true},
    {"eq", 2, [](const double* x, const double*) { return double(x[0] == x[1]); }, true},
    {"not_equal", 2, [](const double* x, const double*) { return double(x[0] != x[1]); }, true},
    {"less", 2, [](const double* x, const double*) { return double(x[0] < x[1]); }, true},
    {"less_equal", 2, [](const double* x, const double*) { return double(x[0] <= x[1]); }, true},
    {"greater", 2, [](const double* x, const double*) { return double(x[0] > x[1]); }, true},
    {"greater_equal", 2, [](const double* x, const double*) { return double(x[0] >= x[1]); }, true},
    {"logical_and", 2, [](const double* x, const double*) { return double(x[0] != 0 && x[1] != 0); }, true},
    {"logical_or", 2, [](const double* x, const double*) { return double(x[0] != 0 || x[1] != 0); }, true},
    {"binary_cross_entropy", 2, [](const double* x, const double*) { return binary_cross_entropy(x[0], x[1]); }},
    {"binary_cross_entropy_with_logits", 2, [](const double* x, const double*) { return softplus(x[0]) - x[0] * x[1]; }},
    {"gaussian_nll", 2, [](const double* x, const double* p) {
       return (std::log(std::fmax(x[1], p[0])) + x[0] * x[0] / std::fmax(x[1], p[0])) / 2; }},
    {"where", 3, [](const double* x, const double*) { return x[0] != 0 ? x[1] : x[2]; }, true},
    {"cast", 1, [](const double* x, const double*) { return *x; }, true},
    {"expand", 1, [](const double* x, const double*) { return *x; }, true},
};
// clang-format on

/// Null where there is none.
inline const Formula* find_formula(std::string_view name) {
  for (const auto& formula : formulas)
    if (formula.name == name) return &formula;
  return nullptr;
}

/// The formula over all elements of `shape`, to which the inputs are broadcast.
inline Array elementwise(const Formula& formula, const Arrays& in, const double* parameters, const Shape& shape) {
  std::vector<Positions> positions;
  for (const auto& x : in) positions.push_back(x.shape == shape ? Positions{} : broadcast_positions(x.shape, shape));
  Array y(shape);
  double operands[3] = {};
  for (std::int64_t i = 0; i < y.numel(); ++i) {
    for (std::size_t k = 0; k < in.size(); ++k)
      operands[k] = in[k][positions[k].empty() ? i : positions[k][static_cast<std::size_t>(i)]];
    y[i] = formula.of(operands, parameters);
  }
  return y;
}

}  // namespace clnet::testing::reference
