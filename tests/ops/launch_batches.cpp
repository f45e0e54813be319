// Launches that run as one command: the same results, to the bit, from run to run, whatever changes between runs.
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "clnet/clnet.h"
#include "lib/cl/context.h"
#include "lib/cl/quirks.h"
#include "lib/exec/batch/batch_commands.h"
#include "tests/ops/launches.h"
#include "tests/support/skip.h"
#include "tests/support/temporary.h"

using namespace clnet;
using exec::LaunchBatchMode;
using exec::WithLaunchBatches;
using testing::launches_of;

namespace {

using Floats = std::vector<float>;

bool has_batches() { return Device::current().info().prefers_vector_kernels; }

/// Two layers by hand over some steps, with all gradients: a loss's value and theirs.
std::vector<Tensor> recurrence(const Tensor& x, const std::vector<Tensor>& weights) {
  const auto width = weights[0].size(1);
  std::vector<Tensor> h(2, zeros({x.size(1), width}));
  Tensor total = zeros({});
  for (std::int64_t t = 0; t < x.size(0); ++t) {
    Tensor y = x[t];
    for (std::size_t layer = 0; layer < 2; ++layer)
      y = h[layer] = tanh(matmul(concat({y, h[layer]}, 1), weights[2 * layer]) + weights[2 * layer + 1]);
    total = total + mean(square(y));
  }
  auto result = gradients(total, weights);
  result.push_back(total);
  return result;
}

std::vector<Tensor> weights_for(std::int64_t width) {
  std::vector<Tensor> weights;
  for (int layer = 0; layer < 2; ++layer) {
    weights.push_back((rand({2 * width, width}) - 0.5).detach());
    weights.push_back((rand({width}) - 0.5).detach());
  }
  return weights;
}

Floats values(const std::vector<Tensor>& tensors) {
  eval(tensors);
  Floats all;
  for (const auto& tensor : tensors)
    for (float value : tensor.to_vector<float>()) all.push_back(value);
  return all;
}

}  // namespace

TEST_CASE("a recurrence and its gradients are the same as one command") {
  manual_seed(3);
  const auto weights = weights_for(24);
  const Tensor x = rand({12, 5, 24});
  x.eval();
  const auto run = [&] { return values(recurrence(x, weights)); };
  const auto once = launches_of([&] {
    const WithLaunchBatches off(LaunchBatchMode::off);
    run();
  });
  Floats apart;
  {
    const WithLaunchBatches off(LaunchBatchMode::off);
    apart = run();
  }
  const WithLaunchBatches always(LaunchBatchMode::force);
  for (int k = 0; k < 3; ++k) {
    Floats together;
    const auto launches = launches_of([&] { together = run(); });
    CHECK(together == apart);
    if (has_batches()) CHECK(launches * 4 < once);
  }
}

TEST_CASE("launch batches follow what changes from run to run") {
  manual_seed(4);
  const auto weights = weights_for(16);
  const auto compare = [&](const std::function<std::vector<Tensor>()>& what) {
    Floats apart, together;
    {
      const WithLaunchBatches off(LaunchBatchMode::off);
      apart = values(what());
    }
    {
      const WithLaunchBatches always(LaunchBatchMode::force);
      together = values(what());
    }
    CHECK(apart == together);
  };
  SECTION("leaves, also those that begin within a buffer") {
    const Tensor all = rand({5, 6, 4, 16});
    all.eval();
    for (std::int64_t k = 0; k < 5; ++k) {
      const Tensor part = all[k].detach();
      compare([&] { return recurrence(part, weights); });
    }
  }
  SECTION("scalars of the host, more than parameters have room for") {
    for (int round = 0; round < 3; ++round)
      compare([&] {
        Tensor x = weights[0];
        for (int k = 0; k < 40; ++k) {
          x = tanh(matmul(x, slice(weights[0], 0, 0, 16)) * full({}, 0.01 * k + round));
        }
        return std::vector<Tensor>{x};
      });
  }
  SECTION("buffers, more than parameters have room for, and scalars behind them") {
    for (std::int64_t count : {119, 120, 121, 122, 123}) {
      std::vector<Tensor> factors;
      for (std::int64_t k = 0; k < count; ++k) factors.push_back((rand({4, 4}) * 2 - 1).detach());
      compare([&] {
        Tensor y = factors[0];
        for (std::size_t k = 1; k < factors.size(); ++k) y = matmul(y, factors[k]);
        for (std::size_t k = 0; k < 4; ++k) y = tanh(matmul(y, factors[k]) * full({}, 20.0 + static_cast<double>(k)));
        for (std::size_t k = 0; k < 6; ++k) y = matmul(y, factors[k]);
        return std::vector<Tensor>{y};
      });
    }
  }
  SECTION("the arena, which another plan makes larger") {
    const Tensor x = rand({6, 4, 16});
    for (std::int64_t size : {64, 1024, 2048}) {
      compare([&] { return recurrence(x, weights); });
      const Tensor large = rand({size, size});
      matmul(tanh(matmul(large, large)), large).eval();
    }
  }
  SECTION("weights that are prepacked") {
    const Tensor weight = rand({64, 48}).detach();
    for (int round = 0; round < 4; ++round) {
      const Tensor x = rand({3, 64}).detach();
      compare([&] {
        Tensor y = x;
        for (int k = 0; k < 4; ++k) y = relu(matmul(tanh(matmul(y, weight)), transpose(weight, 0, 1)));
        return std::vector<Tensor>{y};
      });
    }
  }
  SECTION("a cache that grows in place") {
    Tensor here = zeros({2, 32, 16}).detach(), there = zeros({2, 32, 16}).detach();
    for (std::int64_t step = 0; step < 6; ++step) {
      const Tensor row = rand({2, 1, 16}).detach();
      const auto next = [&](Tensor& cache, LaunchBatchMode mode) {
        const WithLaunchBatches batches(mode);
        const Tensor grown = slice_update(cache, 1, step, tanh(exp(row)) * 0.5);
        cache = Tensor();
        const Tensor read = sum(matmul(softmax(grown, 2), transpose(grown, 1, 2)) * 2, {2});
        eval({grown, read});
        cache = grown.detach();
        return read.to_vector<float>();
      };
      CHECK(next(here, LaunchBatchMode::off) == next(there, LaunchBatchMode::force));
    }
    CHECK(here.to_vector<float>() == there.to_vector<float>());
  }
}

