// parallel::Replicas: k replicas step as one device does with the whole batch.
#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "clnet/clnet.h"
#include "lib/exec/statistics.h"
#include "tests/support/second_device.h"

namespace clnet::testing {

namespace {

using Catch::Contains;
using Figures = std::vector<double>;

/// 30 samples of six numbers in three classes.
data::ArrayDataset few_samples() {
  std::vector<float> values(180);
  std::vector<std::int32_t> labels(30);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 13 % 29) / 14 - 1;
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::int32_t>(i * 7 % 3);
  return data::from_arrays(std::move(values), {6}, std::move(labels), 3);
}

nn::Sequential dropping_model() {
  manual_seed(2);
  return nn::Sequential{nn::Linear{6, 16}, relu, nn::Dropout{0.3}, nn::Linear{16, 3}};
}

train::Step plain_step(nn::Module& model, const data::Batch& batch) { return cross_entropy(model(batch.images), batch.labels); }

struct Trained {
  std::vector<double> losses;
  Figures weights;
  std::uint64_t offset = 0;
};

Figures weights_of(const nn::Module& model) {
  Figures all;
  for (const auto& [name, parameter] : model.parameters()) {
    const auto values = parameter.value().to_vector<double>();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

const data::BatchOptions epoch_options{.batch_size = 8, .shuffle = true, .seed = 5};

Trained trained_alone() {
  auto model = dropping_model();
  optim::AdamW adam(model, {.learning_rate = 0.02, .clip_norm = 0.5});
  const auto dataset = few_samples();
  Trained result;
  for (const auto& batch : data::batches(dataset, epoch_options))
    result.losses.push_back(adam.step(plain_step(model, batch).loss).item<double>());
  result.weights = weights_of(model);
  result.offset = random_state().offset;
  return result;
}

Trained trained_by(const std::vector<Device>& devices, const std::vector<double>& shares) {
  auto model = dropping_model();
  parallel::Replicas replicas(model, devices, {.shares = shares});
  optim::AdamW adam(model, {.learning_rate = 0.02, .clip_norm = 0.5});
  const auto dataset = few_samples();
  Trained result;
  auto parts = replicas.batches(dataset, epoch_options);
  while (parts.next()) result.losses.push_back(replicas.step(adam, parts.now(), plain_step));
  CHECK(adam.steps() == static_cast<std::int64_t>(result.losses.size()));
  result.weights = weights_of(model);
  result.offset = random_state().offset;
  return result;
}

void require_figures(const std::vector<double>& got, const std::vector<double>& want) {
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == Approx(want[i]).margin(3e-5));
}

}  // namespace

TEST_CASE("replicas step as one device does with whole batches") {
  const auto alone = trained_alone();
  CHECK(alone.losses.size() == 4);
  const auto here = Device::current(), other = test::second_device();
  const std::vector<Device> one{here}, two{here, other}, three{here, other, here};
  // The last batch has six samples. Of the shares 1 and 20 the first device has none of them.
  const std::vector<std::pair<std::vector<Device>, std::vector<double>>> all{
      {one, {}}, {two, {}}, {two, {3, 1}}, {three, {}}, {two, {1, 20}}};
  for (const auto& [devices, shares] : all) {
    INFO(devices.size() << " devices");
    const auto got = trained_by(devices, shares);
    require_figures(got.losses, alone.losses);
    require_figures(got.weights, alone.weights);
    CHECK(got.offset == alone.offset);
  }
  // The same bits again.
  CHECK(trained_by(two, {3, 1}).weights == trained_by(two, {3, 1}).weights);
}

TEST_CASE("devices that compute at the same time do not wait for one another") {
  auto model = dropping_model();
  optim::Adam adam(model, 0.01);
  parallel::Replicas replicas(model, {Device::current(), test::second_device()});
  const auto dataset = few_samples();
  auto parts = replicas.batches(dataset, epoch_options);
  const auto before = exec::statistics().waited;
  while (parts.next()) (void)replicas.step(adam, parts.now(), plain_step);
  CHECK(exec::statistics().waited == before);
}

TEST_CASE("the loss of replicas is the sum by the number that counts, not a mean of means") {
  nn::Linear model{2, 3};
  // Four of six labels count, three of them in the first share of four rows.
  const Tensor x = Tensor::from({1.0F, 2.0F, -1.0F, 0.5F, 3.0F, 1.0F, 0.0F, -2.0F, 1.0F, 1.0F, -3.0F, 0.5F}, {6, 2});
  const Tensor labels = Tensor::from({0, 1, -100, 2, -100, 1}, {6});
  const auto step = [](nn::Module& of, const data::Batch& batch) -> train::Step {
    const Tensor counts = sum(cast(greater_equal(batch.labels, 0), Dtype::f32));
    return {cross_entropy(of(batch.images), batch.labels), {}, {}, counts};
  };
  optim::SGD sgd(model, 0.1);
  const auto before = model.state_dict();
  const double alone = sgd.step(cross_entropy(model(x), labels)).item<double>();
  const auto want = weights_of(model);
  model.load_state_dict(before);
  parallel::Replicas replicas(model, {Device::current(), Device::current()}, {.shares = {2, 1}});
  const auto rows = [&](std::int64_t first, std::int64_t count) {
    data::Batch batch{narrow(x, 0, first, count).detach(), narrow(labels, 0, first, count).detach()};
    batch.rows = {first, count, 6};
    return batch;
  };
  CHECK(replicas.step(sgd, {rows(0, 4), rows(4, 2)}, step) == Approx(alone));
  require_figures(weights_of(model), want);
  // A change of the model between steps reaches all replicas.
  model.load_state_dict(before);
  CHECK(replicas.step(sgd, {rows(0, 4), rows(4, 2)}, step) == Approx(alone));
  require_figures(weights_of(model), want);

  const auto x_only = rows(0, 6);
  CHECK_THROWS_WITH(replicas.step(sgd, {x_only}, step), "Replicas: 1 parts of a batch for 2 devices");
  CHECK_THROWS_WITH(replicas.step(sgd, {rows(0, 4), rows(3, 3)}, step), "Replicas: the parts are not those of one batch");
  CHECK_THROWS_WITH(replicas.step(sgd, {rows(0, 4), rows(4, 1)}, step), "Replicas: the parts are not those of one batch");
}

TEST_CASE("a part of which nothing counts has no part in the step of replicas") {
  nn::Linear model{2, 3};
  const Tensor x = Tensor::from({1.0F, 2.0F, -1.0F, 0.5F, 3.0F, 1.0F, 0.0F, -2.0F, 1.0F, 1.0F, -3.0F, 0.5F}, {6, 2});
  const Tensor some = Tensor::from({0, 1, 2, 1, -100, -100}, {6}), none = full({6}, -100, Dtype::i32);
  // Of the second part the loss is 0 / 0, and so are its gradients.
  const auto mean_over = [](const Tensor& y, const Tensor& labels, const Tensor& counts) {
    return cross_entropy(y, labels, {.reduction = Reduction::sum}) / counts;
  };
  const auto count_of = [](const Tensor& labels) { return sum(cast(greater_equal(labels, 0), Dtype::f32)); };
  const auto step = [&](nn::Module& of, const data::Batch& batch) -> train::Step {
    const Tensor counts = count_of(batch.labels);
    return {mean_over(of(batch.images), batch.labels, counts), {}, {}, counts};
  };
  optim::SGD sgd(model, 0.1);
  const auto before = model.state_dict();
  const double alone = sgd.step(mean_over(model(x), some, count_of(some))).item<double>();
  const auto want = weights_of(model);
  model.load_state_dict(before);
  parallel::Replicas replicas(model, {Device::current(), Device::current()}, {.shares = {2, 1}});
  const auto parts = [&](const Tensor& labels) {
    std::vector<data::Batch> all;
    for (const auto& [first, count] : {std::pair{0, 4}, {4, 2}}) {
      all.push_back({narrow(x, 0, first, count).detach(), narrow(labels, 0, first, count).detach()});
      all.back().rows = {first, count, 6};
    }
    return all;
  };
  CHECK(replicas.step(sgd, parts(some), step) == Approx(alone));
  require_figures(weights_of(model), want);
  CHECK(std::isnan(replicas.step(sgd, parts(none), step)));

  for (const double wrong : {-1.0, std::nan("")}) {
    const auto counted = [&](nn::Module& of, const data::Batch& batch) -> train::Step {
      return {cross_entropy(of(batch.images), batch.labels), {}, {}, full({}, wrong)};
    };
    CHECK_THROWS_WITH(replicas.step(sgd, parts(some), counted), Contains("the count of a step is"));
  }
}

TEST_CASE("a step of replicas that throws changes no parameter, and the next one goes on") {
  auto model = dropping_model();
  optim::Adam adam(model, 0.01);
  parallel::Replicas replicas(model, {Device::current(), test::second_device()});
  const auto dataset = few_samples();
  auto parts = replicas.batches(dataset, epoch_options);
  REQUIRE(parts.next());
  const auto before = weights_of(model);
  const auto random = random_state().offset;
  int calls = 0;
  const auto fails = [&](nn::Module& of, const data::Batch& batch) {
    if (++calls == 2) throw Error("the second one fails");
    return plain_step(of, batch);
  };
  CHECK_THROWS_WITH(replicas.step(adam, parts.now(), fails), Contains("the second one fails"));
  CHECK(weights_of(model) == before);
  CHECK(random_state().offset == random);
  CHECK(adam.steps() == 0);
  int draws = 0;
  const auto uneven = [&](nn::Module& of, const data::Batch& batch) {
    for (int i = 0; i < draws; ++i) (void)rand({2});
    ++draws;
    return plain_step(of, batch);
  };
  CHECK_THROWS_WITH(replicas.step(adam, parts.now(), uneven), Contains("draws other random tensors"));
  CHECK(weights_of(model) == before);
  // One that fails while its device computes.
  for (const int failing : {1, 2}) {
    const DetectAnomaly detect;
    int part = 0;
    const auto undefined = [&](nn::Module& of, const data::Batch& batch) -> train::Step {
      const Tensor loss = plain_step(of, batch).loss;
      return ++part == failing ? loss + log(sum(batch.images * 0.0) - 1.0) : loss;
    };
    CHECK_THROWS_WITH(replicas.step(adam, parts.now(), undefined), Contains("made the first nan"));
    CHECK(weights_of(model) == before);
    CHECK(random_state().offset == random);
    CHECK(adam.steps() == 0);
  }
  CHECK(std::isfinite(replicas.step(adam, parts.now(), plain_step)));
  CHECK(weights_of(model) != before);

  adam.set_loss_scale();
  CHECK_THROWS_WITH(replicas.step(adam, parts.now(), plain_step), Contains("loss scale"));
  auto stranger = dropping_model();
  optim::SGD of_stranger(stranger, 0.1);
  CHECK_THROWS_WITH(replicas.step(of_stranger, parts.now(), plain_step), "Replicas: the optimizer is not the model's");
  adam.remove_loss_scale();
  const auto partly = [](nn::Module& of, const data::Batch& batch) -> train::Step {
    return sum(of.parameter("0.weight").value()) + 0.0 * sum(batch.images);
  };
  CHECK_THROWS_WITH(replicas.step(adam, parts.now(), partly), Contains("the loss does not depend on 0.bias"));
  CHECK_THROWS_WITH(parallel::Replicas(model, {}), "Replicas: there are no devices");
  CHECK_THROWS_WITH(parallel::Replicas(model, {Device::current()}, {.shares = {1, 1}}), "Replicas: 2 shares for 1 devices");
  CHECK_THROWS_WITH(parallel::Replicas(model, {Device::current()}, {.shares = {-1}}), "shares: -1 is no share");
}

TEST_CASE("frozen parameters of replicas stay, and batch norm has each device's statistics") {
  manual_seed(6);
  nn::Sequential model{nn::Linear{6, 4, {.bias = false}}, nn::BatchNorm1d{4}, nn::Linear{4, 3}};
  model.freeze_matching("0.*");
  optim::SGD sgd(model, 0.1);
  parallel::Replicas replicas(model, {Device::current(), Device::current()});
  const auto dataset = few_samples();
  auto parts = replicas.batches(dataset, epoch_options);
  REQUIRE(parts.next());
  const auto weight = model.parameter("0.weight").value().to_vector<double>();
  const auto images = parts.now()[0].images;
  (void)replicas.step(sgd, parts.now(), plain_step);
  CHECK(model.parameter("0.weight").value().to_vector<double>() == weight);
  // The model's statistics are those of the first device's rows.
  const auto mean_of = (mean(linear(images, model.parameter("0.weight")), 0) * 0.1).to_vector<double>();
  require_figures(model.parameter("1.running_mean").value().to_vector<double>(), mean_of);
  CHECK(model.parameter("1.num_batches_tracked").value().item<std::int64_t>() == 1);
}

}  // namespace clnet::testing
