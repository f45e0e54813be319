// Values that nobody asked for, and that are there when somebody does.
#include "lib/exec/plan/speculative_outputs.h"

#include <catch2/catch.hpp>
#include <string_view>

#include "clnet/clnet.h"
#include "lib/exec/plan/cache.h"
#include "lib/exec/statistics.h"
#include "tests/ops/check.h"
#include "tests/support/captured.h"
#include "tests/support/memory_limit.h"

using namespace clnet;
using namespace clnet::testing;

namespace {

/// Layers of convolution and activation.
struct Stack {
  std::vector<Tensor> weights;
  explicit Stack(int layers) {
    for (int k = 0; k < layers; ++k) weights.push_back((make_tensor({4, 4, 3, 3}, static_cast<std::uint64_t>(k)) * 0.3).detach());
  }
  Tensor operator()(Tensor x) const {
    for (const auto& weight : weights) x = sigmoid(conv2d(x, weight, {}, {.padding = 1}));
    return mean(square(x));
  }
};

template <class Function>
exec::Statistics spent(const Function& function) {
  const auto before = exec::statistics();
  function();
  const auto after = exec::statistics();
  exec::Statistics result;
  result.operations = after.operations - before.operations;
  // A product may be a kernel or CLBlast's.
  result.kernels = after.kernels + after.host_calls - before.kernels - before.host_calls;
  return result;
}

exec::SpeculativeOutputs& speculative_outputs() {
  return exec::PlanCache::of(*context_of(Device::current())).speculative_outputs();
}

}  // namespace

TEST_CASE("a loss that is read before its gradients is computed again each time") {
  const Stack stack(6);
  const auto step = [&](std::uint64_t seed, bool reads) {
    const Tensor loss = stack(make_tensor({2, 4, 9, 9}, seed));
    if (reads) (void)loss.item<float>();
    const auto all = gradients(loss, stack.weights);
    eval(all);
    return to_array(all.front());
  };
  const auto plain = spent([&] { step(1, false); });
  exec::Statistics first, second;
  const auto log = test::written_on_stderr([&] {
    first = spent([&] { step(2, true); });
    second = spent([&] { step(3, true); });
  });
  CHECK(first.operations > plain.operations);
  CHECK(second.operations == first.operations);
  // Once in a process: another test may have been first.
  const std::string_view said = "what was computed before is computed again";
  CHECK(log.find(said) == log.rfind(said));
  compare("gradient", step(4, true), step(4, false), 1e-6);
}

TEST_CASE("what is computed again is named, unless memory was short") {
  const Tensor x = make_tensor({8, 16}, 1), w = make_tensor({16, 16}, 2);
  const auto again = [](const Tensor& tensor) { return exec::computed_again(exec::collect(std::span(&tensor, 1))); };
  Tensor y = relu(matmul(x, w));
  CHECK(again(y).empty());
  const Tensor sums = sum(softmax(y, 1), {1}), other = y * 2.0;
  y = {};
  sums.eval();
  SECTION("a graph that was built before reads it") { CHECK(again(other).empty()); }
  SECTION("a value that was there went with memory") {
    Device::current().trim();
    CHECK(again(other).empty());
    other.eval();
  }
  const Tensor squares = square(sums), unheld = mean(relu(matmul(x, w)) * 3.0);
  unheld.eval();
  CHECK(again(gradients(unheld, {w})[0]).find("matmul of") == 0);
}

TEST_CASE("a held value that was fused away is computed again, and the line tells so") {
  const Tensor x = make_tensor({8, 16}, 1), w = make_tensor({16, 16}, 2);
  const auto log = test::written_on_stderr([&] {
    const Tensor product = matmul(x, w), y = relu(product) * 2.0;
    y.eval();
    const bool kept = exec::value_of(product) != nullptr;
    CHECK(exec::computed_again(exec::collect(std::span(&product, 1))).empty() == kept);
    product.eval();
    CHECK(exec::computed_again(exec::collect(std::span(&product, 1))).empty());
  });
  // Once in a process: another test may have been first.
  if (!log.empty()) CHECK(log.find("as its value was not kept: nothing held it, or it was fused into another") != log.npos);
}

TEST_CASE("gradients that are read one by one are computed once") {
  const Stack stack(6);
  const Tensor x = make_tensor({2, 4, 9, 9}, 9);
  std::vector<Array> expected;
  const auto at_once = spent([&] {
    auto all = gradients(stack(x), stack.weights);
    eval(all);
    for (const auto& gradient : all) expected.push_back(to_array(gradient));
  });
  for (const bool last_first : {false, true}) {
    std::vector<Array> found(expected.size());
    const auto one_by_one = spent([&] {
      const auto all = gradients(stack(x), stack.weights);
      for (std::size_t k = 0; k < all.size(); ++k) {
        const auto at = last_first ? all.size() - 1 - k : k;
        found[at] = to_array(all[at]);
      }
    });
    // What was fused may be computed again, a few operations for each gradient.
    CHECK(one_by_one.operations <= at_once.operations * 3 / 2);
    CHECK(one_by_one.kernels <= at_once.kernels + 2 * expected.size());
    for (std::size_t k = 0; k < expected.size(); ++k) compare("gradient " + std::to_string(k), found[k], expected[k], 1e-6);
  }
}

TEST_CASE("a loss that is only read keeps nothing") {
  const Stack stack(3);
  const auto before = speculative_outputs().count();
  const Tensor loss = stack(make_tensor({2, 4, 9, 9}, 1));
  (void)loss.item<float>();
  CHECK(speculative_outputs().count() == before);
}

