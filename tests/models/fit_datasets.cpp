// train::fit and train::evaluate over datasets of a caller's own: the same numbers as in memory, streams, resume.
#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "clnet/clnet.h"
#include "tests/models/fit_runs.h"
#include "tests/support/captured.h"
#include "tests/support/temporary.h"

using namespace clnet;
using namespace clnet::test;
using Catch::Contains;

namespace {

/// make_points() sample by sample.
class Points : public data::Dataset {
 public:
  explicit Points(int count, std::string version = "1") : points_(make_points(count)), version_(std::move(version)) {}
  std::int64_t size() const override { return points_.size(); }
  data::Example get(std::int64_t index, std::uint64_t seed) const override { return points_.get(index, seed); }
  std::string fingerprint() const override { return "points, version " + version_; }

 private:
  data::ArrayDataset points_;
  std::string version_;
};

/// The same as a stream.
class PointStream : public data::Dataset {
 public:
  PointStream(int count, bool states) : points_(make_points(count)), states_(states) {}
  std::int64_t size() const override { return unknown; }
  std::unique_ptr<data::Stream> iterate(std::uint64_t seed) const override {
    seeds.insert(seed);
    return std::make_unique<Pass>(points_, states_);
  }
  mutable std::set<std::uint64_t> seeds;

 private:
  class Pass : public data::Stream {
   public:
    Pass(const data::ArrayDataset& points, bool states) : points_(points), states_(states) {}
    std::optional<data::Example> next() override {
      if (at_ == points_.size()) return std::nullopt;
      return points_.get(at_++, 0);
    }
    std::optional<std::string> state() const override {
      if (!states_) return std::nullopt;
      return std::string("\xff\0at ", 5) + std::to_string(at_);  // any bytes
    }
    void restore(const std::string& state) override { at_ = std::stoll(state.substr(5)); }

   private:
    const data::ArrayDataset& points_;
    std::int64_t at_ = 0;
    bool states_;
  };

  data::ArrayDataset points_;
  bool states_;
};

void check_same(const Recorded& one, const Recorded& other) {
  CHECK(one.losses == other.losses);
  CHECK(one.weights == other.weights);
  CHECK(one.result.steps == other.result.steps);
}

/// Stops at the end of step `stop`, as an interrupt would, then goes on.
Recorded stopped_and_resumed(const data::Dataset& points, const data::Dataset& validation, train::FitOptions options,
                             std::int64_t stop) {
  const Folder folder;
  options.checkpoint = folder.path();
  options.checkpoint_steps = 1;
  struct Stop {};
  CHECK_THROWS_AS(record(points, validation, options,
                         [&](std::int64_t step) {
                           if (step == stop + 1) throw Stop();
                         }),
                  Stop);
  options.resume = true;
  return record(points, validation, options);
}

}  // namespace

TEST_CASE("fit: the loss of mixed labels is their cross-entropy") {
  const auto points = make_points(40);
  const data::Mixed mixed(points, {.classes = 3, .mixup = 0.4});
  auto model = make_model();
  model.inference();
  double sum = 0;
  for (const auto& batch : data::batches(mixed, {.batch_size = 40})) {
    const auto output = model(batch.images).to_vector<double>(), shares = batch.labels.to_vector<double>();
    for (std::size_t i = 0; i < output.size(); i += 3) {
      const double all = std::exp(output[i]) + std::exp(output[i + 1]) + std::exp(output[i + 2]);
      for (std::size_t c = 0; c < 3; ++c) sum -= shares[i + c] * (output[i + c] - std::log(all));
    }
  }
  CHECK(train::evaluate(model, mixed, 40).loss == Approx(sum / 40).epsilon(1e-5));
  train::FitOptions options{.epochs = 20, .batch_size = 8, .optimizer = optim::Adam(model, 1e-2)};
  options.progress = false;
  train::fit(model, mixed, options);
  CHECK(train::accuracy(model, points) > 0.8);
}

TEST_CASE("fit: a dataset of one's own gives the numbers of the same in memory, for any number of workers") {
  const auto points = make_points(44), held_out = make_points(20, 1);
  const auto expected = record(points, held_out, {.epochs = 2});
  const Points own(44);
  for (const int workers : {0, 1, 3}) check_same(record(own, held_out, {.epochs = 2, .workers = workers}), expected);
  auto model = make_model();
  const auto in_memory = train::evaluate(model, points, 16);
  const auto of_own = train::evaluate(model, own, {.batch_size = 16, .workers = 2});
  CHECK(in_memory.loss == of_own.loss);
  CHECK(in_memory.accuracy == of_own.accuracy);
}

