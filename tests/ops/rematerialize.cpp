// Values computed twice to save memory: where the user says so, and where a plan would not fit otherwise.
#include "lib/exec/lower/rematerialize.h"

#include <catch2/catch.hpp>

#include "clnet/clnet.h"
#include "lib/exec/statistics.h"
#include "tests/ops/check.h"
#include "tests/support/memory_limit.h"

using namespace clnet;
using namespace clnet::testing;

namespace {

/// Some layers of 3x3 convolution, normalisation and activation; `around` is called with each layer.
struct Tower {
  std::vector<Tensor> weights;
  explicit Tower(int layers) {
    for (int k = 0; k < layers; ++k) weights.push_back((make_tensor({4, 4, 3, 3}, static_cast<std::uint64_t>(k)) * 0.2).detach());
  }
  template <class Around>
  Tensor operator()(Tensor x, const Around& around) const {
    for (const auto& weight : weights)
      x = around([&] { return relu(batch_norm_training(conv2d(x, weight, {}, {.padding = 1}), {}, {}).y); });
    return mean(square(x));
  }
};

Tensor plainly(const std::function<Tensor()>& layer) { return layer(); }

std::vector<Array> arrays_of(const std::vector<Tensor>& tensors) {
  std::vector<Array> result;
  for (const auto& tensor : tensors) result.push_back(to_array(tensor));
  return result;
}

}  // namespace

TEST_CASE("gradients through checkpoints are the same, with more operations") {
  const Tower tower(3);
  const Tensor x = make_tensor({2, 4, 6, 6}, 9);
  const auto run = [&](const auto& around) {
    const auto before = exec::statistics().operations;
    const auto loss = tower(x, around);
    auto results = gradients(loss, tower.weights);
    results.push_back(loss);
    eval(results);
    return std::pair(arrays_of(results), exec::statistics().operations - before);
  };
  const auto [plain, operations] = run(plainly);
  const auto [again, more] = run([](const std::function<Tensor()>& layer) { return checkpoint(layer); });
  const auto [nested, most] = run([](const std::function<Tensor()>& layer) {
    return checkpoint([&] { return tanh(checkpoint(layer) * 1.0) * 0.0 + layer(); });
  });
  CHECK(more >= operations + 9);
  CHECK(most > operations);
  for (std::size_t k = 0; k < plain.size(); ++k) {
    compare("gradient " + std::to_string(k), again[k], plain[k], 1e-6);
    compare("nested " + std::to_string(k), nested[k], plain[k], 1e-5);
  }
}

TEST_CASE("a checkpoint draws the same random numbers again") {
  manual_seed(3);
  const Tensor x = make_tensor({200}, 1);
  const Tensor y = checkpoint([&] { return square(dropout(x, 0.5)); });
  const auto g = gradients(sum(y), {x});
  // d/dx (x m)^2 = 2 x m^2: zero exactly where y is.
  const auto kept = y.to_vector<float>(), gradient = g[0].to_vector<float>();
  for (std::size_t k = 0; k < kept.size(); ++k) CHECK((kept[k] == 0) == (gradient[k] == 0));
}

TEST_CASE("what is cheap and read late is computed twice") {
  const Tower tower(8);
  const auto loss = tower(make_tensor({2, 4, 6, 6}, 9), plainly);
  auto wanted = gradients(loss, tower.weights);
  const exec::Subgraph graph(exec::collect(wanted));
  const auto again = exec::rematerialized(graph);
  REQUIRE(again);
  CHECK(again->nodes().size() >= graph.nodes().size() + 8);
  CHECK(again->leaves().size() == graph.leaves().size());
  const auto plain = arrays_of(wanted);
  eval(again->wanted());
  for (std::size_t k = 0; k < plain.size(); ++k)
    compare("gradient " + std::to_string(k), to_array(again->wanted()[k]), plain[k], 1e-6);
}

TEST_CASE("a step that does not fit is made to fit, or the error says what it takes") {
  const Tower tower(12);
  const auto step = [&](std::int64_t batch) {
    const Tensor x = make_tensor({batch, 4, 40, 40}, 9);
    auto results = gradients(tower(x, plainly), tower.weights);
    eval(results);
    return arrays_of(results);
  };
  auto device = Device::current();
  device.finish();
  device.trim();
  const auto before = device.memory().in_use;
  const auto plain = step(8);
  device.finish();
  const auto taken = device.memory().in_use - before;  // nearly all of it intermediates of 200 KiB each
  {
    // Another batch size, so that the plan is another one; its intermediates take as much for each image.
    const test::MemoryLimit limit(before + taken * 9 / 8 * 9 / 10);
    CHECK(step(9).size() == plain.size());
    CHECK(device.memory().in_use <= before + taken * 9 / 8 * 9 / 10);
  }
  {
    const test::MemoryLimit limit(before + taken / 4);
    CHECK_THROWS_WITH(step(10), Catch::Contains("intermediates") && Catch::Contains("limit"));
  }
  const auto after = step(8);
  for (std::size_t k = 0; k < plain.size(); ++k) compare("gradient " + std::to_string(k), after[k], plain[k], 1e-6);
}
