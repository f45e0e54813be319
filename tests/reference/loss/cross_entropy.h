// PyTorch's cross entropy in double precision, by its documented formula.
#pragma once

#include <cmath>
#include <optional>

#include "tests/cases/case.h"
#include "tests/reference/norm/softmax.h"

namespace clnet::testing::reference {

struct CrossEntropy {
  std::int64_t ignore_index = -100;
  double smoothing = 0;
  Reduction reduction = Reduction::mean;
};

inline Array cross_entropy(const Array& logits, const Array& targets, const std::optional<Array>& weight,
                           const CrossEntropy& options) {
  const auto logs = softmax(logits, 1, true);
  const auto classes = logits.shape[1], positions = targets.numel() / logits.shape[0];
  Array losses(targets.shape);
  double total = 0, counted = 0;
  for (std::int64_t row = 0; row < targets.numel(); ++row) {
    const auto target = static_cast<std::int64_t>(targets[row]);
    if (target == options.ignore_index) continue;
    const auto log_of = [&](std::int64_t c) { return logs[(row / positions * classes + c) * positions + row % positions]; };
    const auto weight_of = [&](std::int64_t c) { return weight ? (*weight)[c] : 1.0; };
    double smooth = 0;
    for (std::int64_t c = 0; c < classes; ++c) smooth -= weight_of(c) * log_of(c);
    losses[row] =
        -(1 - options.smoothing) * weight_of(target) * log_of(target) + options.smoothing / static_cast<double>(classes) * smooth;
    total += losses[row];
    counted += weight_of(target);
  }
  if (options.reduction == Reduction::none) return losses;
  return Array({}, {options.reduction == Reduction::sum ? total : total / counted});
}

}  // namespace clnet::testing::reference
