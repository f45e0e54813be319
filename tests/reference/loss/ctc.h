// ctc_loss() in probabilities and double precision. Tables {steps, states}, states being blank, target, blank, ..., blank.
#pragma once

#include <cmath>
#include <limits>

#include "tests/cases/case.h"

namespace clnet::testing::reference {

/// One sequence of a batch.
struct CtcSequence {
  const Array& x;
  std::vector<int> labels;
  std::int64_t n, steps;
  bool valid;

  CtcSequence(const Array& log_probs, const Array& targets, const Array& input_lengths, const Array& target_lengths,
              std::int64_t sequence, int blank)
      : x(log_probs), labels{blank}, n(sequence), steps(static_cast<std::int64_t>(input_lengths[n])) {
    const auto count = static_cast<std::int64_t>(target_lengths[n]);
    valid = steps >= 0 && steps <= x.size(0) && count >= 0 && count <= targets.size(1);
    for (std::int64_t i = 0; valid && i < count; ++i) {
      const auto label = static_cast<int>(targets[n * targets.size(1) + i]);
      valid = label >= 0 && label < x.size(2);
      labels.insert(labels.end(), {label, blank});
    }
  }
  double p(std::int64_t t, std::size_t s) const { return std::exp(x[(t * x.size(1) + n) * x.size(2) + labels[s]]); }
  /// From state s one may go on to s + 2.
  bool skips(std::size_t s) const { return s % 2 == 1 && s + 2 < labels.size() && labels[s] != labels[s + 2]; }

  /// The probability of all that leads to (backwards: follows) each state, the state itself left out.
  std::vector<std::vector<double>> reach(bool backwards) const {
    const auto count = labels.size();
    std::vector<std::vector<double>> table(static_cast<std::size_t>(steps), std::vector<double>(count, 0));
    for (std::int64_t i = 0; i < steps; ++i) {
      const auto t = static_cast<std::size_t>(backwards ? steps - 1 - i : i);
      for (std::size_t s = 0; s < count; ++s) {
        if (i == 0) {
          table[t][s] = (backwards ? s + 2 >= count : s < 2) ? 1 : 0;
          continue;
        }
        const auto before = backwards ? t + 1 : t - 1;
        const auto from = [&](std::size_t k) { return table[before][k] * p(static_cast<std::int64_t>(before), k); };
        double sum = from(s);
        if (backwards) {
          if (s + 1 < count) sum += from(s + 1);
          if (skips(s)) sum += from(s + 2);
        } else {
          if (s >= 1) sum += from(s - 1);
          if (s >= 2 && skips(s - 2)) sum += from(s - 2);
        }
        table[t][s] = sum;
      }
    }
    return table;
  }
  double probability() const {
    if (steps == 0) return labels.size() == 1 ? 1 : 0;
    const auto table = reach(false);
    double sum = 0;
    for (std::size_t s = labels.size() - std::min<std::size_t>(2, labels.size()); s < labels.size(); ++s)
      sum += table.back()[s] * p(steps - 1, s);
    return sum;
  }
};

/// {N}; NaN where lengths or targets are none.
inline Array ctc(const Array& x, const Array& targets, const Array& input_lengths, const Array& target_lengths, int blank) {
  Array losses({x.size(1)});
  for (std::int64_t n = 0; n < losses.numel(); ++n) {
    const CtcSequence one(x, targets, input_lengths, target_lengths, n, blank);
    losses[n] = one.valid ? -std::log(one.probability()) : std::numeric_limits<double>::quiet_NaN();
  }
  return losses;
}

/// The gradient of x from that of the losses.
inline Array ctc_gradient(const Array& x, const Array& targets, const Array& input_lengths, const Array& target_lengths,
                          const Array& g, int blank) {
  Array dx(x.shape);
  for (std::int64_t n = 0; n < x.size(1); ++n) {
    const CtcSequence one(x, targets, input_lengths, target_lengths, n, blank);
    if (!one.valid || g[n] == 0) continue;
    const auto to = one.reach(false), on = one.reach(true);
    for (std::int64_t t = 0; t < one.steps; ++t)
      for (std::size_t s = 0; s < one.labels.size(); ++s) {
        const auto at = static_cast<std::size_t>(t);
        dx[(t * x.size(1) + n) * x.size(2) + one.labels[s]] -= g[n] * to[at][s] * on[at][s] * one.p(t, s) / one.probability();
      }
  }
  return dx;
}

}  // namespace clnet::testing::reference
