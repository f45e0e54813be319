// Creation functions, and elementwise functions with NumPy's broadcasting.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <type_traits>

#include "clnet/export.h"
#include "clnet/tensor.h"

namespace clnet {

// A function with an overload of one tensor alone may stand in nn::Sequential by its name.

// ---- Making tensors

/// Tensors of `shape`, filled with `value`, 0 or 1. Throws DtypeError where the value does not fit the dtype.
CLNET_API Tensor full(const Shape& shape, double value, Dtype dtype = Dtype::f32);
CLNET_API Tensor zeros(const Shape& shape, Dtype dtype = Dtype::f32);
CLNET_API Tensor ones(const Shape& shape, Dtype dtype = Dtype::f32);
/// Zeros or ones with x's shape and dtype.
CLNET_API Tensor zeros_like(const Tensor& x);
CLNET_API Tensor ones_like(const Tensor& x);
CLNET_API Tensor full_like(const Tensor& x, double value);
/// `count` values start, start + step, ... (PyTorch's arange takes an end.) Throws ShapeError for a negative count, DtypeError
/// for bool, Error for an integer dtype with fractions.
CLNET_API Tensor arange(std::int64_t count, double start = 0, double step = 1, Dtype dtype = Dtype::i64);
/// `count` values from start to stop, both included, at equal distances. Throws DtypeError for a dtype that is not floating,
/// ShapeError for a negative count.
CLNET_API Tensor linspace(double start, double stop, std::int64_t count, Dtype dtype = Dtype::f32);
/// `count` powers of `base`, with the exponents of linspace(). Errors as there.
CLNET_API Tensor logspace(double start, double stop, std::int64_t count, double base = 10, Dtype dtype = Dtype::f32);
/// The identity matrix {rows, columns}; columns -1 means rows. Throws ShapeError for negative extents.
CLNET_API Tensor eye(std::int64_t rows, std::int64_t columns = -1, Dtype dtype = Dtype::f32);

// ---- Elementwise, with NumPy's broadcasting

// Both operands have the same dtype. A number beside a tensor is weak. Beside a floating tensor it is f32, and the result has the
// tensor's dtype. An integer tensor keeps its dtype beside a whole number that the dtype holds (bool becomes i64), and becomes
// f32 beside any other. Comparisons of integers with numbers are exact up to 2^53, as for any double.
// docs/reference/dtypes.md has all dtypes and errors.
//
// C++ does not define which operand is computed first. It matters where both have effects, as models in training mode (running
// statistics, dropout). Write `const Tensor a = net(x); const Tensor b = net(y);`, and then a + b.

/// Converts to `dtype`: floats to integers truncate, as in PyTorch.
CLNET_API Tensor cast(const Tensor& x, Dtype dtype);

#define CLNET_BINARY(name)                                 \
  CLNET_API Tensor name(const Tensor& a, const Tensor& b); \
  CLNET_API Tensor name(const Tensor& a, double b);        \
  CLNET_API Tensor name(double a, const Tensor& b);
CLNET_BINARY(operator+)
CLNET_BINARY(operator-)
CLNET_BINARY(operator*)
/// Integer division truncates, as in C; division by 0 gives 0.
CLNET_BINARY(operator/)
/// a^b of floating values. The gradient of the exponent is defined for positive bases.
CLNET_BINARY(pow)
/// The remainder of a / b with a's sign, as in C, of floating values.
CLNET_BINARY(fmod)
/// The angle of the point (b, a), from -pi to pi, of floating values. The origin has no gradient.
CLNET_BINARY(atan2)
/// sqrt(a^2 + b^2) without overflow, of floating values.
CLNET_BINARY(hypot)
/// log(exp(a) + exp(b)) without overflow, of floating values; logaddexp2() of powers of 2.
CLNET_BINARY(logaddexp)
CLNET_BINARY(logaddexp2)
/// a log(b) of floating values; 0 where a is 0 and b is not NaN.
CLNET_BINARY(xlogy)
/// a log(1 + b) of floating values; 0 where a is 0 and b is not NaN.
CLNET_BINARY(xlog1py)
/// a / b rounded down, as Python's //. Integer division by 0 gives 0. No gradient flows through it.
CLNET_BINARY(floor_divide)
/// The remainder of a / b with b's sign, as Python's %; of integers 0 where b is 0.
CLNET_BINARY(remainder)
/// The size of a with the sign of b, of floating values. No gradient flows to b.
CLNET_BINARY(copysign)
/// 0 where a < 0, b where a is 0, else 1. No gradient flows through it.
CLNET_BINARY(heaviside)
/// Equal operands share the gradient equally.
CLNET_BINARY(maximum)
CLNET_BINARY(minimum)
/// The same, but a NaN in one operand gives the other one. Of equal operands the first has the gradient.
CLNET_BINARY(fmax)
CLNET_BINARY(fmin)
// Logic of the bits of integers and bool; DtypeError for floating dtypes.
CLNET_BINARY(bitwise_and)
CLNET_BINARY(bitwise_or)
CLNET_BINARY(bitwise_xor)
/// Integers shifted by b bits, to the right with their sign. From the dtype's width on, and for negative b, no bit is left.
CLNET_BINARY(bitwise_left_shift)
CLNET_BINARY(bitwise_right_shift)
// Comparisons give bool. Two integer dtypes, bool included, may differ: their values are compared.
CLNET_BINARY(eq)
CLNET_BINARY(not_equal)
CLNET_BINARY(less)
CLNET_BINARY(less_equal)
CLNET_BINARY(greater)
CLNET_BINARY(greater_equal)
#undef CLNET_BINARY

/// Does not compile: C's % and Python's differ for negative numbers.
template <class T>
void operator%(const Tensor&, const T&) {
  static_assert(!std::is_same_v<T, T>, "a % b of tensors is remainder(a, b), as in Python, or fmod(a, b), as in C");
}
inline Tensor operator==(const Tensor& a, const Tensor& b) { return eq(a, b); }
inline Tensor operator==(const Tensor& a, double b) { return eq(a, b); }
inline Tensor operator==(double a, const Tensor& b) { return eq(a, b); }
inline Tensor operator!=(const Tensor& a, const Tensor& b) { return not_equal(a, b); }
inline Tensor operator!=(const Tensor& a, double b) { return not_equal(a, b); }
inline Tensor operator!=(double a, const Tensor& b) { return not_equal(a, b); }
inline Tensor operator<(const Tensor& a, const Tensor& b) { return less(a, b); }
inline Tensor operator<(const Tensor& a, double b) { return less(a, b); }
inline Tensor operator<(double a, const Tensor& b) { return less(a, b); }
inline Tensor operator<=(const Tensor& a, const Tensor& b) { return less_equal(a, b); }
inline Tensor operator<=(const Tensor& a, double b) { return less_equal(a, b); }
inline Tensor operator<=(double a, const Tensor& b) { return less_equal(a, b); }
inline Tensor operator>(const Tensor& a, const Tensor& b) { return greater(a, b); }
inline Tensor operator>(const Tensor& a, double b) { return greater(a, b); }
inline Tensor operator>(double a, const Tensor& b) { return greater(a, b); }
inline Tensor operator>=(const Tensor& a, const Tensor& b) { return greater_equal(a, b); }
inline Tensor operator>=(const Tensor& a, double b) { return greater_equal(a, b); }
inline Tensor operator>=(double a, const Tensor& b) { return greater_equal(a, b); }

// The handle refers to the new value; other handles keep the old one.
inline Tensor& operator+=(Tensor& x, const Tensor& y) { return x = x + y; }
inline Tensor& operator+=(Tensor& x, double y) { return x = x + y; }
inline Tensor& operator-=(Tensor& x, const Tensor& y) { return x = x - y; }
inline Tensor& operator-=(Tensor& x, double y) { return x = x - y; }
inline Tensor& operator*=(Tensor& x, const Tensor& y) { return x = x * y; }
inline Tensor& operator*=(Tensor& x, double y) { return x = x * y; }
inline Tensor& operator/=(Tensor& x, const Tensor& y) { return x = x / y; }
inline Tensor& operator/=(Tensor& x, double y) { return x = x / y; }

CLNET_API Tensor bitwise_not(const Tensor& x);  ///< each bit turned; of bool logical_not()
inline Tensor operator&(const Tensor& a, const Tensor& b) { return bitwise_and(a, b); }
CLNET_API Tensor operator&(const Tensor& a, std::int64_t b);
inline Tensor operator|(const Tensor& a, const Tensor& b) { return bitwise_or(a, b); }
CLNET_API Tensor operator|(const Tensor& a, std::int64_t b);
inline Tensor operator^(const Tensor& a, const Tensor& b) { return bitwise_xor(a, b); }
CLNET_API Tensor operator^(const Tensor& a, std::int64_t b);
inline Tensor operator~(const Tensor& x) { return bitwise_not(x); }
inline Tensor operator<<(const Tensor& a, const Tensor& b) { return bitwise_left_shift(a, b); }
inline Tensor operator<<(const Tensor& a, std::int64_t b) { return bitwise_left_shift(a, static_cast<double>(b)); }
inline Tensor operator>>(const Tensor& a, const Tensor& b) { return bitwise_right_shift(a, b); }
inline Tensor operator>>(const Tensor& a, std::int64_t b) { return bitwise_right_shift(a, static_cast<double>(b)); }

/// Whether |a - b| <= atol + rtol |b|, as bool, of tensors of one dtype; equal infinities are close, NaN only with equal_nan.
CLNET_API Tensor is_close(const Tensor& a, const Tensor& b, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false);
/// Logic of bool tensors. Throws DtypeError for any other dtype.
CLNET_API Tensor logical_and(const Tensor& a, const Tensor& b);
CLNET_API Tensor logical_or(const Tensor& a, const Tensor& b);
CLNET_API Tensor logical_not(const Tensor& x);
// No short circuit: both operands are computed.
inline Tensor operator&&(const Tensor& a, const Tensor& b) { return logical_and(a, b); }
inline Tensor operator||(const Tensor& a, const Tensor& b) { return logical_or(a, b); }
CLNET_API Tensor logical_xor(const Tensor& a, const Tensor& b);
inline Tensor operator!(const Tensor& x) { return logical_not(x); }
/// a where `condition` (bool) is true, else b; all three broadcast. A number takes the tensor's dtype; two numbers give f32.
CLNET_API Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);
CLNET_API Tensor where(const Tensor& condition, const Tensor& a, double b);
CLNET_API Tensor where(const Tensor& condition, double a, const Tensor& b);
CLNET_API Tensor where(const Tensor& condition, double a, double b);

