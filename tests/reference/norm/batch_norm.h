// Batch and layer normalisation in double precision.
#pragma once

#include <cmath>

#include "tests/cases/case.h"

namespace clnet::testing::reference {

struct BatchNorm {
  Array y, mean, var;
};

/// `weight` and `bias` may be null.
inline BatchNorm batch_norm(const Array& x, const Array* weight, const Array* bias, double eps) {
  const auto n = x.shape[0], channels = x.shape[1], spatial = x.numel() / n / channels;
  const auto count = static_cast<double>(n * spatial);
  BatchNorm result{Array(x.shape), Array({channels}), Array({channels})};
  const auto channel = [&](std::int64_t i) { return i / spatial % channels; };
  for (std::int64_t i = 0; i < x.numel(); ++i) result.mean[channel(i)] += x[i] / count;
  Array squares({channels});
  for (std::int64_t i = 0; i < x.numel(); ++i) squares[channel(i)] += std::pow(x[i] - result.mean[channel(i)], 2);
  for (std::int64_t c = 0; c < channels; ++c) result.var[c] = squares[c] / (count - 1);
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    const auto c = channel(i);
    const double normalized = (x[i] - result.mean[c]) / std::sqrt(squares[c] / count + eps);
    result.y[i] = normalized * (weight ? (*weight)[c] : 1) + (bias ? (*bias)[c] : 0);
  }
  return result;
}

inline Array batch_norm_inference(const Array& x, const Array& mean, const Array& var, const Array* weight, const Array* bias,
                                  double eps) {
  const auto channels = x.shape[1], spatial = x.numel() / x.shape[0] / channels;
  Array y(x.shape);
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    const auto c = i / spatial % channels;
    y[i] = (x[i] - mean[c]) / std::sqrt(var[c] + eps) * (weight ? (*weight)[c] : 1) + (bias ? (*bias)[c] : 0);
  }
  return y;
}

inline Array layer_norm(const Array& x, std::int64_t length, const Array* weight, const Array* bias, double eps) {
  Array y(x.shape);
  for (std::int64_t first = 0; first < x.numel(); first += length) {
    double mean = 0, squares = 0;
    for (std::int64_t i = 0; i < length; ++i) mean += x[first + i] / static_cast<double>(length);
    for (std::int64_t i = 0; i < length; ++i) squares += std::pow(x[first + i] - mean, 2);
    const double scale = 1 / std::sqrt(squares / static_cast<double>(length) + eps);
    for (std::int64_t i = 0; i < length; ++i)
      y[first + i] = (x[first + i] - mean) * scale * (weight ? (*weight)[i] : 1) + (bias ? (*bias)[i] : 0);
  }
  return y;
}

}  // namespace clnet::testing::reference
