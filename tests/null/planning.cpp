// Making a plan takes work in proportion to the graph, counted in steps: time would depend on the machine.
#include <catch2/catch.hpp>
#include <chrono>
#include <functional>

#include "clnet/clnet.h"
#include "lib/base/planning_steps.h"
#include "lib/exec/lower/rematerialize.h"
#include "lib/exec/statistics.h"

using namespace clnet;

namespace {

struct Planning {
  std::uint64_t steps = 0, operations = 0;
  double seconds = 0;
};

Planning planning_of(const std::function<std::vector<Tensor>()>& graph) {
  const auto wanted = graph();
  const auto before = exec::statistics();
  const auto steps = planning_steps();
  const auto start = std::chrono::steady_clock::now();
  eval(wanted);
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  const auto after = exec::statistics();
  REQUIRE(after.plans_made == before.plans_made + 1);
  return {planning_steps() - steps, after.operations - before.operations, time.count()};
}

Tensor leaf(const Shape& shape) { return rand(shape).detach(); }

/// Another operation every other time, and a value of all of them now and then.
std::vector<Tensor> chain(int length) {
  const Tensor other = leaf({64});
  Tensor x = leaf({64});
  for (int i = 0; i < length; ++i) x = i % 100 == 99 ? softmax(x, 0) : i % 2 ? x + other : tanh(x);
  return {x};
}

/// Values that many operations read, which are cheap enough to be computed again there.
std::vector<Tensor> shared(int length) {
  const Tensor x = leaf({64}), scale = leaf({1}) + 1.0, shift = x * 2.0;
  Tensor y = x;
  for (int i = 0; i < length / 3; ++i) y = relu(y * scale + shift);
  return {y};
}

/// h = tanh(x_t W + h U), step by step, with gradients.
std::vector<Tensor> recurrence(int steps) {
  const Tensor x = leaf({steps, 4, 8}), w = leaf({8, 8}), u = leaf({8, 8});
  Tensor h = leaf({4, 8});
  for (int t = 0; t < steps; ++t) h = tanh(matmul(reshape(slice(x, 0, t, t + 1), {4, 8}), w) + matmul(h, u));
  auto wanted = gradients(sum(h), {w, u});
  wanted.push_back(h);
  return wanted;
}

/// Two layers of LSTM cells written by hand, with gradients.
std::vector<Tensor> lstm(int steps) {
  constexpr std::int64_t n = 4, width = 8;
  const Tensor input = leaf({n, width});
  std::vector<Tensor> weights, h, c;
  for (int layer = 0; layer < 2; ++layer) {
    weights.push_back(leaf({width, 4 * width}));
    weights.push_back(leaf({width, 4 * width}));
    h.push_back(leaf({n, width}));
    c.push_back(leaf({n, width}));
  }
  for (int t = 0; t < steps; ++t) {
    Tensor x = input;
    for (std::size_t layer = 0; layer < 2; ++layer) {
      const Tensor gates = matmul(x, weights[2 * layer]) + matmul(h[layer], weights[2 * layer + 1]);
      const auto parts = split(gates, {width, width, width, width}, 1);
      c[layer] = sigmoid(parts[0]) * c[layer] + sigmoid(parts[1]) * tanh(parts[2]);
      h[layer] = sigmoid(parts[3]) * tanh(c[layer]);
      x = h[layer];
    }
  }
  auto wanted = gradients(sum(h[1]), weights);
  wanted.push_back(h[1]);
  return wanted;
}

/// Cheap values that are all read again in the opposite order.
std::vector<Tensor> there_and_back(int length) {
  std::vector<Tensor> values{leaf({1 << 14})};
  for (int i = 0; i < length; ++i) values.push_back(tanh(values.back()));
  Tensor back = softmax(values.back(), 0);
  for (int i = length; i-- > 0;) back = softmax(back * values[static_cast<std::size_t>(i)], 0);
  return {back};
}

void check_linear(const std::function<std::vector<Tensor>(int)>& graph, int length) {
  const auto once = planning_of([&] { return graph(length); }), twice = planning_of([&] { return graph(2 * length); });
  INFO(twice.operations << " operations: " << twice.steps << " steps, " << twice.seconds << " s");
  CHECK(once.steps > once.operations);
  CHECK(10 * twice.steps <= 22 * once.steps);
}

}  // namespace

TEST_CASE("planning is linear in the length of a chain") { check_linear(chain, 10000); }
TEST_CASE("planning is linear in the number of a value's readers") { check_linear(shared, 10000); }
TEST_CASE("planning is linear in the steps of a recurrence and its gradients") { check_linear(recurrence, 1000); }
TEST_CASE("planning is linear in the steps of a hand-written LSTM and its gradients") { check_linear(lstm, 250); }

TEST_CASE("planning to compute values twice is linear in their number") {
  const auto steps_of = [](int length) {
    const exec::Subgraph graph(exec::collect(there_and_back(length)));
    const auto before = planning_steps();
    const auto again = exec::rematerialized(graph);
    REQUIRE(again);
    CHECK(again->nodes().size() > graph.nodes().size() + static_cast<std::size_t>(length / 2));
    return planning_steps() - before;
  };
  // Longer chains than recursion could follow.
  const auto once = steps_of(50000), twice = steps_of(100000);
  CHECK(once > 50000);
  CHECK(10 * twice <= 22 * once);
}
