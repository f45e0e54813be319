// Losses per element in double precision, and their reductions.
#pragma once

#include <cmath>

#include "tests/cases/case.h"
#include "tests/reference/elementwise/elementwise.h"

namespace clnet::testing::reference {

/// The losses, their mean or their sum.
inline Array reduced(const Array& losses, Reduction reduction) {
  if (reduction == Reduction::none) return losses;
  double total = 0;
  for (double loss : losses.values) total += loss;
  return Array({}, {reduction == Reduction::sum ? total : total / static_cast<double>(losses.numel())});
}

/// Inputs of one shape, or broadcast to one.
template <class Loss>
Array elementwise_loss(const Array& a, const Array& b, Reduction reduction, const Loss& loss) {
  Array losses(broadcast(a.shape, b.shape, "reference"));
  const auto of_a = broadcast_positions(a.shape, losses.shape), of_b = broadcast_positions(b.shape, losses.shape);
  for (std::int64_t i = 0; i < losses.numel(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    losses[i] = loss(i, a[of_a[at]], b[of_b[at]]);
  }
  return reduced(losses, reduction);
}

inline double smooth_l1(double d, double beta) { return std::fabs(d) < beta ? d * d / 2 / beta : std::fabs(d) - beta / 2; }
inline double huber(double d, double delta) { return std::fabs(d) <= delta ? d * d / 2 : delta * (std::fabs(d) - delta / 2); }
inline double kl_div(double x, double t) { return t > 0 ? t * (std::log(t) - x) : 0; }
inline double poisson_nll(double x, double t, bool log_input, bool full) {
  const double pi = 3.14159265358979323846;
  const double stirling = full && t > 1 ? t * std::log(t) - t + std::log(2 * pi * t) / 2 : 0;
  return (log_input ? std::exp(x) - t * x : x - t * std::log(x + 1e-8)) + stirling;
}
inline double focal(double x, double t, double alpha, double gamma) {
  const double p = 1 / (1 + std::exp(-x)), side = p * t + (1 - p) * (1 - t);
  const double loss = -(t * std::log(p) + (1 - t) * std::log(1 - p)) * std::pow(1 - side, gamma);
  return alpha >= 0 ? loss * (alpha * t + (1 - alpha) * (1 - t)) : loss;
}

/// |a - b + eps|_p of rows.
inline Array distances(const Array& a, const Array& b, double p, double eps) {
  auto extents = a.shape.extents();
  const auto width = extents.back();
  extents.pop_back();
  Array result{Shape(extents)};
  for (std::int64_t row = 0; row < result.numel(); ++row) {
    for (std::int64_t i = row * width; i < (row + 1) * width; ++i) result[row] += std::pow(std::fabs(a[i] - b[i] + eps), p);
    result[row] = std::pow(result[row], 1 / p);
  }
  return result;
}

/// The cosines of the angles between rows.
inline Array cosines(const Array& a, const Array& b) {
  auto extents = a.shape.extents();
  const auto width = extents.back();
  extents.pop_back();
  Array result{Shape(extents)};
  for (std::int64_t row = 0; row < result.numel(); ++row) {
    double ab = 0, aa = 0, bb = 0;
    for (std::int64_t i = row * width; i < (row + 1) * width; ++i) {
      ab += a[i] * b[i];
      aa += a[i] * a[i];
      bb += b[i] * b[i];
    }
    result[row] = ab / std::sqrt(aa * bb);
  }
  return result;
}

/// Of rows {N, C, rest}: -weight[t] x[t], and with the mean divided by the weights.
inline Array nll(const Array& x, const Array& targets, const Array* weight, std::int64_t ignore_index, Reduction reduction) {
  const auto classes = x.size(1);
  std::int64_t inner = 1;
  for (int d = 2; d < x.shape.rank(); ++d) inner *= x.size(d);
  Array losses(targets.shape);
  double total = 0, weights = 0;
  for (std::int64_t i = 0; i < targets.numel(); ++i) {
    const auto t = static_cast<std::int64_t>(targets[i]);
    if (t == ignore_index) continue;
    const double w = weight ? (*weight)[t] : 1;
    losses[i] = -w * x[(i / inner * classes + t) * inner + i % inner];
    total += losses[i];
    weights += w;
  }
  if (reduction == Reduction::none) return losses;
  return Array({}, {reduction == Reduction::sum ? total : total / weights});
}

inline double binary_cross_entropy_with_logits(double x, double t) {
  return std::fmax(x, 0) - x * t + std::log1p(std::exp(-std::fabs(x)));
}

}  // namespace clnet::testing::reference
