// RNN, GRU and LSTM. What clnet's layers compute goes to them; other forms are unrolled step by step.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "clnet/ops/elementwise.h"
#include "clnet/ops/index.h"
#include "clnet/ops/matmul.h"
#include "clnet/ops/recurrent.h"
#include "clnet/ops/shape.h"
#include "lib/onnx/operators.h"

namespace clnet::onnx {
namespace {

using Activation = std::function<Tensor(const Tensor&)>;

std::string lower(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name;
}

Activation activation_of(const Call& call, std::string name, double alpha, double beta) {
  name = lower(std::move(name));
  const auto or_default = [](double given, double otherwise) { return std::isnan(given) ? otherwise : given; };
  if (name == "tanh") return [](const Tensor& x) { return tanh(x); };
  if (name == "sigmoid") return [](const Tensor& x) { return sigmoid(x); };
  if (name == "relu") return [](const Tensor& x) { return relu(x); };
  if (name == "softsign") return [](const Tensor& x) { return softsign(x); };
  if (name == "softplus") return [](const Tensor& x) { return softplus(x, 1); };
  if (name == "leakyrelu") return [a = or_default(alpha, 0.01)](const Tensor& x) { return leaky_relu(x, a); };
  if (name == "elu") return [a = or_default(alpha, 1.0)](const Tensor& x) { return elu(x, a); };
  if (name == "thresholdedrelu") return [a = or_default(alpha, 1.0)](const Tensor& x) { return threshold(x, a, 0); };
  if (name == "affine") return [a = or_default(alpha, 1.0), b = or_default(beta, 0.0)](const Tensor& x) { return x * a + b; };
  if (name == "scaledtanh")
    return [a = or_default(alpha, 1.0), b = or_default(beta, 1.0)](const Tensor& x) { return tanh(x * b) * a; };
  if (name == "hardsigmoid")
    return [a = or_default(alpha, 0.2), b = or_default(beta, 0.5)](const Tensor& x) { return clamp(x * a + b, 0, 1); };
  call.refuse(fmt::format("the activation {}", name));
}

bool takes_beta(const std::string& name) {
  const auto plain = lower(name);
  return plain == "affine" || plain == "scaledtanh" || plain == "hardsigmoid";
}
bool takes_alpha(const std::string& name) {
  const auto plain = lower(name);
  return takes_beta(name) || plain == "leakyrelu" || plain == "elu" || plain == "thresholdedrelu";
}

/// The attributes and inputs that the three operators share. Inputs: X, W, R, B, sequence_lens, initial_h.
struct Recurrence {
  const Call& call;
  std::int64_t gates, hidden;
  std::vector<bool> reversed;  ///< by direction
  bool batch_first;
  Tensor x;  ///< {T, N, I}
  Tensor lengths;
  std::vector<std::string> names;  ///< of activations, `functions` per direction
  std::size_t functions;
  double clip;

  Recurrence(const Call& from, std::int64_t gate_count, std::vector<std::string> standard)
      : call(from), gates(gate_count), functions(standard.size()) {
    const auto direction = call.attribute("direction", std::string_view("forward"));
    if (direction == "bidirectional")
      reversed = {false, true};
    else if (direction == "forward" || direction == "reverse")
      reversed = {direction == "reverse"};
    else
      call.fail(fmt::format("the direction is \"{}\"", direction));
    batch_first = call.attribute("layout", std::int64_t{0}) != 0;
    x = batch_first ? transpose(call.x(0), 0, 1) : call.x(0);
    if (x.rank() != 3 || call.shape(1).rank() != 3 || call.shape(2).rank() != 3)
      call.fail(fmt::format("X {}, W {}, R {}", to_string(call.shape(0)), to_string(call.shape(1)), to_string(call.shape(2))));
    hidden = call.shape(2)[2];
    if (const auto told = call.attribute("hidden_size", hidden); told != hidden)
      call.fail(fmt::format("hidden_size is {}, R has {}", told, hidden));
    const auto directions = static_cast<std::int64_t>(reversed.size()), rows = gates * hidden;
    const auto require = [&](std::size_t input, const Shape& shape) {
      if (call.has(input) && !(call.shape(input) == shape))
        call.fail(fmt::format("input {} is {} instead of {}", input, to_string(call.shape(input)), to_string(shape)));
    };
    if (hidden < 1) call.fail(fmt::format("R is {}", to_string(call.shape(2))));
    require(1, {directions, rows, x.size(2)});
    require(2, {directions, rows, hidden});
    require(3, {directions, 2 * rows});
    if (gates == 4) require(7, {directions, 3 * hidden});
    lengths = call.optional(4);
    clip = call.attribute("clip", 0.0);
    names = call.texts("activations");
    if (names.empty())
      for (std::size_t d = 0; d < reversed.size(); ++d) names.insert(names.end(), standard.begin(), standard.end());
    if (names.size() != functions * reversed.size())
      call.fail(fmt::format("{} activations of {} directions", names.size(), reversed.size()));
  }

