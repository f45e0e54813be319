// Cases of recurrent layers and their single steps.
#pragma once

#include <fmt/format.h>

#include "tests/reference/recurrent/recurrent.h"

namespace clnet::testing {

struct RecurrentSizes {
  std::int64_t steps, batch, input, hidden;
};
struct RecurrentKind {
  std::int64_t projected = 0;  ///< of an LSTM; 0: none
  bool reverse = false, bias = true, states = true, lengths = false;
  bool single = false;  ///< a step by itself
};

/// Inputs, in this order, of those that there are: x, h0, c0, weight_ih, weight_hh, bias_ih, bias_hh, weight_hr, lengths.
inline Case recurrent_case(const std::string& cell, const RecurrentSizes& size, const RecurrentKind& s = {}) {
  const bool lstm = cell == "lstm";
  const auto rows = (lstm ? 4 : cell == "gru" ? 3 : 1) * size.hidden, out = s.projected > 0 ? s.projected : size.hidden;
  std::vector<Input> inputs{{s.single ? Shape{size.batch, size.input} : Shape{size.steps, size.batch, size.input}}};
  // Weights as they are in networks: states must not explode over the steps, nor relu's decisions be close.
  const double most = 1.5 / std::sqrt(static_cast<double>(size.hidden));
  if (s.states) inputs.push_back({{size.batch, out}});
  if (s.states && lstm) inputs.push_back({{size.batch, size.hidden}, -2, 2});
  inputs.push_back({{rows, size.input}});
  inputs.push_back({{rows, out}, -most, most});
  if (s.bias) inputs.insert(inputs.end(), 2, {{rows}});
  if (s.projected > 0) inputs.push_back({{out, size.hidden}, -most, most});
  if (s.lengths)
    inputs.push_back({{size.batch}, -1, static_cast<double>(size.steps + 1), size.batch % 2 == 0 ? Dtype::i64 : Dtype::i32});
  /// Calls take(inputs by role) with pointers, null where there is none.
  const auto roles = [=](const auto& in, const auto& take) {
    std::size_t next = 0;
    const auto get = [&](bool there) { return there ? &in[next++] : nullptr; };
    const auto *x = get(true), *h0 = get(s.states), *c0 = get(s.states && lstm), *ih = get(true), *hh = get(true),
               *bias_ih = get(s.bias), *bias_hh = get(s.bias), *hr = get(s.projected > 0), *lengths = get(s.lengths);
    return take(x, h0, c0, ih, hh, bias_ih, bias_hh, hr, lengths);
  };
  return {.name = fmt::format("{}{}, {} steps of {} x {} to {}{}{}{}{}{}", cell, s.single ? " cell" : "", size.steps, size.batch,
                              size.input, size.hidden, s.projected > 0 ? fmt::format(" to {}", s.projected) : "",
                              s.reverse ? ", reverse" : "", s.bias ? "" : ", no bias", s.states ? "" : ", no states",
                              s.lengths ? ", lengths" : ""),
          .inputs = inputs,
          .run =
              [=](const std::vector<Tensor>& in) {
                return roles(in,
                             [&](auto* x, auto* h0, auto* c0, auto* ih, auto* hh, auto* bias_ih, auto* bias_hh, auto* hr,
                                 auto* lengths) -> std::vector<Tensor> {
                               const auto value = [](const Tensor* tensor) { return tensor ? *tensor : Tensor{}; };
                               const RecurrentWeights weights{*ih, *hh, value(bias_ih), value(bias_hh), value(hr)};
                               const RecurrentOptions options{s.reverse, value(lengths)};
                               const auto nonlinearity = cell == "relu" ? Nonlinearity::relu : Nonlinearity::tanh;
                               if (s.single) {
                                 if (cell == "gru") return {gru_cell(*x, value(h0), weights)};
                                 if (!lstm) return {rnn_cell(*x, value(h0), weights, nonlinearity)};
                                 const auto next = lstm_cell(*x, {value(h0), value(c0)}, weights);
                                 return {next.h, next.c};
                               }
                               if (lstm) {
                                 const auto result = lstm_layer(*x, value(h0), value(c0), weights, options);
                                 return {result.output, result.h, result.c};
                               }
                               const auto result = cell == "gru" ? gru_layer(*x, value(h0), weights, options)
                                                                 : rnn_layer(*x, value(h0), weights, nonlinearity, options);
                               return {result.output, result.h};
                             });
              },
          .reference =
              [=](const Arrays& in) {
                return roles(in, [&](auto* x, auto* h0, auto* c0, auto* ih, auto* hh, auto* bias_ih, auto* bias_hh, auto* hr,
                                     auto* lengths) {
                  Array sequence = *x;
                  if (s.single) sequence.shape = {1, size.batch, size.input};
                  auto result =
                      reference::recurrent_layer(cell, s.reverse, {&sequence, h0, c0, ih, hh, bias_ih, bias_hh, hr, lengths});
                  if (s.single) result.erase(result.begin());
                  return result;
                });
              }};
}

inline std::vector<Case> recurrent_cases(const std::string& cell) {
  std::vector<Case> cases;
  const auto add = [&](const RecurrentSizes& size, const RecurrentKind& kind = {}) {
    cases.push_back(recurrent_case(cell, size, kind));
  };
  // Ends within vectors, panels of units and blocks of rows.
  add({1, 1, 1, 1});
  add({5, 3, 4, 5});
  add({3, 7, 5, 16}, {.bias = false, .states = false});
  add({4, 13, 3, 35}, {.reverse = true});
  add({2, 5, 3, 65}, {.states = false});
  add({5, 6, 4, 7}, {.lengths = true});
  add({6, 5, 4, 17}, {.reverse = true, .lengths = true});
  if (cell == "lstm") {
    add({4, 3, 4, 7}, {.projected = 3});
    add({4, 4, 2, 5}, {.projected = 5, .reverse = true, .bias = false, .lengths = true});
  }
  return cases;
}

inline std::vector<Case> recurrent_cell_cases() {
  std::vector<Case> cases;
  for (const std::string cell : {"tanh", "relu", "lstm", "gru"}) {
    cases.push_back(recurrent_case(cell, {1, 3, 4, 5}, {.single = true}));
    cases.push_back(recurrent_case(cell, {1, 2, 3, 17}, {.bias = false, .states = false, .single = true}));
  }
  cases.push_back(recurrent_case("lstm", {1, 3, 4, 6}, {.projected = 2, .single = true}));
  return cases;
}

}  // namespace clnet::testing
