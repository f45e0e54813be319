// Several threads on one device: what docs/developer/guarantees.md promises them.
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <future>
#include <thread>

#include "clnet/clnet.h"
#include "lib/exec/plan/cache.h"
#include "lib/exec/statistics.h"
#include "lib/graph/op.h"
#include "tests/support/copy_kernel.h"
#include "tests/support/temporary.h"

using namespace clnet;

namespace {

using Floats = std::vector<float>;

nn::Sequential model(unsigned seed) {
  manual_seed(seed);
  return nn::Sequential{
      nn::Conv2d{1, 4, 3, {.padding = 1}}, nn::BatchNorm2d{4}, relu, nn::MaxPool2d{2}, nn::Flatten{}, nn::Linear{4 * 3 * 3, 3}};
}

Tensor images(int step) {
  Floats values(5 * 36);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>((i * 7 + static_cast<std::size_t>(step)) % 19) / 9 - 1;
  return Tensor::from(values, {5, 1, 6, 6});
}

/// The losses of a short training.
Floats losses_of(nn::Sequential& net) {
  auto adam = optim::Adam{net, {.learning_rate = 1e-2}};
  Floats losses;
  for (int step = 0; step < 6; ++step)
    losses.push_back(adam.step(cross_entropy(net(images(step)), Tensor::from({0, 1, 2, 1, step % 3}))).item<float>());
  return losses;
}

/// Runs `count` threads of body(index) and passes on what one of them throws.
void in_threads(int count, const std::function<void(int)>& body) {
  std::vector<std::future<void>> running;
  for (int i = 0; i < count; ++i) running.push_back(std::async(std::launch::async, body, i));
  for (auto& thread : running) thread.get();
}

/// y = x, by an operation whose plan is made when somebody allows it.
struct Gate {
  std::promise<void> reached, open;
  std::shared_future<void> opened{open.get_future().share()};
  std::atomic<int> lowered{0};
  bool fails = false;
};
Gate* gate = nullptr;

class Slow : public Op {
 public:
  std::string_view name() const override { return "slow"; }
  Specs infer(const Specs& inputs) const override { return inputs; }
  void lower(exec::Recorder& recorder) const override {
    if (gate->lowered++ == 0) gate->reached.set_value();
    if (gate->opened.wait_for(std::chrono::seconds(60)) != std::future_status::ready)
      throw Error("the others were waiting for this plan");
    if (gate->fails) throw Error("this plan cannot be made");
    test::record_copy(recorder, "slow");
  }
};

Tensor slow(const Tensor& x) { return apply(std::make_shared<Slow>(), {x}); }

}  // namespace

TEST_CASE("threads train models of their own, while memory is trimmed and traced") {
  const test::Folder folder;
  std::vector<nn::Sequential> alone, together;
  for (unsigned seed = 0; seed < 3; ++seed) {
    alone.push_back(model(seed));
    together.push_back(model(seed));
  }
  std::vector<Floats> expected;
  for (auto& net : alone) expected.push_back(losses_of(net));
  std::vector<Floats> losses(3);
  std::atomic<bool> done{false};
  auto disturbing = std::async(std::launch::async, [&] {
    auto device = Device::current();
    for (int i = 0; !done; ++i) {
      device.trim();
      device.start_trace((folder / (i % 2 ? "odd.json" : "even.json")).string());
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      device.stop_trace();
    }
  });
  in_threads(3, [&](int i) { losses[static_cast<std::size_t>(i)] = losses_of(together[static_cast<std::size_t>(i)]); });
  done = true;
  disturbing.get();
  CHECK(losses == expected);
}

TEST_CASE("threads share a model for inference, its weights still on the host") {
  auto net = model(4);
  net.inference();
  std::vector<Floats> expected;
  for (int i = 0; i < 4; ++i) expected.push_back(net(images(i)).to_vector<float>());
  auto fresh = model(4);
  fresh.inference();
  in_threads(4, [&](int i) {
    for (int round = 0; round < 10; ++round)
      if (fresh(images(i)).to_vector<float>() != expected[static_cast<std::size_t>(i)])
        throw Error("wrong in thread " + std::to_string(i));
  });
}

TEST_CASE("threads evaluate one graph") {
  for (int round = 0; round < 20; ++round) {
    const Tensor x = Tensor::from(Floats(1000, 0.25F + static_cast<float>(round)), {10, 100});
    const Tensor shared = softmax(x * 2.0, 1);
    std::vector<Tensor> results;
    for (int i = 0; i < 4; ++i) results.push_back(sum(shared * static_cast<double>(i + 1)));
    in_threads(4, [&](int i) {
      if (i % 2) shared.eval();
      const float value = results[static_cast<std::size_t>(i)].item<float>();
      if (std::abs(value - 10 * static_cast<float>(i + 1)) > 1e-3F) throw Error("a sum is " + std::to_string(value));
      if (std::abs(shared.to_vector<float>()[17] - 0.01F) > 1e-6F) throw Error("the shared value is wrong");
    });
  }
}

TEST_CASE("who reads or evaluates does not wait for a plan that another thread makes") {
  const auto known = [] { return sum(Tensor::from({1.0F, 2.0F, 3.0F}) * 2.0); };
  const Tensor before = known();
  before.eval();
  Gate shut;
  gate = &shut;
  const Tensor y = slow(Tensor::from({4.0F, 5.0F}));
  auto making = std::async(std::launch::async, [&] { return y.to_vector<float>(); });
  shut.reached.get_future().wait();
  CHECK(before.item<float>() == 12);                                   // what has a value
  CHECK(known().item<float>() == 12);                                  // a known plan
  CHECK(sum(exp(zeros({3, 7})) * 0.5).item<float>() == Approx(10.5));  // a new one
  Device::current().trim();
  CHECK(shut.lowered == 1);
  shut.open.set_value();
  CHECK(making.get() == Floats{4, 5});
}