TEST_CASE("fit: a dataset of one's own resumes with its fingerprint, and with no other") {
  const Points own(44);
  const auto held_out = make_points(20, 1);
  const auto whole = record(own, held_out, {.epochs = 3});
  const auto resumed = stopped_and_resumed(own, held_out, {.epochs = 3}, 8);
  CHECK(resumed.weights == whole.weights);
  CHECK(resumed.result.steps == whole.result.steps);

  const Folder folder;
  record(own, held_out, {.epochs = 1, .checkpoint = folder.path()});
  const auto go_on = [&](const data::Dataset& dataset) {
    record(dataset, held_out, {.epochs = 2, .checkpoint = folder.path(), .resume = true});
  };
  CHECK_THROWS_WITH(go_on(Points(44, "2")),
                    Contains("other samples or labels (\"points, version 1\", now \"points, version 2\")"));
  CHECK_THROWS_WITH(
      record(own, held_out, {.epochs = 2, .length = [](std::int64_t) { return 1; }, .checkpoint = folder.path(), .resume = true}),
      Contains("was made with samples not sorted by length"));
  CHECK_THROWS_WITH(record(own, held_out, {.epochs = 2, .shuffle = false, .checkpoint = folder.path(), .resume = true}),
                    Contains("was made with shuffle true, not false"));
  CHECK_NOTHROW(go_on(own));
}

TEST_CASE("fit: an epoch of a stream ends where the stream does") {
  const PointStream stream(44, true);
  const PointStream held_out(20, false);
  const auto in_memory = record(make_points(44), make_points(20), {.epochs = 2, .shuffle = false});
  const auto streamed = record(stream, held_out, {.epochs = 2});
  check_same(streamed, in_memory);
  REQUIRE(streamed.epochs.size() == 2);
  CHECK(streamed.epochs[1].validation->loss == in_memory.epochs[1].validation->loss);
  CHECK(streamed.epochs[1].train_loss == in_memory.epochs[1].train_loss);
  CHECK(stream.seeds.size() == 2);
  CHECK(record(stream, held_out, {.steps = 9}).result.steps == 9);
  CHECK_THROWS_WITH(record(PointStream(0, false), held_out, {}), Contains("the dataset is empty"));
  auto model = make_model();
  CHECK_THROWS_WITH(train::evaluate(model, PointStream(0, false)), Contains("the dataset is empty"));
}

TEST_CASE("fit: a stream with a state goes on where it was") {
  const PointStream stream(44, true), held_out(20, false);
  const auto whole = record(stream, held_out, {.epochs = 3});
  for (const std::int64_t stop : {3, 6, 8}) {
    const auto resumed = stopped_and_resumed(stream, held_out, {.epochs = 3}, stop);
    CHECK(resumed.weights == whole.weights);
    CHECK(resumed.result.steps == whole.result.steps);
  }
}

TEST_CASE("fit: a stream without a state begins a new epoch, and says so") {
  const PointStream stream(44, false), held_out(20, false);
  const auto said = written_on_stderr([&] {
    const auto resumed = stopped_and_resumed(stream, held_out, {.epochs = 2}, 8);
    CHECK(resumed.result.steps == 8 + 6);
    CHECK(resumed.epochs.size() == 1);
  });
  CHECK_THAT(said, Contains("a new epoch begins, in the place of epoch 2 that was left after 2 steps"));
}

namespace {

/// Sums of sequences of 1 to 4 numbers, padded: the model needs both tensors.
class Sums : public data::Dataset {
 public:
  std::int64_t size() const override { return 24; }
  data::Example get(std::int64_t index, std::uint64_t) const override {
    const auto n = index % 4 + 1;
    const std::vector<float> values(static_cast<std::size_t>(n), 0.25F);
    return {data::Array(values, Shape{n}), data::Array(std::vector<float>{0.25F * static_cast<float>(n)}, Shape{1}),
            data::Array(std::vector<bool>(values.size(), true), Shape{n}, "mask")};
  }
};

}  // namespace

TEST_CASE("fit: a step function takes all tensors of a batch") {
  const Sums sums;
  manual_seed(1);
  nn::Sequential model{nn::Linear(1, 1)};
  train::FitOptions options{.epochs = 80, .batch_size = 8, .optimizer = optim::Adam(model, 0.05), .validation = sums};
  options.collate = data::pad_collate({.value = 9, .values = {9, 0, 0}});
  options.length = [](std::int64_t index) { return index % 4 + 1; };
  options.progress = false;
  options.step_function = [&](nn::Module&, const data::Batch& batch) -> train::Step {
    const auto mask = cast(batch["mask"], Dtype::f32);
    return mse_loss(sum(model(unsqueeze(batch.images, 2)).squeeze(2) * mask, 1, true), batch.labels);
  };
  const auto result = train::fit(model, sums, options);
  CHECK(result.epochs.back().validation->loss < 1e-3);
  CHECK(std::isnan(result.epochs.back().validation->accuracy));
}

