// parallel::Replicas with sync_batch_norm: batch norm over several devices is that of the whole batch, and nothing waits forever.
#include <catch2/catch.hpp>
#include <cmath>
#include <utility>
#include <vector>

#include "clnet/clnet.h"
#include "lib/exec/statistics.h"
#include "tests/support/second_device.h"

namespace clnet::testing {

namespace {

using Catch::Contains;
using Figures = std::vector<double>;

data::ArrayDataset few_samples() {
  std::vector<float> values(240);
  std::vector<std::int32_t> labels(30);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 13 % 29) / 14 - 1;
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::int32_t>(i * 7 % 3);
  return data::from_arrays(std::move(values), {2, 4}, std::move(labels), 3);
}

/// Two norms that do not read each other, one behind them, and means of all batches.
struct Net : nn::Module {
  nn::Linear left{8, 6, {.bias = false}}, right{8, 6, {.bias = false}}, last{6, 3};
  nn::BatchNorm1d of_left{6}, of_right{6, {.momentum = std::nullopt}}, of_both{6, {.affine = false}}, of_rows{2};
  nn::Dropout dropout{0.25};

  Net() {
    add("left", left);
    add("right", right);
    add("last", last);
    add("of_left", of_left);
    add("of_right", of_right);
    add("of_both", of_both);
    add("of_rows", of_rows);
    add("dropout", dropout);
  }
  Tensor forward(const Tensor& x) override {
    const Tensor rows = reshape(of_rows(x), {-1, 8});
    return last(of_both(dropout(relu(of_left(left(rows))) + tanh(of_right(right(rows))))));
  }
};

train::Step plain_step(nn::Module& model, const data::Batch& batch) { return cross_entropy(model(batch.images), batch.labels); }

/// The part's mean over labels that are not 0, of which there may be none.
train::Step counted_step(nn::Module& model, const data::Batch& batch) {
  const Tensor counts = cast(greater(batch.labels, 0), Dtype::f32), all = sum(counts);
  const Tensor losses = cross_entropy(model(batch.images), batch.labels, {.reduction = Reduction::none});
  return {sum(losses * counts) / maximum(all, 1.0), {}, {}, all};
}

struct Trained {
  Figures losses, state;  ///< state: weights and running statistics
};

Figures state_of(const nn::Module& model) {
  Figures all;
  for (const auto& [name, tensor] : model.state_dict()) {
    const auto values = tensor.to_vector<double>();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

const data::BatchOptions epoch_options{.batch_size = 8, .shuffle = true, .seed = 5};

Trained trained_alone(const train::StepFunction& function) {
  manual_seed(2);
  Net model;
  optim::SGD sgd(model, {.learning_rate = 0.1, .momentum = 0.9});
  const auto dataset = few_samples();
  Trained result;
  for (const auto& batch : data::batches(dataset, epoch_options))
    result.losses.push_back(sgd.step(function(model, batch).loss).item<double>());
  result.state = state_of(model);
  return result;
}

Trained trained_by(const std::vector<Device>& devices, const std::vector<double>& shares, const train::StepFunction& function,
                   bool sync = true) {
  manual_seed(2);
  Net model;
  parallel::Replicas replicas(model, devices, {.shares = shares, .sync_batch_norm = sync});
  optim::SGD sgd(model, {.learning_rate = 0.1, .momentum = 0.9});
  const auto dataset = few_samples();
  Trained result;
  auto parts = replicas.batches(dataset, epoch_options);
  while (parts.next()) result.losses.push_back(replicas.step(sgd, parts.now(), function));
  result.state = state_of(model);
  return result;
}

/// The largest difference.
double distance(const Figures& got, const Figures& want) {
  REQUIRE(got.size() == want.size());
  double most = 0;
  for (std::size_t i = 0; i < got.size(); ++i) most = std::max(most, std::fabs(got[i] - want[i]));
  return most;
}

std::vector<Device> two_devices() { return {Device::current(), test::second_device()}; }

}  // namespace

TEST_CASE("batch norm over several devices is that of the whole batch") {
  const auto alone = trained_alone(plain_step), counted = trained_alone(counted_step);
  REQUIRE(alone.losses.size() == 4);
  const auto two = two_devices();
  const std::vector<Device> one{two[0]}, three{two[0], two[1], test::in_own_context(two[0])};
  // The last batch has six samples. Of the shares 1 and 12 the first device has none of them, and one row of each other batch.
  const std::vector<std::pair<std::vector<Device>, std::vector<double>>> all{{one, {}},   {two, {}},      {two, {3, 1}},
                                                                             {three, {}}, {two, {1, 12}}, {three, {1, 0, 3}}};
  for (const auto& [devices, shares] : all) {
    INFO(devices.size() << " devices, share " << (shares.empty() ? 1 : shares[0]));
    const auto got = trained_by(devices, shares, plain_step);
    CHECK(distance(got.losses, alone.losses) < 3e-5);
    CHECK(distance(got.state, alone.state) < 3e-5);
  }
  const auto got = trained_by(two, {3, 1}, counted_step);
  CHECK(distance(got.losses, counted.losses) < 3e-5);
  CHECK(distance(got.state, counted.state) < 3e-5);
  // Each device's own statistics are others.
  CHECK(distance(trained_by(two, {}, plain_step, false).state, alone.state) > 1e-3);
  // The same bits again.
  const auto once = trained_by(two, {3, 1}, plain_step), again = trained_by(two, {3, 1}, plain_step);
  CHECK(once.losses == again.losses);
  CHECK(once.state == again.state);
}

TEST_CASE("batch norm over several devices in what checkpoint() computes again") {
  const auto recomputing = [](nn::Module& model, const data::Batch& batch) -> train::Step {
    return cross_entropy(checkpoint([&] { return model(batch.images); }), batch.labels);
  };
  const auto alone = trained_alone(recomputing), together = trained_by(two_devices(), {3, 1}, recomputing);
  CHECK(distance(together.losses, alone.losses) < 3e-5);
  CHECK(distance(together.state, alone.state) < 3e-5);
}

TEST_CASE("devices that share batch norm wait for its sums alone, and make no new plans") {
  manual_seed(2);
  Net model;
  optim::SGD sgd(model, 0.1);
  parallel::Replicas replicas(model, two_devices(), {.shares = {3, 1}, .sync_batch_norm = true});
  const auto dataset = few_samples();
  auto parts = replicas.batches(dataset, epoch_options);
  const auto before = exec::statistics().waited;
  REQUIRE(parts.next());
  (void)replicas.step(sgd, parts.now(), plain_step);
  (void)replicas.step(sgd, parts.now(), plain_step);
  const auto plans = exec::statistics().plans_made;
  (void)replicas.step(sgd, parts.now(), plain_step);
  CHECK(exec::statistics().plans_made == plans);
  CHECK(exec::statistics().waited == before);
}

TEST_CASE("a part that fails ends the others' wait for batch norm, and the next step goes on") {
  manual_seed(2);
  Net model;
  optim::SGD sgd(model, 0.1);
  parallel::Replicas replicas(model, two_devices(), {.sync_batch_norm = true});
  const auto dataset = few_samples();
  auto parts = replicas.batches(dataset, epoch_options);
  REQUIRE(parts.next());
  const auto weights = [&] { return model.parameter("last.weight").value().to_vector<double>(); };
  const auto before = weights();
  const auto fails = [&](const train::StepFunction& function, const std::string& message) {
    INFO(message);
    CHECK_THROWS_WITH(replicas.step(sgd, parts.now(), function), Contains(message));
    CHECK(weights() == before);
    CHECK(sgd.steps() == 0);
  };
  for (const int failing : {1, 2}) {
    int part = 0;
    fails(
        [&](nn::Module& of, const data::Batch& batch) {
          if (++part == failing) throw Error("this part fails");
          return plain_step(of, batch);
        },
        "this part fails");
    const DetectAnomaly detect;
    part = 0;
    fails(
        [&](nn::Module& of, const data::Batch& batch) -> train::Step {
          const Tensor worse = ++part == failing ? batch.images + log(sum(batch.images * 0.0) - 1.0) : batch.images;
          return cross_entropy(of(worse), batch.labels);
        },
        "made the first nan");
    part = 0;
    fails(
        [&](nn::Module& of, const data::Batch& batch) -> train::Step {
          const Tensor loss = plain_step(of, batch).loss;
          return ++part == failing ? loss + sum(dynamic_cast<Net&>(of).of_rows(batch.images)) * 0.0 : loss;
        },
        "builds another graph for each part");
  }
  fails(
      [](nn::Module& of, const data::Batch& batch) -> train::Step {
        const Tensor loss = plain_step(of, batch).loss;
        return loss * loss.item<double>();
      },
      "the step function may only build graph");
  Tensor kept, leaf;
  const double loss = replicas.step(sgd, parts.now(), [&](nn::Module& of, const data::Batch& batch) -> train::Step {
    const Tensor output = of(batch.images);
    kept = sum(output * 2.0);
    leaf = of.parameter("left.weight");
    return cross_entropy(output, batch.labels);
  });
  CHECK(std::isfinite(loss));
  CHECK(weights() != before);
  CHECK_THROWS_WITH(gradients(kept, {leaf}), Contains("has gradients only within its step"));
}

TEST_CASE("batch norm over several devices takes no device twice") {
  nn::Sequential model{nn::Linear{8, 3}};
  const auto here = Device::current();
  CHECK_THROWS_WITH(
      parallel::Replicas(model, {here, test::second_device(), here}, {.sync_batch_norm = true}),
      "Replicas: the device " + here.info().name + " is given twice; with sync_batch_norm it would wait for itself");
}

}  // namespace clnet::testing
