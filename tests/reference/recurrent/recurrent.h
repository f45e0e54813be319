// Recurrent layers in double precision: one sequence after the other, one step after the other.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/cases/case.h"

namespace clnet::testing::reference {

/// Undefined ones are null. `gates` {T, N, G H} is what the gates get beside the product with h.
struct RecurrenceArrays {
  std::string cell;  ///< tanh, relu, lstm, gru
  bool reverse = false;
  const Array *gates = nullptr, *h0 = nullptr, *c0 = nullptr, *weight_hh = nullptr, *bias_hn = nullptr, *weight_hr = nullptr,
              *lengths = nullptr;

  std::int64_t steps() const { return gates->size(0); }
  std::int64_t batch() const { return gates->size(1); }
  std::int64_t gate_count() const { return cell == "lstm" ? 4 : cell == "gru" ? 3 : 1; }
  std::int64_t hidden() const { return gates->size(2) / gate_count(); }
  std::int64_t length(std::int64_t n) const {
    return lengths ? std::clamp<std::int64_t>(static_cast<std::int64_t>((*lengths)[n]), 0, steps()) : steps();
  }
};
struct RecurrenceResult {
  Array y, h, c, gates, cells;
};

inline double logistic(double x) { return 1 / (1 + std::exp(-x)); }

inline RecurrenceResult recurrence(const RecurrenceArrays& in) {
  const auto steps = in.steps(), batch = in.batch(), hidden = in.hidden(), width = in.gate_count() * hidden,
             out = in.weight_hh->size(1);
  const bool lstm = in.cell == "lstm", gru = in.cell == "gru";
  RecurrenceResult result{Array({steps, batch, out}), Array({batch, out}), Array({batch, hidden}), Array(in.gates->shape),
                          Array({steps, batch, hidden})};
  for (std::int64_t n = 0; n < batch; ++n) {
    std::vector<double> h(static_cast<std::size_t>(out)), c(static_cast<std::size_t>(hidden)), full(c.size());
    const auto at = [](auto& list, std::int64_t i) -> double& { return list[static_cast<std::size_t>(i)]; };
    if (in.h0)
      for (std::int64_t i = 0; i < out; ++i) at(h, i) = in.h0->at({n, i});
    if (in.c0)
      for (std::int64_t i = 0; i < hidden; ++i) at(c, i) = in.c0->at({n, i});
    for (std::int64_t k = 0; k < in.length(n); ++k) {
      const auto t = in.reverse ? in.length(n) - 1 - k : k;
      std::vector<double> product(static_cast<std::size_t>(width));
      for (std::int64_t j = 0; j < width; ++j)
        for (std::int64_t i = 0; i < out; ++i) at(product, j) += in.weight_hh->at({j, i}) * at(h, i);
      for (std::int64_t i = 0; i < hidden; ++i) {
        const auto sum = [&](std::int64_t gate) {
          return in.gates->at({t, n, gate * hidden + i}) + at(product, gate * hidden + i);
        };
        const auto keep = [&](std::int64_t gate, double value) { return result.gates.at({t, n, gate * hidden + i}) = value; };
        if (lstm) {
          const double input = keep(0, logistic(sum(0))), forget = keep(1, logistic(sum(1))), cell = keep(2, std::tanh(sum(2))),
                       output = keep(3, logistic(sum(3)));
          at(c, i) = forget * at(c, i) + input * cell;
          result.cells.at({t, n, i}) = at(c, i);
          at(full, i) = output * std::tanh(at(c, i));
        } else if (gru) {
          const double q = at(product, 2 * hidden + i) + (in.bias_hn ? (*in.bias_hn)[i] : 0);
          const double r = keep(0, logistic(sum(0))), z = keep(1, logistic(sum(1))),
                       fresh = keep(2, std::tanh(in.gates->at({t, n, 2 * hidden + i}) + r * q));
          result.cells.at({t, n, i}) = q;
          at(full, i) = (1 - z) * fresh + z * at(h, i);
        } else {
          at(full, i) = keep(0, in.cell == "relu" ? std::max(sum(0), 0.0) : std::tanh(sum(0)));
        }
      }
      for (std::int64_t i = 0; i < out; ++i) {
        double value = at(full, in.weight_hr ? 0 : i);
        if (in.weight_hr) {
          value = 0;
          for (std::int64_t j = 0; j < hidden; ++j) value += in.weight_hr->at({i, j}) * at(full, j);
        }
        at(h, i) = value;
        result.y.at({t, n, i}) = value;
      }
    }
    for (std::int64_t i = 0; i < out; ++i) result.h.at({n, i}) = at(h, i);
    for (std::int64_t i = 0; i < hidden; ++i) result.c.at({n, i}) = at(c, i);
  }
  return result;
}

/// A layer over x {T, N, I}; null: undefined.
struct LayerArrays {
  const Array *x = nullptr, *h0 = nullptr, *c0 = nullptr, *weight_ih = nullptr, *weight_hh = nullptr, *bias_ih = nullptr,
              *bias_hh = nullptr, *weight_hr = nullptr, *lengths = nullptr;
};
/// Outputs: the sequence, the last h, and an LSTM's last c.
inline Arrays recurrent_layer(const std::string& cell, bool reverse, const LayerArrays& in) {
  const auto &x = *in.x, &weight = *in.weight_ih;
  const auto width = weight.size(0), hidden = width / (cell == "lstm" ? 4 : cell == "gru" ? 3 : 1);
  Array gates({x.size(0), x.size(1), width}), bias_hn({hidden});
  for (std::int64_t row = 0; row < x.size(0) * x.size(1); ++row)
    for (std::int64_t j = 0; j < width; ++j) {
      double sum = in.bias_ih ? (*in.bias_ih)[j] : 0;
      if (in.bias_hh && !(cell == "gru" && j >= 2 * hidden)) sum += (*in.bias_hh)[j];
      for (std::int64_t i = 0; i < x.size(2); ++i) sum += weight.at({j, i}) * x[row * x.size(2) + i];
      gates[row * width + j] = sum;
    }
  if (in.bias_hh && cell == "gru")
    for (std::int64_t i = 0; i < hidden; ++i) bias_hn[i] = (*in.bias_hh)[2 * hidden + i];
  auto result = recurrence({cell, reverse, &gates, in.h0, in.c0, in.weight_hh, &bias_hn, in.weight_hr, in.lengths});
  Arrays outputs{std::move(result.y), std::move(result.h)};
  if (cell == "lstm") outputs.push_back(std::move(result.c));
  return outputs;
}

}  // namespace clnet::testing::reference
