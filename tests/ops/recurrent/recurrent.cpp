#include "tests/cases/recurrent/recurrent.h"

#include <catch2/catch.hpp>
#include <limits>

#include "lib/exec/choose/solver.h"
#include "lib/exec/statistics.h"
#include "tests/ops/check.h"

using namespace clnet;
using namespace clnet::testing;
using Catch::Matchers::Contains;

namespace {

RecurrentWeights weights_of(std::int64_t gates, std::int64_t input, std::int64_t hidden) {
  return {make_tensor({gates * hidden, input}, 1),
          make_tensor({gates * hidden, hidden}, 2),
          make_tensor({gates * hidden}, 3),
          make_tensor({gates * hidden}, 4),
          {}};
}

}  // namespace

TEST_CASE("rnn_layer") {
  check(recurrent_cases("tanh"), {"recurrent"});
  check(recurrent_cases("relu"), {"recurrent"});
}
TEST_CASE("lstm_layer") { check(recurrent_cases("lstm"), {"recurrent"}); }
TEST_CASE("gru_layer") { check(recurrent_cases("gru"), {"recurrent"}); }
TEST_CASE("recurrent layers of a launch per step") {
  const exec::ForceSolver force("recurrent", "gpu{whole=0}");
  for (const auto* cell : {"tanh", "relu", "lstm", "gru"}) {
    auto cases = recurrent_cases(cell);
    // Those with a projection have no solver.
    cases.resize(7);
    check(cases);
  }
}
TEST_CASE("rnn_cell, lstm_cell and gru_cell") { check(recurrent_cell_cases()); }

