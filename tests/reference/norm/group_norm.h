// Normalisations over groups, by mean squares and over neighbouring channels, in double precision.
#pragma once

#include <cmath>

#include "tests/cases/case.h"

namespace clnet::testing::reference {

inline Array group_norm(const Array& x, std::int64_t groups, const Array* weight, const Array* bias, double eps) {
  const auto n = x.size(0), c = x.size(1), inner = x.numel() / (n * c), length = c / groups * inner;
  Array y(x.shape);
  for (std::int64_t row = 0; row < n * groups; ++row) {
    double mean = 0, squares = 0;
    for (auto i = row * length; i < (row + 1) * length; ++i) mean += x[i] / static_cast<double>(length);
    for (auto i = row * length; i < (row + 1) * length; ++i) squares += (x[i] - mean) * (x[i] - mean);
    for (auto i = row * length; i < (row + 1) * length; ++i) {
      const auto channel = i / inner % c;
      y[i] = (x[i] - mean) / std::sqrt(squares / static_cast<double>(length) + eps) * (weight ? (*weight)[channel] : 1) +
             (bias ? (*bias)[channel] : 0);
    }
  }
  return y;
}

inline Array rms_norm(const Array& x, std::int64_t length, const Array* weight, double eps) {
  Array y(x.shape);
  for (std::int64_t first = 0; first < x.numel(); first += length) {
    double squares = 0;
    for (std::int64_t i = 0; i < length; ++i) squares += x[first + i] * x[first + i];
    for (std::int64_t i = 0; i < length; ++i)
      y[first + i] = x[first + i] / std::sqrt(squares / static_cast<double>(length) + eps) * (weight ? (*weight)[i] : 1);
  }
  return y;
}

inline Array local_response_norm(const Array& x, std::int64_t size, double alpha, double beta, double k) {
  const auto c = x.size(1), inner = x.numel() / (x.size(0) * c);
  Array y(x.shape);
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    const auto channel = i / inner % c;
    double squares = 0;
    for (auto other = channel - size / 2; other <= channel + (size - 1) / 2; ++other)
      if (other >= 0 && other < c) squares += std::pow(x[i + (other - channel) * inner], 2);
    y[i] = x[i] / std::pow(k + alpha * squares / static_cast<double>(size), beta);
  }
  return y;
}

}  // namespace clnet::testing::reference
