// Values made in place, and functions of each element with NumPy's broadcasting.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "clnet/export.h"
#include "clnet/tensor.h"

namespace clnet {

// A function that has an overload of one tensor alone may stand in nn::Sequential by its name.

// ---- Making tensors

CLNET_API Tensor full(const Shape& shape, double value, Dtype dtype = Dtype::f32);
CLNET_API Tensor zeros(const Shape& shape, Dtype dtype = Dtype::f32);
CLNET_API Tensor ones(const Shape& shape, Dtype dtype = Dtype::f32);
CLNET_API Tensor zeros_like(const Tensor& x);
CLNET_API Tensor ones_like(const Tensor& x);
/// start, start + step, ...: `count` values.
CLNET_API Tensor arange(std::int64_t count, double start = 0, double step = 1, Dtype dtype = Dtype::i64);
/// `count` values from start to stop, both among them, at equal distances. Floating dtypes.
CLNET_API Tensor linspace(double start, double stop, std::int64_t count, Dtype dtype = Dtype::f32);
/// {rows, columns} (columns -1: as many as rows) with ones on the diagonal.
CLNET_API Tensor eye(std::int64_t rows, std::int64_t columns = -1, Dtype dtype = Dtype::f32);

// ---- Elementwise, with NumPy's broadcasting

// Both operands have the same dtype. A number beside a tensor is weak: with a floating tensor it takes part as f32, and the
// result has the tensor's dtype; an integer tensor keeps its dtype beside a whole number that the dtype holds (bool becomes i64)
// and becomes f32 beside any other. Comparisons of integers with numbers are exact, up to what a
// double holds: 2^53. docs/reference/dtypes.md has all dtypes and errors.
//
// C++ leaves open which operand is computed first. That matters where both have effects, as models in training mode have (running
// statistics, dropout's numbers): write `const Tensor a = net(x); const Tensor b = net(y);`, and then a + b.

CLNET_API Tensor cast(const Tensor& x, Dtype dtype);

#define CLNET_BINARY(name)                                 \
  CLNET_API Tensor name(const Tensor& a, const Tensor& b); \
  CLNET_API Tensor name(const Tensor& a, double b);        \
  CLNET_API Tensor name(double a, const Tensor& b);
CLNET_BINARY(operator+)
CLNET_BINARY(operator-)
CLNET_BINARY(operator*)
/// For integers C's division, towards zero; by 0 it gives 0.
CLNET_BINARY(operator/)
/// Of floating values; x^y. The gradient of the exponent is defined for positive bases.
CLNET_BINARY(pow)
/// Of floating values; the remainder of a / b with a's sign, as in C.
CLNET_BINARY(fmod)
/// Of floating values; the angle of the point (b, a), from -pi to pi. The origin takes no gradient.
CLNET_BINARY(atan2)
/// Of floating values; sqrt(a^2 + b^2) without overflow.
CLNET_BINARY(hypot)
/// Of floating values; log(exp(a) + exp(b)).
CLNET_BINARY(logaddexp)
/// Of floating values; a log(b), and 0 where a is 0 and b a number.
CLNET_BINARY(xlogy)
/// Ties share the gradient equally.
CLNET_BINARY(maximum)
CLNET_BINARY(minimum)
// Comparisons give bool. Two integer dtypes, bool among them, may differ: their values are compared.
CLNET_BINARY(eq)
CLNET_BINARY(not_equal)
CLNET_BINARY(less)
CLNET_BINARY(less_equal)
CLNET_BINARY(greater)
CLNET_BINARY(greater_equal)
#undef CLNET_BINARY

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

// The handle becomes one of the new value; other handles keep the old one.
inline Tensor& operator+=(Tensor& x, const Tensor& y) { return x = x + y; }
inline Tensor& operator+=(Tensor& x, double y) { return x = x + y; }
inline Tensor& operator-=(Tensor& x, const Tensor& y) { return x = x - y; }
inline Tensor& operator-=(Tensor& x, double y) { return x = x - y; }
inline Tensor& operator*=(Tensor& x, const Tensor& y) { return x = x * y; }
inline Tensor& operator*=(Tensor& x, double y) { return x = x * y; }
inline Tensor& operator/=(Tensor& x, const Tensor& y) { return x = x / y; }
inline Tensor& operator/=(Tensor& x, double y) { return x = x / y; }

/// Of bool tensors.
CLNET_API Tensor logical_and(const Tensor& a, const Tensor& b);
CLNET_API Tensor logical_or(const Tensor& a, const Tensor& b);
CLNET_API Tensor logical_not(const Tensor& x);
// Both operands are computed, whatever the first one is.
inline Tensor operator&&(const Tensor& a, const Tensor& b) { return logical_and(a, b); }
inline Tensor operator||(const Tensor& a, const Tensor& b) { return logical_or(a, b); }
inline Tensor operator!(const Tensor& x) { return logical_not(x); }
/// `condition` (bool) chooses between a and b, all three broadcast. A number takes the tensor's dtype; two numbers give f32.
CLNET_API Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);
CLNET_API Tensor where(const Tensor& condition, const Tensor& a, double b);
CLNET_API Tensor where(const Tensor& condition, double a, const Tensor& b);
CLNET_API Tensor where(const Tensor& condition, double a, double b);