  bool has_activations(const std::vector<std::string>& standard) const {
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (lower(names[i]) != standard[i % functions]) return false;
    }
    return call.numbers("activation_alpha").empty() && call.numbers("activation_beta").empty();
  }

  Activation activation(std::size_t direction, std::size_t which) const {
    const auto at = direction * functions + which;
    const auto alphas = call.numbers("activation_alpha"), betas = call.numbers("activation_beta");
    // Functions without such a number take none.
    std::size_t alpha = 0, beta = 0;
    for (std::size_t i = 0; i < at; ++i) {
      alpha += takes_alpha(names[i]) ? 1 : 0;
      beta += takes_beta(names[i]) ? 1 : 0;
    }
    const auto nan = std::nan("");
    auto f = activation_of(call, names[at], takes_alpha(names[at]) && alpha < alphas.size() ? alphas[alpha] : nan,
                           takes_beta(names[at]) && beta < betas.size() ? betas[beta] : nan);
    if (clip <= 0) return f;
    return [f, limit = clip](const Tensor& v) { return f(clamp(v, -limit, limit)); };
  }

  /// Of a direction: rows of gates in another order; `blocks` numbers ONNX's.
  static Tensor in_order(const Tensor& rows, const std::vector<std::int64_t>& blocks) {
    const auto parts = chunk(rows, static_cast<std::int64_t>(blocks.size()));
    std::vector<Tensor> ordered;
    for (const auto block : blocks) ordered.push_back(parts[static_cast<std::size_t>(block)]);
    return concat(ordered, 0);
  }

  RecurrentWeights weights(std::size_t direction, const std::vector<std::int64_t>& blocks) const {
    const auto d = static_cast<std::int64_t>(direction);
    const auto made = call.made_of({1, 2, 3}, direction, [&](const std::vector<Tensor>& given) {
      std::vector<Tensor> out{in_order(select(given[0], 0, d), blocks), in_order(select(given[1], 0, d), blocks), {}, {}};
      if (given[2].defined()) {
        const auto both = chunk(select(given[2], 0, d), 2);
        out[2] = in_order(both[0], blocks);
        out[3] = in_order(both[1], blocks);
      }
      return out;
    });
    return {made[0], made[1], made[2], made[3]};
  }

  /// {N, H} of an initial state {directions, N, H}, or {N, directions, H} with batches first; undefined: zeros.
  Tensor state(std::size_t input, std::size_t direction) const {
    if (!call.has(input)) return {};
    return select(call.x(input), batch_first ? 1 : 0, static_cast<std::int64_t>(direction));
  }
  Tensor state_or_zeros(std::size_t input, std::size_t direction) const {
    const auto given = state(input, direction);
    return given.defined() ? given : zeros({x.size(1), hidden}, x.dtype());
  }

