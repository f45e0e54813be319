// Recurrent layers, and their gradients by differences.
#include <algorithm>
#include <cmath>

#include "tools/self_test/problem.h"

namespace clnet::tools {

namespace {

enum class Cell { rnn, lstm, gru };

struct LayerSizes {
  std::int64_t steps, batch, input, hidden;
};

/// Outputs of all steps; values: x, weight_ih, weight_hh, bias_ih, bias_hh.
Values layer(Cell cell, bool reverse, const LayerSizes& s, const std::vector<Values>& values) {
  const auto gates = cell == Cell::lstm ? 4 : cell == Cell::gru ? 3 : 1;
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  Values y(at(s.steps * s.batch * s.hidden));
  for (std::int64_t n = 0; n < s.batch; ++n) {
    Values h(at(s.hidden)), c(h);
    for (std::int64_t step = 0; step < s.steps; ++step) {
      const auto t = reverse ? s.steps - 1 - step : step;
      Values from_x(at(gates * s.hidden)), from_h(from_x);
      for (std::int64_t j = 0; j < gates * s.hidden; ++j) {
        from_x[at(j)] = values[3][at(j)];
        from_h[at(j)] = values[4][at(j)];
        for (std::int64_t i = 0; i < s.input; ++i)
          from_x[at(j)] += values[1][at(j * s.input + i)] * values[0][at((t * s.batch + n) * s.input + i)];
        for (std::int64_t i = 0; i < s.hidden; ++i) from_h[at(j)] += values[2][at(j * s.hidden + i)] * h[at(i)];
      }
      for (std::int64_t i = 0; i < s.hidden; ++i) {
        const auto sum = [&](std::int64_t gate) { return from_x[at(gate * s.hidden + i)] + from_h[at(gate * s.hidden + i)]; };
        double& state = h[at(i)];
        if (cell == Cell::rnn) {
          state = std::tanh(sum(0));
        } else if (cell == Cell::lstm) {
          c[at(i)] = sigmoid(sum(1)) * c[at(i)] + sigmoid(sum(0)) * std::tanh(sum(2));
          state = sigmoid(sum(3)) * std::tanh(c[at(i)]);
        } else {
          const double fresh = std::tanh(from_x[at(2 * s.hidden + i)] + sigmoid(sum(0)) * from_h[at(2 * s.hidden + i)]);
          state = fresh + sigmoid(sum(1)) * (state - fresh);
        }
        y[at((t * s.batch + n) * s.hidden + i)] = state;
      }
    }
  }
  return y;
}

/// The outputs, and the gradient of the sum of their squares by weight_hh.
Problem layer_problem(Cell cell, bool reverse, const LayerSizes& s) {
  const auto rows = (cell == Cell::lstm ? 4 : cell == Cell::gru ? 3 : 1) * s.hidden;
  const double most = 1 / std::sqrt(static_cast<double>(s.hidden));
  Problem result{
      .op = "recurrent",
      .name = std::string(cell == Cell::lstm  ? "LSTM"
                          : cell == Cell::gru ? "GRU"
                                              : "RNN") +
              (reverse ? " in reverse of " : " of ") + to_string(Shape{s.steps, s.batch, s.input}) + " to " +
              std::to_string(s.hidden),
      .inputs = {{{s.steps, s.batch, s.input}}, {{rows, s.input}}, {{rows, s.hidden}, -most, most}, {{rows}}, {{rows}}},
      .terms = static_cast<double>(s.steps * s.batch * s.hidden),
      .narrow = false};
  result.run = [=](const auto& t) {
    const RecurrentWeights weights{t[1], t[2], t[3], t[4], {}};
    const RecurrentOptions options{.reverse = reverse};
    const Tensor y = cell == Cell::lstm  ? lstm_layer(t[0], {}, {}, weights, options).output
                     : cell == Cell::gru ? gru_layer(t[0], {}, weights, options).output
                                         : rnn_layer(t[0], {}, weights, Nonlinearity::tanh, options).output;
    return std::vector{y, gradients(sum(square(y)), {t[2]})[0]};
  };
  result.reference = [=](const auto& v) {
    const auto loss = [&](const std::vector<Values>& values) {
      double total = 0;
      for (double value : layer(cell, reverse, s, values)) total += value * value;
      return total;
    };
    auto moved = v;
    Values gradient(v[2].size());
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      constexpr double step = 1e-5;
      moved[2][i] = v[2][i] + step;
      const double above = loss(moved);
      moved[2][i] = v[2][i] - step;
      gradient[i] = (above - loss(moved)) / (2 * step);
      moved[2][i] = v[2][i];
    }
    return std::vector<Values>{layer(cell, reverse, s, v), gradient};
  };
  return result;
}

}  // namespace

std::vector<Problem> make_recurrent_problems(bool full) {
  std::vector<Problem> result{layer_problem(Cell::lstm, false, {4, 3, 3, 7}), layer_problem(Cell::gru, true, {3, 3, 2, 6})};
  if (!full) return result;
  result.push_back(layer_problem(Cell::rnn, false, {3, 2, 3, 9}));
  for (auto cell : {Cell::rnn, Cell::lstm, Cell::gru})
    for (bool reverse : {false, true}) result.push_back(layer_problem(cell, reverse, {5, 9, 4, 18}));
  return result;
}

}  // namespace clnet::tools