CLNET_API Tensor operator-(const Tensor& x);
CLNET_API Tensor abs(const Tensor& x);
CLNET_API Tensor sign(const Tensor& x);
CLNET_API Tensor exp(const Tensor& x);
CLNET_API Tensor log(const Tensor& x);
CLNET_API Tensor log1p(const Tensor& x);
CLNET_API Tensor log2(const Tensor& x);
CLNET_API Tensor expm1(const Tensor& x);
CLNET_API Tensor sqrt(const Tensor& x);
CLNET_API Tensor rsqrt(const Tensor& x);
CLNET_API Tensor square(const Tensor& x);
CLNET_API Tensor reciprocal(const Tensor& x);
CLNET_API Tensor sin(const Tensor& x);
CLNET_API Tensor cos(const Tensor& x);
CLNET_API Tensor erf(const Tensor& x);
CLNET_API Tensor floor(const Tensor& x);
CLNET_API Tensor ceil(const Tensor& x);
CLNET_API Tensor round(const Tensor& x);  ///< halves to even
CLNET_API Tensor trunc(const Tensor& x);  ///< towards 0
CLNET_API Tensor frac(const Tensor& x);   ///< x - trunc(x)
CLNET_API Tensor tanh(const Tensor& x);
CLNET_API Tensor sigmoid(const Tensor& x);
CLNET_API Tensor log_sigmoid(const Tensor& x);
CLNET_API Tensor relu(const Tensor& x);
CLNET_API Tensor relu6(const Tensor& x);
CLNET_API Tensor leaky_relu(const Tensor& x, double negative_slope);
inline Tensor leaky_relu(const Tensor& x) { return leaky_relu(x, 0.01); }
CLNET_API Tensor elu(const Tensor& x, double alpha);
inline Tensor elu(const Tensor& x) { return elu(x, 1); }
CLNET_API Tensor celu(const Tensor& x, double alpha);
inline Tensor celu(const Tensor& x) { return celu(x, 1); }
CLNET_API Tensor selu(const Tensor& x);
enum class Gelu : std::uint8_t { erf, tanh };
CLNET_API Tensor gelu(const Tensor& x, Gelu form);
CLNET_API Tensor gelu(const Tensor& x);  ///< the exact form, by erf
CLNET_API Tensor silu(const Tensor& x);
CLNET_API Tensor mish(const Tensor& x);
CLNET_API Tensor hardswish(const Tensor& x);
CLNET_API Tensor hardsigmoid(const Tensor& x);
CLNET_API Tensor hardtanh(const Tensor& x, double low, double high);
inline Tensor hardtanh(const Tensor& x) { return hardtanh(x, -1, 1); }
CLNET_API Tensor softplus(const Tensor& x, double beta, double threshold = 20);
inline Tensor softplus(const Tensor& x) { return softplus(x, 1, 20); }
CLNET_API Tensor softsign(const Tensor& x);
/// As of hardtanh() and relu6(), the gradient is 0 at the bounds.
CLNET_API Tensor clamp(const Tensor& x, double low, double high = std::numeric_limits<double>::infinity());
CLNET_API Tensor is_nan(const Tensor& x);
/// Numbers in place of NaN and the infinities; for those, the largest and the smallest of the dtype where none is given.
CLNET_API Tensor nan_to_num(const Tensor& x, double nan = 0, std::optional<double> positive = std::nullopt,
                            std::optional<double> negative = std::nullopt);
/// x where |x| > lambda, else 0.
CLNET_API Tensor hardshrink(const Tensor& x, double lambda);
inline Tensor hardshrink(const Tensor& x) { return hardshrink(x, 0.5); }
/// x nearer to 0 by lambda, and 0 where |x| <= lambda.
CLNET_API Tensor softshrink(const Tensor& x, double lambda);
inline Tensor softshrink(const Tensor& x) { return softshrink(x, 0.5); }
CLNET_API Tensor tanhshrink(const Tensor& x);  ///< x - tanh(x)
/// x where x > bound, else `value`.
CLNET_API Tensor threshold(const Tensor& x, double bound, double value);
/// x where it is positive, else weight x: `weight` is {1}, or {C} for x {N, C, ...}. Both have one dtype.
CLNET_API Tensor prelu(const Tensor& x, const Tensor& weight);
/// a sigmoid(b), a and b being the halves of x along `dim`.
CLNET_API Tensor glu(const Tensor& x, int dim);
inline Tensor glu(const Tensor& x) { return glu(x, -1); }
/// a + weight (b - a).
CLNET_API Tensor lerp(const Tensor& a, const Tensor& b, double weight);
CLNET_API Tensor lerp(const Tensor& a, const Tensor& b, const Tensor& weight);
/// x + value a b, and x + value a / b.
CLNET_API Tensor addcmul(const Tensor& x, const Tensor& a, const Tensor& b, double value = 1);
CLNET_API Tensor addcdiv(const Tensor& x, const Tensor& a, const Tensor& b, double value = 1);
/// `value` where `mask` (bool, broadcast) is true, else x.
CLNET_API Tensor masked_fill(const Tensor& x, const Tensor& mask, double value);
/// The same value, where gradients stop. Unlike Tensor::detach() it evaluates nothing and keeps the graph behind it: a state that
/// is carried from step to step (docs/guide/training-loops.md) must be detached, or each step computes all those before it.
CLNET_API Tensor stop_gradient(const Tensor& x);

}  // namespace clnet