  RunValue outputs_of(const std::vector<Tensor>& directions) const {
    // Of each {T, N, H}: {T, directions, N, H}, or {N, T, directions, H}.
    const Tensor y = stack(directions, 1);
    return call.give(batch_first ? permute(y, {2, 0, 1, 3}) : y);
  }
  RunValue states_of(const std::vector<Tensor>& directions) const {
    const Tensor y = stack(directions, 0);
    return call.give(batch_first ? transpose(y, 0, 1) : y);
  }

  /// Runs `step` from the first time to the last, or back. It gets x_t and the states, and returns the new states, of which the
  /// first is the output.
  Tensor unrolled(std::size_t direction, std::vector<Tensor>& states,
                  const std::function<std::vector<Tensor>(const Tensor&, const std::vector<Tensor>&)>& step) const {
    const auto steps = x.size(0);
    std::vector<Tensor> outputs(static_cast<std::size_t>(steps));
    for (std::int64_t i = 0; i < steps; ++i) {
      const auto t = reversed[direction] ? steps - 1 - i : i;
      auto next = step(select(x, 0, t), states);
      Tensor y = next[0];
      if (lengths.defined()) {
        // Behind a sequence's end outputs are 0 and states stay.
        const Tensor inside = unsqueeze(greater(cast(lengths, Dtype::i64), static_cast<double>(t)), 1);
        y = where(inside, y, 0.0);
        for (std::size_t k = 0; k < states.size(); ++k) next[k] = where(inside, next[k], states[k]);
      }
      outputs[static_cast<std::size_t>(t)] = y;
      states = std::move(next);
    }
    return stack(outputs, 0);
  }
};

/// A row of a direction's matrices by gate.
struct Gate {
  Tensor w, r, wb, rb;
  Tensor input(const Tensor& x) const { return linear(x, w, wb); }
  Tensor hidden(const Tensor& h) const { return linear(h, r, rb); }
};

std::vector<Gate> gates_of(const Recurrence& of, std::size_t direction) {
  std::vector<std::int64_t> same;
  for (std::int64_t k = 0; k < of.gates; ++k) same.push_back(k);
  const auto weights = of.weights(direction, same);
  const auto parts = [&](const Tensor& rows) {
    return rows.defined() ? chunk(rows, of.gates) : std::vector<Tensor>(static_cast<std::size_t>(of.gates));
  };
  const auto w = parts(weights.weight_ih), r = parts(weights.weight_hh), wb = parts(weights.bias_ih), rb = parts(weights.bias_hh);
  std::vector<Gate> out;
  for (std::size_t k = 0; k < static_cast<std::size_t>(of.gates); ++k) out.push_back({w[k], r[k], wb[k], rb[k]});
  return out;
}

Outputs rnn(const Call& call) {
  const Recurrence of(call, 1, {"tanh"});
  std::vector<Tensor> outputs, states;
  for (std::size_t d = 0; d < of.reversed.size(); ++d) {
    const bool relus = of.has_activations({"relu"});
    if (of.clip <= 0 && (relus || of.has_activations({"tanh"}))) {
      const auto result = rnn_layer(of.x, of.state(5, d), of.weights(d, {0}), relus ? Nonlinearity::relu : Nonlinearity::tanh,
                                    {.reverse = of.reversed[d], .lengths = of.lengths});
      outputs.push_back(result.output);
      states.push_back(result.h);
      continue;
    }
    const auto gate = gates_of(of, d)[0];
    const auto f = of.activation(d, 0);
    std::vector<Tensor> state{of.state_or_zeros(5, d)};
    outputs.push_back(of.unrolled(d, state, [&](const Tensor& x, const std::vector<Tensor>& now) {
      return std::vector<Tensor>{f(gate.input(x) + gate.hidden(now[0]))};
    }));
    states.push_back(state[0]);
  }
  return {of.outputs_of(outputs), of.states_of(states)};
}

Outputs gru(const Call& call) {
  const Recurrence of(call, 3, {"sigmoid", "tanh"});
  const bool resets_product = call.attribute("linear_before_reset", std::int64_t{0}) != 0;
  std::vector<Tensor> outputs, states;
  for (std::size_t d = 0; d < of.reversed.size(); ++d) {
    if (of.clip <= 0 && resets_product && of.has_activations({"sigmoid", "tanh"})) {
      // ONNX has z, r, h; clnet r, z, n.
      const auto result =
          gru_layer(of.x, of.state(5, d), of.weights(d, {1, 0, 2}), {.reverse = of.reversed[d], .lengths = of.lengths});
      outputs.push_back(result.output);
      states.push_back(result.h);
      continue;
    }
    const auto gate = gates_of(of, d);
    const auto f = of.activation(d, 0), g = of.activation(d, 1);
    std::vector<Tensor> state{of.state_or_zeros(5, d)};
    outputs.push_back(of.unrolled(d, state, [&](const Tensor& x, const std::vector<Tensor>& now) {
      const Tensor& h = now[0];
      const Tensor z = f(gate[0].input(x) + gate[0].hidden(h)), r = f(gate[1].input(x) + gate[1].hidden(h));
      const Tensor n = g(gate[2].input(x) + (resets_product ? r * gate[2].hidden(h) : gate[2].hidden(r * h)));
      return std::vector<Tensor>{(1.0 - z) * n + z * h};
    }));
    states.push_back(state[0]);
  }
  return {of.outputs_of(outputs), of.states_of(states)};
}

Outputs lstm(const Call& call) {
  const Recurrence of(call, 4, {"sigmoid", "tanh", "tanh"});
  const bool couples = call.attribute("input_forget", std::int64_t{0}) != 0;
  std::vector<Tensor> outputs, states, cells;
  for (std::size_t d = 0; d < of.reversed.size(); ++d) {
    if (of.clip <= 0 && !couples && !call.has(7) && of.has_activations({"sigmoid", "tanh", "tanh"})) {
      // ONNX has i, o, f, c; clnet i, f, g, o.
      const auto result = lstm_layer(of.x, of.state(5, d), of.state(6, d), of.weights(d, {0, 2, 3, 1}),
                                     {.reverse = of.reversed[d], .lengths = of.lengths});
      outputs.push_back(result.output);
      states.push_back(result.h);
      cells.push_back(result.c);
      continue;
    }
    const auto gate = gates_of(of, d);
    const auto f = of.activation(d, 0), g = of.activation(d, 1), h = of.activation(d, 2);
    // Peepholes of i, o and f.
    std::vector<Tensor> peep(3);
    if (call.has(7)) peep = chunk(select(call.x(7), 0, static_cast<std::int64_t>(d)), 3);
    const auto peeped = [&](Tensor sum, std::size_t which, const Tensor& c) {
      return peep[which].defined() ? sum + peep[which] * c : sum;
    };
    std::vector<Tensor> state{of.state_or_zeros(5, d), of.state_or_zeros(6, d)};
    outputs.push_back(of.unrolled(d, state, [&](const Tensor& x, const std::vector<Tensor>& now) {
      const Tensor &before = now[0], &c = now[1];
      const auto sum = [&](std::size_t k) { return gate[k].input(x) + gate[k].hidden(before); };
      const Tensor i = f(peeped(sum(0), 0, c));
      const Tensor forget = couples ? 1.0 - i : f(peeped(sum(2), 2, c));
      const Tensor cell = forget * c + i * g(sum(3));
      const Tensor o = f(peeped(sum(1), 1, cell));
      return std::vector<Tensor>{o * h(cell), cell};
    }));
    states.push_back(state[0]);
    cells.push_back(state[1]);
  }
  return {of.outputs_of(outputs), of.states_of(states), of.states_of(cells)};
}

}  // namespace

std::vector<Operator> recurrent_operators() {
  using enum Role;
  return {
      {"GRU", 1, gru, {data, weight, weight, weight, data}},
      {"LSTM", 1, lstm, {data, weight, weight, weight, data}},
      {"RNN", 1, rnn, {data, weight, weight, weight, data}},
  };
}

}  // namespace clnet::onnx
