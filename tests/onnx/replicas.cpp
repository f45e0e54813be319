// Replicas of a network from an ONNX file: values of their own for one module.
#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "clnet/clnet.h"
#include "clnet/onnx.h"
#include "lib/graph/random_stream.h"
#include "lib/graph/slot_scope.h"
#include "lib/nn/replica_slots.h"
#include "tests/onnx/builder.h"
#include "tests/support/second_device.h"
#include "tests/support/temporary.h"

using namespace clnet;
using namespace clnet::test;

namespace {

/// Two products with a Dropout between them, and a norm by statistics in front where it is wanted.
onnx::Model dropping(bool norm) {
  Builder b;
  b.initializer("first", {3, 4}, {1, -1, 0.5, 2, 0.25, -0.5, 1, 0.75, -2, 0.5, 1, 0.25});
  b.initializer("second", {4, 2}, {0.5, 1, -1, 2, 0.25, 0.5, -0.75, 1});
  b.initializer("ratio", {}, {0.4}).input("x", Type::f32, {-1, 3}).output("y");
  if (norm) {
    b.initializer("scale", {3}, {1, 2, 1}).initializer("shift", {3}, {0, 1, 0});
    b.initializer("mean", {3}, {0, 0, 0}).initializer("var", {3}, {1, 1, 1});
    b.node("BatchNormalization", {"x", "scale", "shift", "mean", "var"}, {"n"});
  }
  b.node("MatMul", {norm ? "n" : "x", "first"}, {"a"}).node("Dropout", {"a", "ratio"}, {"b"});
  b.node("MatMul", {"b", "second"}, {"y"});
  const Folder folder;
  return onnx::load(folder.write("model.onnx", b.model(13)));
}

Tensor rows_of_numbers() {
  std::vector<float> values(24);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 5 % 17) / 8 - 1;
  return Tensor::from(values, {8, 3});
}

}  // namespace

TEST_CASE("replicas of a network from a file have the whole batch's gradients") {
  manual_seed(3);
  auto model = dropping(false);
  model.train();
  const Tensor x = rows_of_numbers();
  const auto start = random_position();
  const auto whole = nn::gradients(mean(square(model(x))), model.parameters());
  std::vector<std::vector<double>> sums(whole.size());
  const std::int64_t counts[] = {5, 3};
  std::int64_t first = 0;
  for (std::size_t i = 0; i < 2; ++i) {
    const nn::ReplicaSlots own(model, Device::current());
    const SlotScope scope(own.map());
    const RandomStream stream(start, {first, counts[i], i});
    const Tensor loss = mean(square(model(narrow(x, 0, first, counts[i]).detach()))) * (static_cast<double>(counts[i]) / 8);
    for (std::size_t k = 0; const auto& gradient : nn::gradients(loss, model.parameters())) {
      const auto values = gradient.to_vector<double>();
      sums[k].resize(values.size());
      for (std::size_t j = 0; j < values.size(); ++j) sums[k][j] += values[j];
      ++k;
    }
    first += counts[i];
  }
  for (std::size_t k = 0; k < whole.size(); ++k) {
    const auto want = whole[k].to_vector<double>();
    REQUIRE(sums[k].size() == want.size());
    for (std::size_t j = 0; j < want.size(); ++j) CHECK(sums[k][j] == Approx(want[j]).margin(1e-6));
  }
}

TEST_CASE("a replica of a network from a file keeps statistics of its own, in training and inference") {
  auto model = dropping(true);
  const auto statistic = model.parameter("mean");
  nn::ReplicaSlots one(model, Device::current()), other(model, Device::current());
  const Tensor x = rows_of_numbers();
  const auto in = [&](const nn::ReplicaSlots& own, const auto& read) {
    const SlotScope scope(own.map());
    return read();
  };
  const auto mean_now = [&] { return statistic.value().to_vector<double>(); };
  model.train();
  in(one, [&] { return eval({model(x)}), 0; });
  in(other, [&] { return eval({model(x + 2.0)}), 0; });
  CHECK(mean_now() == std::vector<double>(3, 0));
  const auto first = in(one, mean_now), second = in(other, mean_now);
  for (std::size_t i = 0; i < 3; ++i) CHECK(second[i] - first[i] == Approx(0.2).margin(1e-6));
  // What inference keeps of untrained weights is each one's own.
  model.inference();
  const auto result = [&] { return model(x).to_vector<double>(); };
  const auto of_model = result(), of_one = in(one, result), of_other = in(other, result);
  CHECK(of_one != of_model);
  CHECK(of_other != of_one);
  CHECK(result() == of_model);
  CHECK(in(one, result) == of_one);
}

TEST_CASE("statistics of a network from a file are those of the whole batch with sync_batch_norm") {
  const Tensor x = rows_of_numbers();
  const auto step = [](nn::Module& of, const data::Batch& batch) -> train::Step { return mean(square(of(batch.images))); };
  const auto part = [&](std::int64_t first, std::int64_t count) {
    // Of the host, for any device.
    data::Batch batch{Tensor::from(narrow(x, 0, first, count).to_vector<float>(), {count, 3}), Tensor::from({0})};
    batch.rows = {first, count, 8};
    return batch;
  };
  const auto trained = [&](bool over_two) {
    manual_seed(3);
    auto model = dropping(true);
    model.train();
    optim::SGD sgd(model, 0.1);
    if (over_two) {
      parallel::Replicas replicas(model, {Device::current(), second_device()}, {.sync_batch_norm = true});
      (void)replicas.step(sgd, {part(0, 5), part(5, 3)}, step);
    } else {
      sgd.step(step(model, part(0, 8)).loss);
    }
    std::vector<double> all;
    for (const auto& [name, tensor] : model.state_dict())
      for (const auto value : tensor.to_vector<double>()) all.push_back(value);
    return all;
  };
  const auto alone = trained(false), together = trained(true);
  REQUIRE(together.size() == alone.size());
  for (std::size_t i = 0; i < alone.size(); ++i) CHECK(together[i] == Approx(alone[i]).margin(1e-5));
}
