// nn::RNN, nn::LSTM, nn::GRU and their cells.
#include <catch2/catch.hpp>
#include <cmath>

#include "tests/ops/check.h"
#include "tests/reference/recurrent/recurrent.h"

using namespace clnet;
using namespace clnet::testing;
using Catch::Matchers::Contains;

namespace {

std::vector<std::string> names(const nn::Module& module) {
  std::vector<std::string> result;
  for (const auto& [name, parameter] : module.parameters()) result.push_back(name);
  return result;
}

Array part(const Array& all, std::int64_t index) {
  const auto count = all.numel() / all.size(0);
  Array result({all.size(1), all.size(2)});
  for (std::int64_t i = 0; i < count; ++i) result[i] = all[index * count + i];
  return result;
}

struct Want {
  Array output;
  Arrays h, c;
};

/// Layer after layer, both directions beside each other.
Want reference_of(const std::string& cell, const nn::Module& module, const Array& x, const Array& h0, const Array& c0,
                  const Array* lengths, int layers, int ways) {
  std::map<std::string, Array> weights;
  for (const auto& [name, parameter] : module.parameters()) weights[name] = to_array(parameter);
  Want want{x, {}, {}};
  for (int layer = 0; layer < layers; ++layer) {
    Arrays outputs;
    for (int way = 0; way < ways; ++way) {
      const auto suffix = "_l" + std::to_string(layer) + (way == 1 ? "_reverse" : "");
      const auto get = [&](const std::string& name) -> const Array* {
        const auto found = weights.find(name + suffix);
        return found == weights.end() ? nullptr : &found->second;
      };
      const Array h = part(h0, layer * ways + way), c = cell == "lstm" ? part(c0, layer * ways + way) : Array();
      auto result = reference::recurrent_layer(cell, way == 1,
                                               {&want.output, &h, cell == "lstm" ? &c : nullptr, get("weight_ih"),
                                                get("weight_hh"), get("bias_ih"), get("bias_hh"), get("weight_hr"), lengths});
      outputs.push_back(result[0]);
      want.h.push_back(result[1]);
      if (cell == "lstm") want.c.push_back(result[2]);
    }
    const auto width = outputs[0].size(2), rows = x.size(0) * x.size(1);
    want.output = Array({x.size(0), x.size(1), width * ways});
    for (std::int64_t row = 0; row < rows; ++row)
      for (int way = 0; way < ways; ++way)
        for (std::int64_t i = 0; i < width; ++i)
          want.output[(row * ways + way) * width + i] = outputs[static_cast<std::size_t>(way)][row * width + i];
  }
  return want;
}

}  // namespace

TEST_CASE("recurrent layers have PyTorch's parameters") {
  const nn::LSTM lstm(3, 5, 2, {.bidirectional = true, .proj_size = 2});
  CHECK(names(lstm) ==
        std::vector<std::string>{"weight_ih_l0",         "weight_hh_l0",         "bias_ih_l0",           "bias_hh_l0",
                                 "weight_hr_l0",         "weight_ih_l0_reverse", "weight_hh_l0_reverse", "bias_ih_l0_reverse",
                                 "bias_hh_l0_reverse",   "weight_hr_l0_reverse", "weight_ih_l1",         "weight_hh_l1",
                                 "bias_ih_l1",           "bias_hh_l1",           "weight_hr_l1",         "weight_ih_l1_reverse",
                                 "weight_hh_l1_reverse", "bias_ih_l1_reverse",   "bias_hh_l1_reverse",   "weight_hr_l1_reverse"});
  const auto parameters = lstm.parameters();
  CHECK(parameters[0].second.value().shape() == Shape{20, 3});
  CHECK(parameters[1].second.value().shape() == Shape{20, 2});
  CHECK(parameters[4].second.value().shape() == Shape{2, 5});
  CHECK(parameters[10].second.value().shape() == Shape{20, 4});
  CHECK(lstm.kind() == "LSTM(3, 5, proj_size=2, num_layers=2, bidirectional=true)");
  CHECK(names(nn::GRUCell(2, 3, {.bias = false})) == std::vector<std::string>{"weight_ih", "weight_hh"});
  const nn::GRU gru(2, 64);
  double most = 0, squares = 0;
  const auto drawn = gru.parameters()[1].second.value().to_vector<double>();
  for (double value : drawn) {
    most = std::max(most, std::abs(value));
    squares += value * value;
  }
  CHECK(most <= 0.125);
  CHECK(squares / static_cast<double>(drawn.size()) == Approx(0.125 * 0.125 / 3).epsilon(0.05));
}

