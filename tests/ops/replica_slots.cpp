// Slots of a replica's own: one model object, several sets of values.
#include "lib/nn/replica_slots.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "clnet/clnet.h"
#include "clnet/compile.h"
#include "lib/graph/random_stream.h"
#include "lib/graph/slot_scope.h"
#include "tests/support/second_device.h"

namespace clnet::testing {

namespace {

using SlotValues = std::vector<double>;

/// Dropout of rows, of channels and of attention's weights; tied weights; a child by pointer, which has no clone.
struct Replicated : nn::Module {
  nn::Linear in{6, 8}, out{8, 3};
  nn::MultiheadAttention attention{8, 2, {.dropout = 0.2, .batch_first = true}};
  nn::Dropout drop{0.4};
  std::shared_ptr<nn::Linear> tied = std::make_shared<nn::Linear>(8, 8);

  Replicated() {
    add("in", in);
    add("attention", attention);
    add("drop", drop);
    add("tied", tied);
    add("out", out);
  }
  /// x {n, 4, 6}.
  Tensor forward(const Tensor& x) override {
    Tensor y = drop(relu(in(x)));
    y = y + attention(y, y, y);
    y = dropout1d(relu((*tied)(relu((*tied)(y)))), 0.3);
    return out(mean(y, 1));
  }
};

Tensor sentences(std::int64_t rows) {
  std::vector<float> values(static_cast<std::size_t>(rows) * 24);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 11 % 37) / 16 - 1;
  return Tensor::from(values, {rows, 4, 6});
}
Tensor kinds(std::int64_t rows) {
  std::vector<std::int32_t> values(static_cast<std::size_t>(rows));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int32_t>(i % 3);
  return Tensor::from(values, {rows});
}

void require_slot_values(const SlotValues& got, const SlotValues& want) {
  REQUIRE(got.size() == want.size());
  double largest = 0;
  for (const double value : want) largest = std::max(largest, std::abs(value));
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == Approx(want[i]).margin(2e-6 * (largest + 1e-3)).epsilon(1e-5));
}

}  // namespace

TEST_CASE("replicas of one model, in turn on one device, have the whole batch's gradients") {
  manual_seed(1);
  Replicated model;
  const Tensor x = sentences(8), labels = kinds(8);
  const RandomPosition start = random_position();
  const auto whole = nn::gradients(cross_entropy(model(x), labels), model.parameters());
  const auto end = random_position();
  for (const auto& counts : {std::vector<std::int64_t>{4, 4}, {5, 3}, {2, 3, 3}}) {
    std::vector<SlotValues> sums(whole.size());
    std::int64_t first = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      nn::ReplicaSlots own(model, Device::current());
      const SlotScope scope(own.map());
      const RandomStream stream(start, {first, counts[i], i});
      const auto part = [&](const Tensor& all) { return narrow(all, 0, first, counts[i]).detach(); };
      const Tensor loss = cross_entropy(model(part(x)), part(labels)) * (static_cast<double>(counts[i]) / 8);
      const auto gradients = nn::gradients(loss, model.parameters());
      eval(gradients);
      CHECK(stream.position().offset == end.offset);
      for (std::size_t k = 0; k < gradients.size(); ++k) {
        const auto values = gradients[k].to_vector<double>();
        sums[k].resize(values.size());
        for (std::size_t j = 0; j < values.size(); ++j) sums[k][j] += values[j];
      }
      first += counts[i];
    }
    for (std::size_t k = 0; k < whole.size(); ++k) {
      INFO(model.parameters()[k].first);
      require_slot_values(sums[k], whole[k].to_vector<double>());
    }
  }
}

