#include "lib/ops/norm/normalize.h"

namespace clnet::ops {

namespace {

/// How many elements of x share a statistic; 1 where there is none of either.
double elements_of_each(const Tensor& mean, const Tensor& x) {
  return mean.numel() == 0 ? 1 : static_cast<double>(x.numel() / mean.numel());
}

}  // namespace

Tensor statistics_gradient(const Tensor& x, const Tensor& mean, const Tensor& rstd, const Tensor& mean_gradient,
                           const Tensor& rstd_gradient) {
  const double count = elements_of_each(mean, x);
  Tensor result;
  if (mean_gradient.defined()) result = expand(mean_gradient / count, x.shape());
  if (rstd_gradient.defined()) {
    const Tensor slope = rstd_gradient * (rstd * square(rstd)) * (-1 / count);
    const Tensor by_rstd = (x - mean) * slope;
    result = result.defined() ? result + by_rstd : by_rstd;
  }
  return result;
}

SecondOrder normalize_second_order(const Tensor& gradient, const Tensor& x, const Tensor& h, const Tensor& mean,
                                   const Tensor& rstd, const Dims& dims) {
  const auto average = [&](const Tensor& t) { return clnet::mean(t, dims, true); };
  const auto total = [&](const Tensor& t) { return sum(t, dims, true); };
  const Tensor centered = x - mean, variance = square(rstd);
  const Tensor h_centered = average(h * centered), gradient_centered = average(gradient * centered);
  SecondOrder result;
  result.h = rstd * (gradient - average(gradient) - centered * (variance * gradient_centered));
  result.x = -(rstd * variance) * (gradient * h_centered + h * gradient_centered);
  result.mean = -total(result.x);
  const double count = elements_of_each(mean, x);
  result.rstd = total(gradient * h) - total(gradient) * average(h) - variance * gradient_centered * h_centered * (3 * count);
  return result;
}

}  // namespace clnet::ops