TEST_CASE("recurrent layers of several layers and directions, with lengths, states and any order of batch and steps") {
  for (const std::string cell : {"tanh", "relu", "lstm", "gru"})
    for (int ways : {1, 2})
      for (bool batch_first : {false, true})
        for (bool with_lengths : {false, true}) {
          if (batch_first == with_lengths && ways == 1) continue;
          INFO(cell << ", " << ways << " directions" << (batch_first ? ", batch first" : "")
                    << (with_lengths ? ", lengths" : ""));
          const int layers = 2;
          const std::int64_t projected = cell == "lstm" && batch_first ? 3 : 4;
          const nn::RecurrentOptions options{.nonlinearity = cell == "relu" ? Nonlinearity::relu : Nonlinearity::tanh,
                                             .bias = ways == 2,
                                             .batch_first = batch_first,
                                             .bidirectional = ways == 2,
                                             .proj_size = projected == 3 ? 3 : 0};
          auto x = make_values({{4, 3, 3}}, 1), h0 = make_values({{layers * ways, 3, projected}}, 2),
               c0 = make_values({{layers * ways, 3, 4}}, 3);
          Array lengths({3}, {2, 4, 1});
          Tensor input = to_tensor(x, Dtype::f32);
          if (batch_first) input = transpose(input, 0, 1);
          const Tensor h = to_tensor(h0, Dtype::f32), c = to_tensor(c0, Dtype::f32),
                       steps = with_lengths ? to_tensor(lengths, Dtype::i64) : Tensor{};
          LstmResult got;
          Want want;
          const auto judge = [&](const nn::Module& module) {
            want = reference_of(cell, module, x, h0, c0, with_lengths ? &lengths : nullptr, layers, ways);
          };
          if (cell == "lstm") {
            const nn::LSTM module(3, 4, layers, options);
            got = module(input, {h, c}, steps);
            judge(module);
          } else if (cell == "gru") {
            const nn::GRU module(3, 4, layers, options);
            const auto result = module(input, h, steps);
            got = {result.output, result.h, {}};
            judge(module);
          } else {
            const nn::RNN module(3, 4, layers, options);
            const auto result = module(input, h, steps);
            got = {result.output, result.h, {}};
            judge(module);
          }
          compare("output", to_array(batch_first ? transpose(got.output, 0, 1) : got.output), want.output, 1e-6);
          const auto last = to_array(got.h);
          REQUIRE(last.size(0) == layers * ways);
          for (int i = 0; i < layers * ways; ++i) {
            compare("h", part(last, i), want.h[static_cast<std::size_t>(i)], 1e-6);
            if (cell == "lstm") compare("c", part(to_array(got.c), i), want.c[static_cast<std::size_t>(i)], 1e-6);
          }
        }
}

