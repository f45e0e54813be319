// Losses per element in double precision, and their reductions.
#pragma once

#include <cmath>

#include "tests/cases/case.h"

namespace clnet::testing::reference {

template <class Loss>
Array elementwise_loss(const Array& a, const Array& b, Reduction reduction, const Loss& loss) {
  Array losses(a.shape);
  double total = 0;
  for (std::int64_t i = 0; i < a.numel(); ++i) total += losses[i] = loss(i, a[i], b[i]);
  if (reduction == Reduction::none) return losses;
  return Array({}, {reduction == Reduction::sum ? total : total / static_cast<double>(a.numel())});
}

inline double bce_with_logits(double x, double t) { return std::fmax(x, 0) - x * t + std::log1p(std::exp(-std::fabs(x))); }

}  // namespace clnet::testing::reference
