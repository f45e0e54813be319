// The gamma function's relatives and the inverse of the error function, in double precision.
#pragma once

#include <cmath>
#include <limits>
#include <numbers>

namespace clnet::testing::reference {

/// pi / tan(pi x), exact in what x is beyond a whole number.
inline double cotangent(double x) {
  const double r = x - std::nearbyint(x);
  return std::numbers::pi * std::cos(std::numbers::pi * r) / std::sin(std::numbers::pi * r);
}

/// By psi(x + 1) = psi(x) + 1 / x, the asymptotic series from 20 on, and the reflection below 0.
inline double digamma(double x) {
  if (x == 0) return std::copysign(std::numeric_limits<double>::infinity(), -x);
  if (x < 0) return x == std::floor(x) ? std::numeric_limits<double>::quiet_NaN() : digamma(1 - x) - cotangent(x);
  if (std::isinf(x)) return x;
  double sum = 0;
  for (; x < 20; ++x) sum -= 1 / x;
  const double z = 1 / (x * x);
  return sum + std::log(x) - 0.5 / x - z * (1.0 / 12 - z * (1.0 / 120 - z * (1.0 / 252 - z * (1.0 / 240 - z / 132))));
}

/// The derivative of digamma of an order from 1 on, by n! (1/x^(n+1) + 1/(x+1)^(n+1) + ...), also of numbers below 0.
inline double polygamma(double order, double x) {
  const double s = order + 1, sign = std::fmod(order, 2) == 0 ? -1 : 1;
  if (std::isinf(x)) return x > 0 ? sign * 0.0 : std::numeric_limits<double>::quiet_NaN();
  double sum = 0;
  for (; x < 30; ++x) sum += std::pow(x, -s);
  const double second = s * (s + 1) * (s + 2) / (x * x * x), third = second * (s + 3) * (s + 4) / (x * x),
               fourth = third * (s + 5) * (s + 6) / (x * x);
  const double tail = std::pow(x, -s) * (x / (s - 1) + 0.5 + s / (12 * x) - second / 720 + third / 30240 - fourth / 1209600);
  return sign * std::tgamma(s) * (sum + tail);
}

/// By Newton's steps on erfc, from the tail's first term on.
inline double erfinv(double x) {
  if (!(std::fabs(x) < 1))
    return std::fabs(x) == 1 ? x * std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  const double size = std::fabs(x), w = -std::log((1 - size) * (1 + size));
  double y = size < 0.7 ? size * std::sqrt(std::numbers::pi) / 2 : std::sqrt(w) * 0.9;
  for (int step = 0; step < 60; ++step) {
    const double error = size < 0.7 ? std::erf(y) - size : (1 - size) - std::erfc(y);
    y -= error * std::sqrt(std::numbers::pi) / 2 * std::exp(y * y);
  }
  return std::copysign(y, x);
}

inline double sinc(double x) {
  if (x == 0) return 1;
  const double r = std::remainder(x, 2), nearest = std::fabs(r) > 0.5 ? std::copysign(1.0, r) - r : r;
  return std::sin(std::numbers::pi * nearest) / (std::numbers::pi * x);
}

/// The modified Bessel functions, by the C++ library, which refuses large arguments.
inline double bessel(double order, double size) {
  return size > 700 ? std::numeric_limits<double>::infinity() : std::cyl_bessel_i(order, size);
}
inline double i0(double x) { return bessel(0, std::fabs(x)); }
inline double i1(double x) { return std::copysign(bessel(1, std::fabs(x)), x); }

/// The least count of events that share of all cases do not exceed, by adding up logarithms' exponentials.
inline double poisson(double rate, double share) {
  if (!(rate >= 0)) return std::numeric_limits<double>::quiet_NaN();
  double sum = std::exp(-rate), count = 0;
  while (sum <= share && count < 40 * (rate + 10)) {
    ++count;
    sum += rate == 0 ? 0 : std::exp(count * std::log(rate) - rate - std::lgamma(count + 1));
  }
  return count;
}

inline double logit(double x) { return x > 0.25 && x < 0.75 ? std::log1p((2 * x - 1) / (1 - x)) : std::log(x) - std::log1p(-x); }

inline double logaddexp2(double x, double y) {
  return x == y ? x + 1 : std::fmax(x, y) + std::log1p(std::exp2(-std::fabs(x - y))) / std::numbers::ln2;
}
inline double xlog1py(double x, double y) { return std::isnan(y) ? y : x == 0 ? 0 : x * std::log1p(y); }

/// Python's % and //.
inline double remainder(double x, double y) {
  const double rest = std::fmod(x, y);
  return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}
inline double floor_divide(double x, double y) {
  if (y == 0) return x / y;
  const double rest = std::fmod(x, y), whole = (x - rest) / y - (rest != 0 && (rest < 0) != (y < 0) ? 1 : 0);
  return whole == 0 ? std::copysign(0.0, x / y) : std::isinf(whole) ? whole : std::nearbyint(whole);
}
inline std::int64_t bits(double x) { return static_cast<std::int64_t>(x); }

}  // namespace clnet::testing::reference