TEST_CASE("a replica's values change apart from the model's and other replicas'") {
  nn::Sequential model{nn::Linear{3, 4}, nn::BatchNorm1d{4, {.momentum = std::nullopt}}};
  nn::ReplicaSlots one(model, Device::current()), other(model, Device::current());
  const auto weight = model.parameter("0.weight"), mean_of = model.parameter("1.running_mean"),
             count = model.parameter("1.num_batches_tracked");
  const auto before = weight.value().to_vector<double>();
  const auto in = [&](const nn::ReplicaSlots& slots, const auto& read) {
    const SlotScope scope(slots.map());
    return read();
  };
  const auto now = [&] { return weight.value().to_vector<double>(); };
  in(one, [&] { return nn::Parameter(weight).set(weight.value() * 2.0), 0; });
  CHECK(now() == before);
  CHECK(in(other, now) == before);
  CHECK(in(one, now)[0] == 2 * before[0]);
  CHECK(weight.shape() == Shape{4, 3});

  // Statistics of each replica's own calls.
  const Tensor x = Tensor::from({1.0F, 2.0F, 3.0F, -1.0F, 0.5F, 4.0F}, {2, 3});
  for (int step = 0; step < 3; ++step) in(one, [&] { return eval({model(x)}), 0; });
  in(other, [&] { return eval({model(x * 3.0)}), 0; });
  const auto batches = [&] { return count.value().item<std::int64_t>(); };
  const auto statistics = [&] { return mean_of.value().to_vector<double>(); };
  CHECK(batches() == 0);
  CHECK(in(one, batches) == 3);
  CHECK(in(other, batches) == 1);
  CHECK(statistics() == SlotValues(4, 0));
  const auto clone_mean = [&](const Tensor& weights, const Tensor& inputs) {
    return mean(linear(inputs, weights, model.parameter("0.bias")), 0).to_vector<double>();
  };
  require_slot_values(in(one, statistics), clone_mean(weight.value() * 2.0, x));
  require_slot_values(in(other, statistics), clone_mean(weight.value(), x * 3.0));

  // A change of the model reaches replicas with take_parameters(), which leaves their statistics and spares what has not changed.
  nn::Parameter(weight).set(weight.value() * 3.0);
  one.take_parameters();
  CHECK(in(one, now)[0] == Approx(3 * before[0]));
  CHECK(in(one, batches) == 3);
  const auto same = in(one, [&] { return weight.value(); });
  one.take_parameters();
  CHECK(in(one, [&] { return weight.value(); }).same(same));

  // Frozen flags and names are shared.
  model.freeze_matching("0.*");
  CHECK(in(one, [&] { return weight.frozen(); }));
  CHECK(in(one, [&] { return model.state_dict().size(); }) == model.state_dict().size());
}

TEST_CASE("scopes of slots nest, and a clone in one has the replica's values") {
  nn::Linear model{2, 2};
  nn::ReplicaSlots one(model, Device::current()), other(model, Device::current());
  const auto first = [](const nn::Linear& of) { return of.parameter("bias").value().to_vector<double>()[0]; };
  const auto set = [&](double value) { model.parameter("bias").set(full({2}, value)); };
  set(1);
  {
    const SlotScope outer(one.map());
    set(2);
    {
      const SlotScope inner(other.map());
      set(3);
      CHECK(first(model) == 3);
    }
    CHECK(first(model) == 2);
    const auto copy = nn::clone(model);
    CHECK(first(copy) == 2);
    copy.parameter("bias").set(full({2}, 9));
    CHECK(first(model) == 2);
  }
  CHECK(first(model) == 1);
}

TEST_CASE("a compiled function has a graph for each replica") {
  nn::Linear model{2, 1, {.bias = false}};
  nn::ReplicaSlots own(model, Device::current());
  const auto infer = compile([&](const Tensor& x) { return model(x); });
  const Tensor x = ones({1, 2});
  const auto set = [&](double value) { model.parameter("weight").set(full({1, 2}, value)); };
  set(1);
  {
    const SlotScope scope(own.map());
    set(5);
    CHECK(infer(x).item<float>() == 10);
  }
  CHECK(infer(x).item<float>() == 2);
  CHECK(infer.graphs() == 2);
  {
    const SlotScope scope(own.map());
    set(6);
    CHECK(infer(x).item<float>() == 12);
  }
  CHECK(infer.graphs() == 2);
}

TEST_CASE("replicas of one model on two devices, each in its thread") {
  if (!Device::current().info().thread_safe) return;
  manual_seed(4);
  Replicated model;
  const std::vector<Device> devices{Device::current(), test::second_device()};
  std::deque<nn::ReplicaSlots> replicas;
  for (const auto& device : devices) replicas.emplace_back(model, device);
  const auto start = random_position();
  const auto gradients_of = [&](std::size_t which, const nn::ReplicaSlots& own) {
    const SlotScope scope(own.map());
    const DeviceScope device(own.device());
    const RandomStream stream(start, {static_cast<std::int64_t>(which) * 4, 4, which});
    const auto gradients = nn::gradients(sum(square(model(sentences(4)))), model.parameters());
    CHECK(gradients.front().device() == own.device());
    std::vector<SlotValues> values;
    for (const auto& gradient : gradients) values.push_back(gradient.to_vector<double>());
    return values;
  };
  std::vector<std::vector<SlotValues>> together(2);
  for (int round = 0; round < 3; ++round) {
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < 2; ++i) threads.emplace_back([&, i] { together[i] = gradients_of(i, replicas[i]); });
    for (auto& thread : threads) thread.join();
  }
  for (std::size_t i = 0; i < 2; ++i) {
    const nn::ReplicaSlots alone(model, Device::current());
    const auto want = gradients_of(i, alone);
    for (std::size_t k = 0; k < want.size(); ++k) require_slot_values(together[i][k], want[k]);
  }
}

}  // namespace clnet::testing