TEST_CASE("who collects the losses of all steps does not hold all their activations") {
  const Stack stack(6);
  auto device = Device::current();
  std::vector<Tensor> losses;
  std::size_t after_few = 0;
  constexpr std::size_t activation = 2 * 4 * 32 * 32 * sizeof(float);
  for (std::uint64_t k = 0; k < 24; ++k) {
    const Tensor loss = stack(make_tensor({2, 4, 32, 32}, k));
    (void)loss.item<float>();
    eval(gradients(loss, stack.weights));
    losses.push_back(loss);
    device.finish();
    if (k == 7) after_few = device.memory().in_use;
  }
  // Each step's input stays, as the graph does.
  CHECK(device.memory().in_use <= after_few + 16 * 2 * activation);
}

TEST_CASE("what a handle refers to is computed once where it is written anyway, and never costs a kernel") {
  const Tensor x = make_tensor({8, 16}, 1), w = make_tensor({16, 16}, 2);
  const auto run = [&](bool holds) {
    const auto statistics = spent([&] {
      const Tensor product = matmul(x, w);
      Tensor middle = softmax(product, 1), other = middle;
      const Tensor result = matmul(middle, w);
      if (!holds) middle = other = {};
      result.eval();
      if (holds) {
        const auto reading = spent([&] { compare("middle", to_array(middle), to_array(softmax(matmul(x, w), 1)), 1e-6); });
        CHECK(reading.operations == 2);
      }
    });
    return statistics.kernels;
  };
  CHECK(run(true) == run(false) + 2);
}

TEST_CASE("a value that was finished within a product's kernel is another one than the product") {
  const Tensor x = make_tensor({2, 4, 9, 9}, 1), w = make_tensor({4, 4, 3, 3}, 2);
  const Tensor product = conv2d(x, w, {}, {.padding = 1});
  const Tensor result = relu(product);
  const auto expected = to_array(conv2d(x, w, {}, {.padding = 1}));
  result.eval();
  compare("product", to_array(product), expected, 1e-6);
}

TEST_CASE("a view keeps the memory that it lies in, unless that is much larger") {
  const Tensor x = make_tensor({8, 64}, 1);
  const Tensor rows = softmax(x, 1), all = reshape(rows, {512}), few = slice(rows, 0, 0, 1);
  const Tensor result = sum(square(rows + 1.0), {1});
  const auto expected = to_array(softmax(x, 1));
  (void)matmul(rows, transpose(rows, 0, 1)).eval();
  CHECK(spent([&] { compare("all", to_array(reshape(all, {8, 64})), expected, 1e-6); }).kernels == 0);
  compare("few", to_array(few), to_array(slice(softmax(x, 1), 0, 0, 1)), 1e-6);
  (void)result;
}

TEST_CASE("parts of a concatenation that are held keep its memory together, and a small one alone does not") {
  const Tensor x = make_tensor({16, 16}, 1), w = make_tensor({16, 16}, 2);
  const auto states_of = [&] {
    std::vector<Tensor> states{softmax(matmul(x, w), 1)};
    for (int k = 1; k < 8; ++k) states.push_back(softmax(matmul(states.back(), w), 1));
    return states;
  };
  std::vector<Array> expected;
  for (const auto& state : states_of()) expected.push_back(to_array(state.detach()));
  const auto alone = spent([&] { stack(states_of(), 0).eval(); });
  for (const bool reads_whole : {true, false}) {
    const auto states = states_of();
    const Tensor all = stack(states, 0), total = sum(all);
    const auto with_states = spent([&] { (reads_whole ? all : total).eval(); });
    if (reads_whole) CHECK(with_states.kernels == alone.kernels);
    const auto reading = spent([&] {
      for (std::size_t k = 0; k < states.size(); ++k) compare("state", to_array(states[k]), expected[k], 1e-6);
    });
    CHECK(reading.operations == 0);
  }
  const Tensor one = [&] {
    const auto states = states_of();
    sum(stack(states, 0)).eval();
    return states[2];
  }();
  compare("one", to_array(one), expected[2], 1e-6);
  auto states = states_of();
  const Tensor second = states[1];
  const Tensor total = sum(stack(states, 0));
  states.clear();
  total.eval();
  CHECK(spent([&] { compare("second", to_array(second), expected[1], 1e-6); }).operations > 0);
}

TEST_CASE("speculative outputs go when memory is short, and are computed again") {
  const Stack stack(6);
  const Tensor x = make_tensor({8, 4, 64, 64}, 9);
  x.eval();
  auto device = Device::current();
  device.trim();
  const auto all = gradients(stack(x), stack.weights);
  const auto expected = to_array(gradients(stack(x), stack.weights).back());
  const auto count = speculative_outputs().count();
  all.front().eval();
  CHECK(speculative_outputs().count() > count);
  {
    // A result that has room only where they are.
    device.finish();
    const auto in_use = device.memory().in_use;
    const test::MemoryLimit limit(in_use + (1 << 20));
    CHECK_NOTHROW(zeros({1 << 20}).eval());
  }
  compare("gradient", to_array(all.back()), expected, 1e-6);
  device.trim();
  CHECK(speculative_outputs().count() == 0);
  compare("gradient", to_array(all[2]), to_array(gradients(stack(x), stack.weights)[2]), 1e-6);
}