TEST_CASE("training is the same as launch batches") {
  const auto train = [](LaunchBatchMode mode) {
    const WithLaunchBatches batches(mode);
    manual_seed(5);
    nn::Sequential model(nn::Linear(12, 24), nn::ReLU(), nn::Dropout(0.2), nn::Linear(24, 24), nn::Tanh(), nn::Linear(24, 3));
    optim::Adam optimizer(model, {.learning_rate = 0.01});
    Floats losses;
    for (int step = 0; step < 12; ++step) {
      optimizer.set_learning_rate(0.01 / (1 + step));
      const Tensor x = rand({7, 12});
      const Tensor loss = mean(square(model(x)));
      optimizer.step(loss);
      losses.push_back(loss.item());
    }
    return losses;
  };
  CHECK(train(LaunchBatchMode::off) == train(LaunchBatchMode::force));
}

TEST_CASE("two threads use launch batches of one plan, and of others") {
  if (!Device::current().info().thread_safe) return test::skip("the device takes one thread");
  manual_seed(6);
  const auto weights = weights_for(16);
  const Tensor x = rand({8, 4, 16}).detach(), other = rand({5, 4, 16}).detach();
  const auto first = values(recurrence(x, weights)), second = values(recurrence(other, weights));
  std::vector<int> wrong(2, 0);
  const auto work = [&](std::size_t index) {
    const WithLaunchBatches always(LaunchBatchMode::force);
    for (int k = 0; k < 10; ++k) {
      wrong[index] += values(recurrence(x, weights)) != first;
      wrong[index] += values(recurrence(other, weights)) != second;
    }
  };
  {
    const std::jthread a([&] { work(0); }), b([&] { work(1); });
  }
  CHECK(wrong == std::vector<int>{0, 0});
}

TEST_CASE("programs of launch batches are compiled beside a plan that runs often") {
  const test::Variable processes("CLNET_BUILD_PROCESSES", "2");
  const auto& device = Device::current().info();
  if (!ocl::prebuilder_for(device)->builds_beside(ocl::Prebuilder::Haste::soon)) return test::skip("nothing is built beside");
  if (device.compute_units > 16) return test::skip("a device of few compute units");
  manual_seed(7);
  const auto weights = weights_for(16);
  const Tensor x = rand({30, 4, 16}).detach();
  const WithLaunchBatches on(LaunchBatchMode::automatic);
  const auto apart = values(recurrence(x, weights));
  const auto at_first = launches_of([&] { values(recurrence(x, weights)); });
  const auto begun = std::chrono::steady_clock::now();
  for (auto launches = at_first; launches == at_first;) {
    launches = launches_of([&] { CHECK(values(recurrence(x, weights)) == apart); });
    if (std::chrono::steady_clock::now() - begun > std::chrono::seconds(120)) {
      FAIL("the launches are still " << launches << " commands");
    }
  }
}
