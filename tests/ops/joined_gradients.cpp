// Gradients that arrive at one value from many steps are joined before they are added.
#include <catch2/catch.hpp>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "clnet/clnet.h"
#include "lib/exec/collect/work.h"
#include "lib/exec/statistics.h"
#include "tests/ops/check.h"
#include "tests/ops/launches.h"

using namespace clnet;
using namespace clnet::testing;

namespace {

struct StepWeights {
  Tensor w, b;
};

/// A loss of steps that read weights: h = tanh([x_t, h] W + b).
Tensor recurrence(const std::vector<Tensor>& x, const std::function<StepWeights(std::size_t)>& weights) {
  Tensor h = zeros({x[0].size(0), weights(0).b.size(0)}), loss = Tensor::scalar(0);
  for (std::size_t t = 0; t < x.size(); ++t) {
    const auto [w, b] = weights(t);
    h = tanh(matmul(concat({x[t], h}, 1), w) + b);
    loss = loss + sum(square(h));
  }
  return loss;
}

}  // namespace

TEST_CASE("gradients of weights that every step reads are the sums of each step's") {
  constexpr std::int64_t batch = 2, in = 16, out = 32;
  const Tensor w = make_tensor({in + out, out}, 1, -0.2, 0.2), b = make_tensor({out}, 2, -0.1, 0.1);
  std::vector<Tensor> x;
  for (std::uint64_t t = 0; t < 9; ++t) x.push_back(make_tensor({batch, in}, 10 + t));
  // A weight of its own for each step: one gradient arrives at each.
  std::vector<Tensor> own;
  for (std::size_t t = 0; t < x.size(); ++t)
    for (const auto* weight : {&w, &b}) own.push_back(to_tensor(*std::make_unique<Array>(to_array(*weight)), Dtype::f32));
  const auto single = gradients(recurrence(x, [&](std::size_t t) { return StepWeights{own[2 * t], own[2 * t + 1]}; }), own);
  for (bool bias_first : {false, true}) {
    const auto inputs = bias_first ? std::vector{b, w} : std::vector{w, b};
    const auto joined = gradients(recurrence(x, [&](std::size_t) { return StepWeights{w, b}; }), inputs);
    for (std::size_t i = 0; i < 2; ++i) {
      Array want(inputs[i].shape(), std::vector<double>(static_cast<std::size_t>(inputs[i].numel()), 0.0));
      for (std::size_t t = 0; t < x.size(); ++t) {
        const auto part = to_array(single[2 * t + (bias_first ? 1 - i : i)]);
        for (std::int64_t k = 0; k < want.numel(); ++k) want[k] += part[k];
      }
      compare(bias_first ? "bias first" : "weight first", to_array(joined[i]), want, 1e-5);
    }
  }
}

TEST_CASE("a recurrence's step adds no product for its weight's gradient") {
  // Each step more takes the kernels of its forward and backward pass only: [x, h], the product and what follows it, and behind,
  // what the gradient makes of those.
  const auto kernels = [](std::size_t steps) {
    const Tensor w = make_tensor({48, 32}, 1, -0.2, 0.2), b = make_tensor({32}, 2);
    std::vector<Tensor> x;
    for (std::uint64_t t = 0; t < steps; ++t) x.push_back(make_tensor({2, 16}, 10 + t));
    eval(x);
    return kernels_of(gradients(recurrence(x, [&](std::size_t) { return StepWeights{w, b}; }), {w, b}));
  };
  const auto per_step = [&](std::uint64_t more, std::uint64_t fewer) { return static_cast<double>(more - fewer) / 8; };
  CHECK(per_step(kernels(24), kernels(16)) <= 6);
}