TEST_CASE("a recurrent layer without a batch, and the cells") {
  nn::LSTM lstm(3, 4, {.bidirectional = true});
  const Tensor x = make_tensor({5, 3}, 1), h = make_tensor({2, 4}, 2), c = make_tensor({2, 4}, 3);
  const auto one = lstm(x, {h, c}), many = lstm(unsqueeze(x, 1), {unsqueeze(h, 1), unsqueeze(c, 1)});
  CHECK(one.output.shape() == Shape{5, 8});
  CHECK(one.h.shape() == Shape{2, 4});
  compare("output", to_array(one.output), to_array(squeeze(many.output, 1)), 1e-6);
  compare("c", to_array(one.c), to_array(squeeze(many.c, 1)), 1e-6);
  compare("forward", to_array(lstm(x)), to_array(lstm(x, {}).output), 1e-6);

  nn::RNNCell rnn(3, 4);
  nn::LSTMCell lstm_step(3, 4);
  nn::GRUCell gru(3, 4);
  const Tensor row = make_tensor({3}, 4), state = make_tensor({4}, 5);
  CHECK(rnn(row, state).shape() == Shape{4});
  compare("rnn", to_array(rnn(row, state)), to_array(squeeze(rnn(unsqueeze(row, 0), unsqueeze(state, 0)), 0)), 1e-6);
  compare("gru", to_array(gru(row, state)), to_array(squeeze(gru(unsqueeze(row, 0), unsqueeze(state, 0)), 0)), 1e-6);
  compare("lstm", to_array(lstm_step(row, {state, state}).c),
          to_array(squeeze(lstm_step(unsqueeze(row, 0), {unsqueeze(state, 0), unsqueeze(state, 0)}).c, 0)), 1e-6);
}

TEST_CASE("dropout between recurrent layers, in training only") {
  nn::RNN rnn(2, 200, 2, {.nonlinearity = Nonlinearity::relu, .bias = false, .dropout = 0.25});
  // The first layer gives ones, the second the mean of what is left of them, however it is scaled.
  const Tensor first = ones({200, 2}) * 0.5, none = zeros({200, 200}), mean_of = ones({200, 200}) * (1.0 / 200);
  rnn.load_state_dict({{"weight_ih_l0", first}, {"weight_hh_l0", none}, {"weight_ih_l1", mean_of}, {"weight_hh_l1", none}});
  const Tensor x = ones({3, 50, 2});
  double sum = 0, squares = 0;
  const auto trained = rnn(x).to_vector<double>();
  for (double value : trained) sum += value;
  const double mean = sum / static_cast<double>(trained.size());
  for (double value : trained) squares += (value - mean) * (value - mean);
  CHECK(mean == Approx(1).epsilon(0.02));
  // Of 200 terms that are 4/3 with 3/4 and else 0: a variance of 1/3 each.
  CHECK(std::sqrt(squares / static_cast<double>(trained.size())) == Approx(std::sqrt(1.0 / 600)).epsilon(0.3));
  rnn.inference();
  for (double value : rnn(x).to_vector<double>()) CHECK(value == Approx(1));
}

TEST_CASE("recurrent layers refuse what makes no sense") {
  CHECK_THROWS_WITH(nn::RNN(0, 4), "RNN: input_size must be at least 1, not 0");
  CHECK_THROWS_WITH(nn::LSTM(8, 16, 0), "LSTM: num_layers must be at least 1, not 0");
  CHECK_THROWS_WITH(nn::GRU(8, -2), "GRU: hidden_size must be at least 1, not -2");
  CHECK_THROWS_WITH(nn::GRU(1, 2, {.proj_size = 1}), "GRU: proj_size is for an LSTM only");
  CHECK_THROWS_WITH(nn::LSTM(1, 2, {.proj_size = 2}), Contains("proj_size must be from 0 to hidden_size - 1"));
  CHECK_THROWS_WITH(nn::LSTM(1, 1, {.dropout = std::nan("")}), Contains("LSTM: dropout must be from 0 to 1"));
  CHECK_THROWS_WITH(nn::LSTM(1, std::int64_t{1} << 60), Contains("is too large"));
  nn::GRU gru(3, 4);
  CHECK_THROWS_WITH(gru(zeros({5, 2, 2})), "GRU: x must be [T, N, 3] or [T, 3], got f32[5, 2, 2]");
  CHECK_THROWS_WITH(gru(zeros({5, 2, 3}), zeros({1, 3, 4})), Contains("GRU: h0 must have shape [1, 2, 4]"));
  CHECK_THROWS_WITH(gru(zeros({5, 3}), {}, zeros({5}, Dtype::i64)), Contains("GRU: lengths need a batch"));
  CHECK_THROWS_WITH(gru(Tensor{}), "GRU: x is undefined");
}