TEST_CASE("a recurrent layer is the loop of its cell, with first and second derivatives") {
  const auto w = weights_of(4, 3, 5);
  const Tensor x = make_tensor({6, 2, 3}, 5), h0 = make_tensor({2, 5}, 6), c0 = make_tensor({2, 5}, 7);
  const std::vector<Tensor> inputs{x, h0, c0, w.weight_ih, w.weight_hh, w.bias_ih, w.bias_hh};
  const auto second = [&](const Tensor& output, const LstmState& last) {
    const Tensor loss = sum(output * make_tensor(output.shape(), 8)) + sum(last.h * make_tensor({2, 5}, 9)) +
                        sum(last.c * make_tensor({2, 5}, 10));
    auto all = gradients(loss, inputs);
    Tensor mixed = Tensor::scalar(0);
    for (std::size_t i = 0; i < all.size(); ++i) mixed = mixed + sum(all[i] * make_tensor(all[i].shape(), 20 + i));
    const auto more = gradients(mixed, inputs);
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  const auto layer = lstm_layer(x, h0, c0, w);
  LstmState state{h0, c0};
  std::vector<Tensor> outputs;
  for (std::int64_t t = 0; t < 6; ++t) {
    state = lstm_cell(reshape(slice(x, 0, t, t + 1), {2, 3}), state, w);
    outputs.push_back(state.h);
  }
  const auto got = second(layer.output, {layer.h, layer.c}), want = second(stack(outputs), state);
  for (std::size_t i = 0; i < got.size(); ++i)
    compare("derivative " + std::to_string(i), to_array(got[i]), to_array(want[i]), 2e-5);
}

TEST_CASE("a graph with a recurrent layer does not grow with its steps") {
  const auto w = weights_of(4, 3, 5);
  const auto operations = [&](std::int64_t steps) {
    const auto result = lstm_layer(make_tensor({steps, 2, 3}, 5), {}, {}, w);
    const auto wanted = gradients(sum(result.output) + sum(result.c), {w.weight_ih, w.weight_hh, w.bias_ih});
    const auto before = exec::statistics().operations;
    eval(wanted);
    return exec::statistics().operations - before;
  };
  const auto few = operations(5);
  CHECK(few > 0);
  CHECK(few == operations(60));
}

TEST_CASE("recurrent layers refuse what does not fit") {
  const auto w = weights_of(1, 3, 5);
  const Tensor x = zeros({4, 2, 3});
  CHECK_THROWS_WITH(rnn_layer(zeros({4, 3}), {}, w), Contains("rnn_layer: x must be {T, N, I}, got f32[4, 3]"));
  CHECK_THROWS_WITH(rnn_layer(zeros({0, 2, 3}), {}, w), Contains("rnn_layer: x f32[0, 2, 3] has no step"));
  CHECK_THROWS_AS(rnn_layer(zeros({4, 2, 4}), {}, w), ShapeError);
  CHECK_THROWS_WITH(rnn_layer(x, zeros({2, 4}), w), Contains("rnn_layer: h0 must have shape [2, 5]"));
  CHECK_THROWS_AS(rnn_layer(zeros({4, 2, 3}, Dtype::i32), {}, w), DtypeError);
  CHECK_THROWS_WITH(rnn_layer(cast(x, Dtype::f16), {}, w), Contains("rnn_layer's weight_ih"));
  CHECK_THROWS_WITH(gru_layer(x, {}, w), Contains("gru_layer: weight_ih must be {3 H, I}"));
  CHECK_THROWS_WITH(lstm_layer(x, {}, {}, w), Contains("lstm_layer: weight_ih must be {4 H, I}"));
  auto wrong = w;
  wrong.weight_hh = zeros({5, 4});
  CHECK_THROWS_WITH(rnn_layer(x, {}, wrong), Contains("rnn_layer: weight_hh must have shape [5, 5]"));
  wrong = w;
  wrong.bias_hh = zeros({4});
  CHECK_THROWS_WITH(rnn_layer(x, {}, wrong), Contains("rnn_layer: bias_hh must have shape [5]"));
  wrong = w;
  wrong.weight_hr = zeros({2, 5});
  CHECK_THROWS_WITH(rnn_layer(x, {}, wrong), Contains("weight_hr is for an LSTM only"));
  CHECK_THROWS_WITH(rnn_layer(x, {}, w, Nonlinearity::tanh, {.lengths = zeros({3}, Dtype::i64)}),
                    Contains("rnn_layer: lengths must have shape [2]"));
  CHECK_THROWS_AS(rnn_layer(x, {}, w, Nonlinearity::tanh, {.lengths = zeros({2})}), DtypeError);
  CHECK_THROWS_WITH(rnn_cell(zeros({4, 2, 3}), {}, w), Contains("rnn_cell: x must be {N, I}"));
}

TEST_CASE("a recurrent layer of no sequences gives none") {
  const auto w = weights_of(4, 3, 5);
  const auto result = lstm_layer(zeros({4, 0, 3}), {}, {}, w);
  CHECK(result.output.shape() == Shape{4, 0, 5});
  CHECK(result.output.to_vector<float>().empty());
  const auto g = gradients(sum(result.output), {w.weight_hh});
  for (float value : g[0].to_vector<float>()) CHECK(value == 0);
}

TEST_CASE("padding of any content reaches no result and gets no gradient") {
  const auto w = weights_of(3, 2, 4);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor x = Tensor::from({1.f, 2.f, 3.f, 4.f, .5f, .25f, nan, nan}, {4, 1, 2});
  for (bool reverse : {false, true}) {
    const auto result = gru_layer(x, {}, w, {reverse, Tensor::from({std::int64_t{3}})});
    const auto shorter = gru_layer(slice(x, 0, 0, 3), {}, w, {.reverse = reverse});
    compare("h", to_array(result.h), to_array(shorter.h), 1e-6);
    compare("output", to_array(slice(result.output, 0, 0, 3)), to_array(shorter.output), 1e-6);
    for (float value : slice(result.output, 0, 3).to_vector<float>()) CHECK(value == 0);
    const auto got = gradients(sum(result.output), {x, w.weight_hh}), want = gradients(sum(shorter.output), {x, w.weight_hh});
    compare("gradient of the weight", to_array(got[1]), to_array(want[1]), 1e-5);
    const auto dx = got[0].to_vector<float>();
    CHECK(dx[6] == 0);
    CHECK(dx[7] == 0);
  }
}