TEST_CASE("gradients of slices become the whole with zeros between, and what overlaps is added") {
  const Tensor x = make_tensor({3, 12}, 1);
  const auto g = [](std::uint64_t seed, std::int64_t columns) { return make_tensor({3, columns}, seed); };
  struct Part {
    std::int64_t start, stop;
  };
  const std::vector<std::vector<Part>> lists{{{0, 4}, {4, 12}}, {{2, 5}, {7, 9}},          {{8, 12}, {0, 3}},
                                             {{0, 12}},         {{1, 6}, {4, 9}, {0, 2}},  {{3, 3}, {5, 8}},
                                             {{0, 6}, {0, 6}},  {{0, 1}, {1, 2}, {11, 12}}};
  for (const auto& parts : lists) {
    Tensor loss = Tensor::scalar(0);
    Array want(x.shape(), std::vector<double>(36, 0.0));
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const auto [start, stop] = parts[i];
      const Tensor weight = g(20 + i, stop - start);
      loss = loss + sum(slice(x, 1, start, stop) * weight);
      const auto values = to_array(weight);
      for (std::int64_t row = 0; row < 3; ++row)
        for (std::int64_t column = start; column < stop; ++column)
          want[row * 12 + column] += values[row * (stop - start) + column - start];
    }
    compare("slices", to_array(gradients(loss, {x})[0]), want, 1e-6);
    // and beside a gradient of the whole
    const Tensor all = g(40, 12);
    const auto more = to_array(all);
    for (std::int64_t i = 0; i < 36; ++i) want[i] += more[i];
    compare("slices and the whole", to_array(gradients(loss + sum(x * all), {x})[0]), want, 1e-6);
  }
}

TEST_CASE("joined gradients have gradients") {
  const Tensor w = make_tensor({8, 4}, 1, -0.5, 0.5), x = make_tensor({2, 4}, 2);
  const auto loss = [&](const Tensor& weight) {
    Tensor h = x, total = Tensor::scalar(0);
    for (int t = 0; t < 3; ++t) {
      h = tanh(matmul(concat({x, h}, 1), weight));
      total = total + sum(h);
    }
    return total;
  };
  const auto first = [&](const Tensor& weight) { return gradients(loss(weight), {weight})[0]; };
  const auto second = to_array(gradients(sum(square(first(w))), {w})[0]);
  // against differences of the first gradients
  const auto values = to_array(w);
  for (std::int64_t at : {0, 9, 31}) {
    const auto shifted = [&](double by) {
      auto moved = values;
      moved[at] += by;
      const auto g = to_array(first(to_tensor(moved, Dtype::f32)));
      double total = 0;
      for (std::int64_t i = 0; i < g.numel(); ++i) total += g[i] * g[i];
      return total;
    };
    CHECK(second[at] == Approx((shifted(1e-2) - shifted(-1e-2)) / 2e-2).epsilon(5e-3).margin(5e-3));
  }
}

TEST_CASE("gradients of so many steps that joined they would be no tensor become several products") {
  const Tensor w = zeros({8192, 8192}, Dtype::f16), x = zeros({4096, 8192}, Dtype::f16);
  Tensor loss = Tensor::scalar(0, Dtype::f16);
  for (int t = 0; t < 64; ++t) loss = loss + sum(matmul(x, w));
  CHECK(gradients(loss, {w})[0].shape() == w.shape());
}

TEST_CASE("what came along unasked does not decide how gradients are joined") {
  // Gradients that were there before: views of products, and slices with zeros around them. Whoever holds them may have got their
  // values with those of others.
  const auto products = [](std::uint64_t t) {
    return reshape(matmul(make_tensor({8, 2}, 2 * t), make_tensor({2, 3}, 2 * t + 1)), {4, 6});
  };
  const auto slices = [](std::uint64_t t) {
    const auto before = static_cast<std::int64_t>(t % 4);
    return pad(softmax(make_tensor({1, 6}, t), 1), {before, 0}, {3 - before, 0});
  };
  const auto added = [](const std::function<Tensor(std::uint64_t)>& gradient, bool is_there) {
    const Tensor x = make_tensor({4, 6}, 100);
    Tensor loss = Tensor::scalar(0);
    std::vector<Tensor> arriving;
    for (std::uint64_t t = 0; t < 8; ++t) {
      const Tensor g = arriving.emplace_back(gradient(t));
      loss =
          loss + sum(custom_gradient(
                     x, [](const Tensor& v) { return v * 2.0; }, [g](const Tensor&, const Tensor&, const Tensor&) { return g; }));
    }
    if (is_there) {
      std::vector<Tensor> others;
      for (const auto& g : arriving) others.push_back(cumsum(g, 0));
      eval(others);
      for (const auto& g : arriving) REQUIRE(exec::cell_of(g).is_speculative());
    }
    const Tensor total = gradients(loss, {x})[0];
    Device::current().trim();
    const auto before = exec::statistics().operations;
    auto values = total.to_vector<float>();
    return std::pair(std::move(values), exec::statistics().operations - before);
  };
  for (const auto& gradient : {std::function<Tensor(std::uint64_t)>(products), std::function<Tensor(std::uint64_t)>(slices)}) {
    const auto plain = added(gradient, false);
    CHECK(added(gradient, true) == plain);
  }
}