TEST_CASE("a plan that several threads want is made once, and again where that failed") {
  const auto made = exec::statistics().plans_made;
  Gate shut;
  gate = &shut;
  std::vector<std::future<Floats>> running;
  for (int i = 0; i < 3; ++i)
    running.push_back(std::async(std::launch::async, [] {
      return slow(Tensor::from({1.0F, 2.0F, 3.0F, 4.0F, 5.0F})).to_vector<float>();
    }));
  shut.reached.get_future().wait();
  shut.open.set_value();
  for (auto& result : running) CHECK(result.get() == Floats{1, 2, 3, 4, 5});
  CHECK(shut.lowered == 1);
  CHECK(exec::statistics().plans_made == made + 1);

  Gate failing;
  gate = &failing;
  failing.fails = true;
  running.clear();
  for (int i = 0; i < 2; ++i)
    running.push_back(std::async(std::launch::async, [] {
      return slow(Tensor::from({1.0F, 2.0F, 3.0F, 4.0F, 5.0F, 6.0F})).to_vector<float>();
    }));
  failing.reached.get_future().wait();
  failing.open.set_value();
  for (auto& result : running) CHECK_THROWS_AS(result.get(), Error);
  CHECK(failing.lowered == 2);
}

TEST_CASE("a parameter follows exactly once what several threads evaluate at the same time") {
  for (int round = 0; round < 60; ++round) {
    nn::Parameter p(zeros({3}).detach());
    const Tensor y = Tensor::from({1.0F, 2.0F, 3.0F}) * 2.0;
    p.follow(y, [](const Tensor& now, const Tensor& value) { return now + value; });
    std::atomic<int> ready{0};
    in_threads(2, [&](int i) {
      for (++ready; ready < 2;) std::this_thread::yield();
      for (int k = 0; i == 1 && k < round % 30; ++k) std::this_thread::yield();
      y.eval();
      if (p.value().to_vector<float>() != Floats{2, 4, 6}) throw Error("not followed exactly once");
    });
  }
}

TEST_CASE("calls of one compiled function in several threads lose no step of what follows") {
  for (int round = 0; round < 10; ++round) {
    nn::Parameter p(zeros({3}).detach());
    const auto f = compile([&](const Tensor& x) {
      const Tensor start = narrow(x, 0, 0, 3) * 2.0;
      p.follow(start, [](const Tensor& now, const Tensor& value) { return now + value; });
      return sum(start) + x;
    });
    in_threads(3, [&](int i) {
      // Graphs of other shapes are built while steps are made.
      for (int k = 0; k < 20; ++k) f(Tensor::from(Floats(static_cast<std::size_t>(3 + (i + k) % 4), 1.0F))).eval();
    });
    CHECK(p.value().to_vector<float>() == Floats{120, 120, 120});
  }
}

TEST_CASE("threads that set parameters of their own to what waits hold nothing for each other") {
  const auto before = Device::current().memory().in_use;
  std::atomic<std::size_t> most{0};
  in_threads(3, [&](int) {
    nn::Parameter p(zeros({64, 256}).detach());
    for (int step = 0; step < 100; ++step) {
      p.set(slice_update(p.value(), 0, step % 64, ones({1, 256})));
      p.value().eval();
      const auto now = Device::current().memory().in_use;
      for (auto known = most.load(); known < now && !most.compare_exchange_weak(known, now);) {
      }
    }
  });
  CHECK(most < before + (std::size_t{1} << 20));  // each has a value of 64 KiB and makes the next
}

TEST_CASE("graph is looked at while another thread computes a value that waits in it") {
  for (int round = 0; round < 30; ++round) {
    nn::Parameter p(Tensor::from({1.0F, 2.0F, 3.0F})), indices(Tensor::from({0, 1, 2}));
    Tensor deep = p.value();
    for (int i = 0; i < 20; ++i) deep = deep + 1.0;
    p.set(deep);
    indices.set(cast(indices.value() * 1, Dtype::i32));
    deep = Tensor();
    const std::vector<Tensor> both{p.value(), indices.value()};
    std::atomic<int> ready{0};
    in_threads(2, [&](int i) {
      for (++ready; ready < 2;) std::this_thread::yield();
      if (i == 0) return eval(both);
      for (int k = 0; k < 20; ++k) {
        (void)(both[0] * 2.0).device();
        (void)index_select(zeros({4, 2}), 0, both[1]);
      }
      const DetectAnomaly looking;
      (both[0] * 2.0).eval();
    });
    CHECK(both[0].to_vector<float>() == Floats{21, 22, 23});
  }
}

TEST_CASE("threads that evaluate graphs of one BatchNorm leave statistics that belong together") {
  const Tensor ones_of = Tensor::from(std::vector<float>(8, 1), Shape{4, 2}), threes = ones_of * 3.0;
  eval({ones_of, threes});
  for (int round = 0; round < 40; ++round) {
    nn::BatchNorm1d layer(2, {.momentum = std::nullopt});
    const std::vector<Tensor> results{layer(ones_of), layer(threes)};
    std::atomic<int> ready{0};
    in_threads(4, [&](int i) {
      for (++ready; ready < 4;) std::this_thread::yield();
      results[static_cast<std::size_t>(i) % 2].eval();
    });
    for (const auto& [name, tensor] : layer.state_dict()) {
      if (name == "num_batches_tracked" && tensor.item<std::int64_t>() != 2) FAIL("batches " << tensor.item<std::int64_t>());
      if (name == "running_mean") CHECK(tensor.to_vector<float>()[0] == Approx(2));
    }
  }
}