// Functions of each element of floating tensors (DtypeError otherwise); -x, abs, sign, square and relu take integers, too. No
// gradient flows through sign() and the rounding functions floor() to trunc().
CLNET_API Tensor operator-(const Tensor& x);
CLNET_API Tensor abs(const Tensor& x);
CLNET_API Tensor sign(const Tensor& x);  ///< -1, 0 or 1
CLNET_API Tensor exp(const Tensor& x);
CLNET_API Tensor log(const Tensor& x);
CLNET_API Tensor log1p(const Tensor& x);  ///< log(1 + x)
CLNET_API Tensor log2(const Tensor& x);
CLNET_API Tensor expm1(const Tensor& x);  ///< exp(x) - 1
CLNET_API Tensor sqrt(const Tensor& x);
CLNET_API Tensor rsqrt(const Tensor& x);  ///< 1 / sqrt(x)
CLNET_API Tensor square(const Tensor& x);
CLNET_API Tensor reciprocal(const Tensor& x);  ///< 1 / x
CLNET_API Tensor sin(const Tensor& x);
CLNET_API Tensor cos(const Tensor& x);
CLNET_API Tensor tan(const Tensor& x);
CLNET_API Tensor asin(const Tensor& x);
CLNET_API Tensor acos(const Tensor& x);
CLNET_API Tensor atan(const Tensor& x);
CLNET_API Tensor sinh(const Tensor& x);
CLNET_API Tensor cosh(const Tensor& x);
CLNET_API Tensor asinh(const Tensor& x);
CLNET_API Tensor acosh(const Tensor& x);
CLNET_API Tensor atanh(const Tensor& x);
CLNET_API Tensor exp2(const Tensor& x);
CLNET_API Tensor log10(const Tensor& x);
CLNET_API Tensor logit(const Tensor& x);  ///< log(x / (1 - x)), the inverse of sigmoid(); NaN outside of 0..1
/// The same of x limited to eps..1 - eps. Throws Error for eps outside of 0..0.5.
CLNET_API Tensor logit(const Tensor& x, double eps);
CLNET_API Tensor lgamma(const Tensor& x);   ///< log(|gamma(x)|)
CLNET_API Tensor digamma(const Tensor& x);  ///< the derivative of lgamma(); NaN at -1, -2, ...
/// The derivative of digamma() of an order from 1 to 10; of order 0 digamma() itself.
CLNET_API Tensor polygamma(std::int64_t order, const Tensor& x);
CLNET_API Tensor erf(const Tensor& x);
CLNET_API Tensor erfc(const Tensor& x);    ///< 1 - erf(x)
CLNET_API Tensor erfinv(const Tensor& x);  ///< the inverse of erf(); NaN outside of -1..1
CLNET_API Tensor sinc(const Tensor& x);    ///< sin(pi x) / (pi x), 1 at 0
CLNET_API Tensor deg2rad(const Tensor& x);
CLNET_API Tensor rad2deg(const Tensor& x);
CLNET_API Tensor floor(const Tensor& x);
CLNET_API Tensor ceil(const Tensor& x);
CLNET_API Tensor round(const Tensor& x);  ///< halves to even
CLNET_API Tensor trunc(const Tensor& x);  ///< towards 0
CLNET_API Tensor frac(const Tensor& x);   ///< x - trunc(x)
CLNET_API Tensor tanh(const Tensor& x);
CLNET_API Tensor sigmoid(const Tensor& x);
CLNET_API Tensor log_sigmoid(const Tensor& x);  ///< log(sigmoid(x)) without overflow
CLNET_API Tensor relu(const Tensor& x);
CLNET_API Tensor relu6(const Tensor& x);                              ///< x limited to 0..6
CLNET_API Tensor leaky_relu(const Tensor& x, double negative_slope);  ///< below 0: negative_slope x
inline Tensor leaky_relu(const Tensor& x) { return leaky_relu(x, 0.01); }
CLNET_API Tensor elu(const Tensor& x, double alpha);  ///< below 0: alpha (exp(x) - 1)
inline Tensor elu(const Tensor& x) { return elu(x, 1); }
CLNET_API Tensor celu(const Tensor& x, double alpha);  ///< below 0: alpha (exp(x / alpha) - 1)
inline Tensor celu(const Tensor& x) { return celu(x, 1); }
CLNET_API Tensor selu(const Tensor& x);  ///< Klambauer et al. 2017
/// The forms of GELU: x times the normal distribution function, exact by erf, or approximated by tanh (Hendrycks and Gimpel
/// 2016).
enum class Gelu : std::uint8_t { erf, tanh };
CLNET_API Tensor gelu(const Tensor& x, Gelu form);
CLNET_API Tensor gelu(const Tensor& x);                               ///< the exact form, with erf
CLNET_API Tensor silu(const Tensor& x);                               ///< x sigmoid(x)
CLNET_API Tensor mish(const Tensor& x);                               ///< x tanh(softplus(x)) (Misra 2019)
CLNET_API Tensor hardswish(const Tensor& x);                          ///< x hardsigmoid(x)
CLNET_API Tensor hardsigmoid(const Tensor& x);                        ///< relu6(x + 3) / 6
CLNET_API Tensor hardtanh(const Tensor& x, double low, double high);  ///< x limited to low..high
inline Tensor hardtanh(const Tensor& x) { return hardtanh(x, -1, 1); }
/// log(1 + exp(beta x)) / beta; x where beta x > threshold.
CLNET_API Tensor softplus(const Tensor& x, double beta, double threshold = 20);
inline Tensor softplus(const Tensor& x) { return softplus(x, 1, 20); }
CLNET_API Tensor softsign(const Tensor& x);  ///< x / (1 + |x|)
/// x limited to low..high. The gradient is 0 at the bounds, as for hardtanh() and relu6(). Throws Error where low > high.
CLNET_API Tensor clamp(const Tensor& x, double low, double high = std::numeric_limits<double>::infinity());
CLNET_API Tensor is_nan(const Tensor& x);     ///< bool; true where x is NaN
CLNET_API Tensor is_inf(const Tensor& x);     ///< bool; true where x is infinity or -infinity
CLNET_API Tensor is_finite(const Tensor& x);  ///< bool; true where x is neither NaN nor infinite
CLNET_API Tensor signbit(const Tensor& x);    ///< bool; true where x has a sign, as -0
/// Replaces NaN and infinities by numbers. The default for an infinity is the dtype's largest or smallest number.
CLNET_API Tensor nan_to_num(const Tensor& x, double nan = 0, std::optional<double> positive = std::nullopt,
                            std::optional<double> negative = std::nullopt);