TEST_CASE("fit: labels may be any integers") {
  /// Points whose labels have another dtype.
  class Other : public data::Dataset {
   public:
    explicit Other(Dtype dtype) : dtype_(dtype) {}
    std::int64_t size() const override { return points_.size(); }
    data::Example get(std::int64_t index, std::uint64_t seed) const override {
      auto example = points_.get(index, seed);
      const auto label = example[1].values<std::int32_t>()[0];
      example[1] = dtype_ == Dtype::i64 ? data::Array(std::int64_t{label}) : data::Array(static_cast<std::uint8_t>(label));
      return example;
    }

   private:
    data::ArrayDataset points_ = make_points(24);
    Dtype dtype_;
  };
  const auto held_out = make_points(12, 1);
  const auto expected = record(make_points(24), held_out, {});
  for (const auto dtype : {Dtype::i64, Dtype::u8}) {
    const auto other = record(Other(dtype), held_out, {});
    CHECK(other.losses == expected.losses);
    CHECK(other.weights == expected.weights);
  }
}

TEST_CASE("confusion_matrix counts classes and the largest outputs") {
  // The model's output is the sample: sample i of class i % 3 looks like class i % 2.
  std::vector<float> outputs;
  std::vector<std::int32_t> classes;
  for (int i = 0; i < 12; ++i) {
    for (int c = 0; c < 3; ++c) outputs.push_back(c == i % 2 ? 1.0F : 0.0F);
    classes.push_back(i % 3);
  }
  const auto dataset = data::from_arrays(outputs, {3}, classes, 3);
  nn::Sequential model{[](const Tensor& x) { return x * 1.0; }};
  const auto counts = train::confusion_matrix(model, dataset, {.batch_size = 5, .workers = 2});
  CHECK(counts == std::vector<std::vector<std::int64_t>>{{2, 2, 0}, {2, 2, 0}, {2, 2, 0}});
  CHECK_THROWS_WITH(train::confusion_matrix(model, data::from_arrays(outputs, {3}, outputs, Shape{3})),
                    Contains("one class each"));
}

TEST_CASE("fit: hooks work on a stream as on a dataset in memory") {
  const PointStream stream(44, true), held_out(20, false);
  const auto points = make_points(44), validation = make_points(20);
  const auto hooks = [] {
    return std::vector{train::accumulation(4), train::early_stopping({.patience = 2}),
                       train::reduce_on_plateau({"loss"}, {.factor = 0.5, .patience = 0})};
  };
  const auto in_memory = record(points, validation, {.epochs = 4, .shuffle = false, .hooks = hooks()});
  const auto streamed = record(stream, held_out, {.epochs = 4, .hooks = hooks()});
  REQUIRE(streamed.epochs.size() == in_memory.epochs.size());
  // The end of a stream is not known beforehand: the batches behind its last whole group add to the next step.
  CHECK(std::equal(streamed.losses.begin(), streamed.losses.begin() + 5, in_memory.losses.begin()));
  for (const double loss : streamed.losses) CHECK(std::isfinite(loss));

  auto model = make_model();
  train::FitOptions options{.epochs = 3, .batch_size = 8, .optimizer = optim::Adam(model, 1e-9), .validation = held_out};
  options.progress = false;
  options.hooks = {train::early_stopping({.patience = 1, .min_delta = 1})};
  CHECK(train::fit(model, stream, options).stopped_early);
}

TEST_CASE("fit: a resumed stream without a state begins its metrics anew") {
  const PointStream stream(44, false), held_out(20, false);
  auto own = train::FitOptions{.epochs = 2, .metrics = {metrics::Accuracy()}};
  const auto said = written_on_stderr([&] {
    const auto resumed = stopped_and_resumed(stream, held_out, own, 8);
    REQUIRE(resumed.epochs.size() == 1);
    const double hits = resumed.epochs[0].metrics[0].value * 44;
    CHECK(std::abs(hits - std::round(hits)) < 1e-9);  // of 44 samples, and none of the epoch that was left
  });
  CHECK_THAT(said, Contains("a new epoch begins"));
}