/// x where |x| > lambda, else 0.
CLNET_API Tensor hardshrink(const Tensor& x, double lambda);
inline Tensor hardshrink(const Tensor& x) { return hardshrink(x, 0.5); }
/// x moved towards 0 by lambda; 0 where |x| <= lambda. Throws Error for a negative lambda.
CLNET_API Tensor softshrink(const Tensor& x, double lambda);
inline Tensor softshrink(const Tensor& x) { return softshrink(x, 0.5); }
CLNET_API Tensor tanhshrink(const Tensor& x);  ///< x - tanh(x)
/// x where x > bound, else `value`.
CLNET_API Tensor threshold(const Tensor& x, double bound, double value);
/// x where it is positive, else weight x. `weight` is a number or {C} for x {N, C, ...} (ShapeError otherwise). One dtype.
CLNET_API Tensor prelu(const Tensor& x, const Tensor& weight);
/// a sigmoid(b), where a and b are the halves of x along `dim`. Throws ShapeError for an odd extent.
CLNET_API Tensor glu(const Tensor& x, int dim);
inline Tensor glu(const Tensor& x) { return glu(x, -1); }
/// a + weight (b - a).
CLNET_API Tensor lerp(const Tensor& a, const Tensor& b, double weight);
CLNET_API Tensor lerp(const Tensor& a, const Tensor& b, const Tensor& weight);
/// x + value a b, and x + value a / b.
CLNET_API Tensor addcmul(const Tensor& x, const Tensor& a, const Tensor& b, double value = 1);
CLNET_API Tensor addcdiv(const Tensor& x, const Tensor& a, const Tensor& b, double value = 1);
/// `value` where `mask` (bool, broadcast to x) is true, else x. Throws DtypeError for a mask that is not bool.
CLNET_API Tensor masked_fill(const Tensor& x, const Tensor& mask, double value);
/// The same value without a gradient. Unlike Tensor::detach() it evaluates nothing and keeps the graph behind it. A state that
/// goes from step to step (docs/guide/training-loops.md) must be detached: otherwise each step computes all earlier ones.
CLNET_API Tensor stop_gradient(const Tensor& x);

}  // namespace clnet
