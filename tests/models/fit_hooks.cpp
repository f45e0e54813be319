// Hooks, metrics and step functions of train::fit, beside loops that do the same by hand.
#include <catch2/catch.hpp>

#include "clnet/clnet.h"
#include "tests/models/fit_runs.h"
#include "tests/support/temporary.h"

using namespace clnet;
using namespace clnet::test;
namespace fs = std::filesystem;

namespace {

std::vector<std::vector<float>> weights_of(const nn::Module& model) {
  std::vector<std::vector<float>> all;
  for (const auto& [name, tensor] : model.state_dict()) all.push_back(tensor.to_vector<float>());
  return all;
}

/// Options for a model, without progress.
train::FitOptions quiet(const nn::Module& model, std::int64_t epochs) {
  train::FitOptions options{.epochs = epochs, .batch_size = 8, .optimizer = optim::Adam(model, 1e-2)};
  options.progress = false;
  options.seed = 3;
  return options;
}

/// The batches that fit() makes of these options.
data::BatchOptions same_batches(std::int64_t epoch) {
  return {.batch_size = 8, .shuffle = true, .seed = 3, .epoch = static_cast<std::uint64_t>(epoch)};
}

/// Writes down what it hears.
class Diary : public train::Hook {
 public:
  Diary(std::string name, std::vector<std::string>& lines) : name_(std::move(name)), lines_(lines) {}
  std::string name() const override { return "diary"; }
  void before_training(train::Run& run) override { write("begin", run); }
  void after_training(train::Run& run) override { write("end", run); }
  void before_epoch(train::Run& run) override { write("epoch", run); }
  void after_epoch(train::Run& run) override {
    CHECK(run.record->epoch == run.epoch);
    CHECK(run.records.size() + 1 == static_cast<std::size_t>(run.record->epoch));
    write("epoch's end", run);
  }
  void before_step(train::Run& run) override { write("step", run); }
  void after_step(train::Run& run) override {
    CHECK(run.updated);
    CHECK(run.loss.defined());
    losses.push_back(run.loss);
    write("stepped", run);
  }
  void on_loss(train::Run&, std::int64_t step, double loss) override {
    CHECK(loss == losses.at(static_cast<std::size_t>(step) - 1).item<double>());
    ++read;
  }
  void before_evaluation(train::Run& run) override { write("evaluation", run); }
  void after_evaluation(train::Run& run) override { write(run.record->validation ? "evaluated" : "not evaluated", run); }
  void before_checkpoint(train::Run& run) override { write("checkpoint", run); }

  std::vector<Tensor> losses;
  std::int64_t read = 0;

 private:
  void write(const std::string& what, const train::Run& run) {
    lines_.push_back(name_ + ' ' + what + ' ' + std::to_string(run.step));
  }

  std::string name_;
  std::vector<std::string>& lines_;
};

}  // namespace

TEST_CASE("fit: hooks are called in order, and in reverse after") {
  const auto points = make_points(16), validation = make_points(12, 1);
  auto model = make_model();
  const clnet::test::Folder folder;
  std::vector<std::string> lines;
  const auto a = std::make_shared<Diary>("a", lines), b = std::make_shared<Diary>("b", lines);
  auto options = quiet(model, 1);
  options.validation = validation;
  options.hooks = {a, b};
  options.checkpoint = folder.path();
  train::fit(model, points, options);
  CHECK(lines == std::vector<std::string>{
                     "a begin 0",      "b begin 0",      "a epoch 0",     "b epoch 0",     "a step 0",        "b step 0",
                     "b stepped 1",    "a stepped 1",    "a step 1",      "b step 1",      "b stepped 2",     "a stepped 2",
                     "a evaluation 2", "b evaluation 2", "b evaluated 2", "a evaluated 2", "b epoch's end 2", "a epoch's end 2",
                     "a checkpoint 2", "b checkpoint 2", "b end 2",       "a end 2"});
  CHECK(a->read == 2);

  // An evaluation that fails ends for the hooks, too.
  lines.clear();
  options.checkpoint.clear();
  const auto wide = data::from_arrays(std::vector<float>(8), {2}, std::vector<std::int32_t>{0, 1, 2, 0}, 3);
  options.validation = wide;
  a->losses.clear();
  b->losses.clear();
  CHECK_THROWS_AS(train::fit(model, points, options), Error);
  CHECK(std::count(lines.begin(), lines.end(), "a not evaluated 2") == 1);
  CHECK(lines.back() == "a not evaluated 2");
}

TEST_CASE("fit: metrics of training and validation are in the records") {
  const auto points = make_points(53), validation = make_points(20, 1);
  auto model = make_model();
  auto options = quiet(model, 2);
  options.validation = validation;
  options.metrics = {metrics::Accuracy(), metrics::F1(3), metrics::TopK(2)};
  const auto result = train::fit(model, points, options);

  auto other = make_model();
  optim::Adam adam(other, 1e-2);
  for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
    std::vector<metrics::Metric> own{metrics::Accuracy(), metrics::F1(3), metrics::TopK(2)};
    other.train();
    for (const auto& [x, labels] : data::batches(points, same_batches(epoch))) {
      const std::vector<Tensor> outputs{other(x)}, wanted{labels};
      const auto more = metrics::update(own, outputs, wanted);
      adam.step(cross_entropy(outputs[0], labels), more);
    }
    const auto& record = result.epochs[static_cast<std::size_t>(epoch)];
    REQUIRE(record.metrics.size() == 3);
    for (std::size_t i = 0; i < 3; ++i) {
      CHECK(record.metrics[i].name == own[i].name());
      CHECK(record.metrics[i].value == own[i].value());
    }
    const auto want = train::evaluate(other, validation, {.batch_size = 8, .metrics = own});
    REQUIRE(record.validation->metrics.size() == 3);
    CHECK(record.validation->loss == want.loss);
    CHECK(record.validation->metrics[0].value == record.validation->accuracy);
    for (std::size_t i = 0; i < 3; ++i) CHECK(record.validation->metrics[i].value == want.metrics[i].value);
  }
  CHECK(weights_of(model) == weights_of(other));
  options.metrics = {metrics::F1(3), metrics::F1(3, metrics::Average::micro)};
  CHECK_THROWS_WITH(train::fit(model, points, options), Catch::Contains("two metrics are called 'f1'; named() gives another"));
}

TEST_CASE("fit: an evaluation that throws anything leaves the model its own weights") {
  const auto points = make_points(16), validation = make_points(12, 1);
  auto model = make_model();
  optim::EMA average(model, 0.9);
  struct Own {};
  struct Thrower : train::Hook {
    std::string name() const override { return "thrower"; }
    void before_evaluation(train::Run&) override { throw Own{}; }
  };
  auto options = quiet(model, 1);
  options.validation = validation;
  options.hooks = {train::ema(average), std::make_shared<Thrower>()};
  CHECK_THROWS_AS(train::fit(model, points, options), Own);
  CHECK_FALSE(average.swapped());
}

TEST_CASE("fit: errors of hooks say which hook") {
  struct Full : train::Hook {
    std::string name() const override { return "shelf"; }
    void after_step(train::Run&) override { throw FileError("a.csv: no space"); }
  };
  const auto points = make_points(16);
  auto model = make_model();
  auto options = quiet(model, 1);
  options.hooks = {std::make_shared<Full>()};
  CHECK_THROWS_AS(train::fit(model, points, options), FileError);
  CHECK_THROWS_WITH(train::fit(model, points, options), "in hook shelf: a.csv: no space");
}

TEST_CASE("fit: metrics, hooks and a loss scale in f16") {
  const auto points = make_points(53), validation = make_points(20, 1);
  auto model = make_model();
  optim::EMA average(model, 0.5);
  auto options = quiet(model, 4);
  options.precision = Dtype::f16;
  options.validation = validation;
  options.metrics = {metrics::Accuracy(), metrics::AUC(3), metrics::Perplexity()};
  options.hooks = {train::ema(average), train::accumulation(2)};
  const auto result = train::fit(model, points, options);
  const auto& last = result.epochs.back();
  CHECK(last.validation->metrics[0].value == last.validation->accuracy);
  CHECK(last.validation->metrics[2].value == Approx(std::exp(last.validation->loss)).epsilon(1e-3));
  CHECK(last.validation->metrics[1].value > 0.8);
  CHECK(last.train_loss < result.epochs.front().train_loss);
}

TEST_CASE("fit: ema() is a loop that updates, swaps, evaluates and swaps back") {
  const auto points = make_points(53), validation = make_points(20, 1);
  auto model = make_model();
  optim::EMA average(model, 0.9);
  auto options = quiet(model, 2);
  options.validation = validation;
  options.hooks = {train::ema(average)};
  const auto result = train::fit(model, points, options);

  auto other = make_model();
  optim::EMA its(other, 0.9);
  optim::Adam adam(other, 1e-2);
  for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
    for (const auto& [x, labels] : data::batches(points, same_batches(epoch))) {
      adam.step(cross_entropy(other(x), labels));
      its.update();
    }
    its.swap();
    CHECK(train::evaluate(other, validation, 8).loss == result.epochs[static_cast<std::size_t>(epoch)].validation->loss);
    its.swap();
  }
  CHECK(weights_of(model) == weights_of(other));
  CHECK(average.updates() == 14);
  const auto own = average.values(), want = its.values();
  for (std::size_t i = 0; i < own.size(); ++i) CHECK(equal(own[i].second, want[i].second));
}

TEST_CASE("fit: accumulation() steps once for several batches, and for what is left of an epoch") {
  const auto points = make_points(53);  // 7 batches: 3, 3 and 1
  auto model = make_model();
  std::vector<double> losses;
  auto options = quiet(model, 2);
  optim::EMA average(model, 0.5);
  options.hooks = {train::accumulation(3), train::ema(average)};
  options.on_step = [&](std::int64_t, double loss) { losses.push_back(loss); };
  CHECK(train::fit(model, points, options).steps == 14);
  CHECK(options.optimizer.steps() == 6);
  CHECK(average.updates() == 6);

  auto other = make_model();
  optim::Adam adam(other, 1e-2);
  std::vector<double> want;
  for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
    std::int64_t batch = 0;
    for (const auto& [x, labels] : data::batches(points, same_batches(epoch))) {
      const auto loss = cross_entropy(other(x), labels);
      const double part = batch < 6 ? 1.0 / 3 : 1;
      if (batch == 2 || batch == 5 || batch == 6)
        adam.step(loss * part, {loss});
      else
        adam.accumulate(loss * part, {loss});
      want.push_back(loss.item<double>());
      ++batch;
    }
  }
  CHECK(losses == want);
  const auto own = weights_of(model), theirs = weights_of(other);
  for (std::size_t i = 0; i < own.size(); ++i)
    for (std::size_t k = 0; k < own[i].size(); ++k) CHECK(own[i][k] == Approx(theirs[i][k]).epsilon(1e-5).margin(1e-6));
}

TEST_CASE("fit: early_stopping() ends with the best weights") {
  const auto points = make_points(24), validation = make_points(20, 1);
  auto model = make_model();
  auto options = quiet(model, 60);
  options.optimizer.set_learning_rate(0.3);
  options.validation = validation;
  options.hooks = {train::early_stopping({.patience = 4})};
  const auto result = train::fit(model, points, options);
  CHECK(result.stopped_early);
  REQUIRE(result.epochs.size() < 60);
  std::size_t best = 0;
  for (std::size_t i = 0; i < result.epochs.size(); ++i)
    if (result.epochs[i].validation->loss < result.epochs[best].validation->loss) best = i;
  CHECK(best + 5 == result.epochs.size());
  CHECK(train::evaluate(model, validation, 8).loss == result.epochs[best].validation->loss);

  CHECK_THROWS_WITH(train::early_stopping({.patience = 0}), Catch::Contains("patience is 0"));
  options.hooks = {train::early_stopping({.monitor = {"miou"}})};
  CHECK_THROWS_WITH(train::fit(model, points, options),
                    Catch::Contains("'miou' is no number of the records, which are loss, accuracy"));
  const auto twice = train::accumulation(2);
  options.hooks = {twice, train::accumulation(3), twice};
  CHECK_THROWS_WITH(train::fit(model, points, options), "train::fit: the hook accumulation 2 is in the list twice");
  const auto other = make_model();
  options.hooks = {train::ema(optim::EMA(other, 0.9))};
  CHECK_THROWS_WITH(train::fit(model, points, options), "in hook ema: train::ema: the averages were made for another model");
  CHECK_THROWS_WITH(train::tensorboard(""), "train::tensorboard: the name of the folder is empty");
  CHECK_THROWS_WITH(train::csv(""), "train::csv: the name of the file is empty");
  options.hooks = {train::early_stopping()};
  options.validation.reset();
  CHECK_THROWS_WITH(train::fit(model, points, options), Catch::Contains("'loss' needs a validation dataset"));
}

TEST_CASE("fit: reduce_on_plateau() follows optim::Plateau") {
  const auto points = make_points(24), validation = make_points(20, 1);
  for (const bool training : {false, true}) {
    auto model = make_model();
    auto options = quiet(model, 12);
    options.validation = validation;
    options.metrics = {metrics::Accuracy()};
    const optim::PlateauOptions plateau_options{.factor = 0.5, .patience = 1};
    const train::Monitor monitor{training ? "train_accuracy" : "accuracy", true};
    options.hooks = {train::reduce_on_plateau(monitor, plateau_options)};
    std::vector<double> rates;
    options.on_epoch = [&](const train::EpochMetrics&) { rates.push_back(options.optimizer.learning_rate()); };
    const auto result = train::fit(model, points, options);
    auto same = plateau_options;
    same.maximize = true;
    optim::Plateau plateau(1e-2, same);
    std::vector<double> want;
    for (const auto& record : result.epochs)
      want.push_back(plateau.step(training ? record.metrics[0].value : record.validation->accuracy));
    CHECK(rates == want);
    CHECK(rates.back() < 1e-2);
    options.schedule = optim::constant(1e-2);
    CHECK_THROWS_WITH(train::fit(model, points, options), Catch::Contains("and so does the schedule"));
  }
}

TEST_CASE("fit: unfreezing() trains parts from their epoch on") {
  const auto points = make_points(24);
  auto model = make_model();
  auto options = quiet(model, 3);
  options.hooks = {train::unfreezing({{2, "0"}, {3, "4.bias"}})};
  std::vector<std::pair<std::vector<float>, std::vector<float>>> seen;
  const auto look = [&] {
    seen.emplace_back(model.parameter("0.weight").value().to_vector<float>(),
                      model.parameter("4.bias").value().to_vector<float>());
  };
  look();
  options.on_epoch = [&](const train::EpochMetrics&) { look(); };
  train::fit(model, points, options);
  CHECK(seen[1].first == seen[0].first);
  CHECK(seen[2].first != seen[1].first);
  CHECK(seen[2].second == seen[0].second);
  CHECK(seen[3].second != seen[2].second);
  options.hooks = {train::unfreezing({{2, "layer4"}})};
  CHECK_THROWS_WITH(train::fit(model, points, options),
                    Catch::Contains("train::unfreezing: the model has no part and no parameter 'layer4'"));
}

TEST_CASE("fit: a run with hooks and metrics in pieces gives the numbers of a whole one, bit for bit") {
  const auto points = make_points(53), validation = make_points(20, 1);
  struct Stop {};
  struct Seen {
    std::vector<double> losses;
    std::vector<std::vector<double>> records;
    std::vector<std::vector<float>> weights, averages;
    double rate = 0;
  };
  const auto run = [&](Seen& seen, const fs::path& folder, std::int64_t end, std::uint64_t seed) {
    auto model = make_model(seed);
    auto options = quiet(model, 5);
    optim::EMA average(model, 0.8);
    options.validation = validation;
    options.metrics = {metrics::F1(3), metrics::Perplexity()};
    options.hooks = {train::ema(average), train::accumulation(2), train::early_stopping({.monitor = {"f1", true}, .patience = 9}),
                     train::reduce_on_plateau({"train_loss"}, {.factor = 0.5, .patience = 0, .threshold = 0.2}),
                     train::unfreezing({{3, "0"}})};
    options.checkpoint = folder;
    options.checkpoint_steps = 3;
    options.resume = true;
    options.on_start = [&](std::int64_t steps, std::int64_t epochs) {
      seen.losses.resize(static_cast<std::size_t>(steps));
      seen.records.resize(static_cast<std::size_t>(epochs));
    };
    options.on_step = [&](std::int64_t step, double loss) {
      seen.losses.push_back(loss);
      if (step >= end) throw Stop{};
    };
    options.on_epoch = [&](const train::EpochMetrics& m) {
      seen.records.push_back({m.train_loss, m.metrics[0].value, m.metrics[1].value, m.validation->loss,
                              m.validation->metrics[0].value, m.validation->metrics[1].value, options.optimizer.learning_rate()});
    };
    train::fit(model, points, options);
    seen.weights = weights_of(model);
    for (const auto& [name, tensor] : average.values()) seen.averages.push_back(tensor.to_vector<float>());
    seen.rate = options.optimizer.learning_rate();
  };
  const clnet::test::Folder folder;
  Seen whole, pieces;
  run(whole, folder / "whole", 1000, 5);
  REQUIRE(whole.losses.size() == 35);
  std::uint64_t seed = 5;
  for (const std::int64_t end : {4, 8, 13, 23, 34, 1000}) {
    try {
      run(pieces, folder / "pieces", end, seed);
    } catch (const Stop&) {
    }
    seed = 77;
  }
  CHECK(pieces.losses == whole.losses);
  CHECK(pieces.records == whole.records);
  CHECK(pieces.weights == whole.weights);
  CHECK(pieces.averages == whole.averages);
  CHECK(pieces.rate == whole.rate);
  CHECK(whole.rate < 1e-2);

  // Another set of hooks or metrics is another run.
  auto model = make_model();
  auto options = quiet(model, 6);
  options.checkpoint = folder / "whole";
  options.resume = true;
  CHECK_THROWS_WITH(train::fit(model, points, options),
                    Catch::Contains("was made with the hooks ema, accumulation 2, early_stopping, reduce_on_plateau, unfreezing, "
                                    "not none; it goes on only with the same"));
}

TEST_CASE("fit: a hook may stop training after a step, and the checkpoint goes on from there") {
  const auto points = make_points(53);
  const clnet::test::Folder folder;
  struct Stopper : train::Hook {
    std::int64_t at = 10;
    std::string name() const override { return "stopper"; }
    void after_step(train::Run& run) override { run.stop = run.step >= at; }
  };
  const auto whole = [&] {
    auto model = make_model();
    train::fit(model, points, quiet(model, 2));
    return weights_of(model);
  }();
  auto model = make_model();
  auto options = quiet(model, 2);
  const auto stopper = std::make_shared<Stopper>();
  options.hooks = {stopper};
  options.checkpoint = folder.path();
  options.resume = true;
  auto result = train::fit(model, points, options);
  CHECK(result.stopped_early);
  CHECK(result.steps == 10);
  stopper->at = 100;
  result = train::fit(model, points, options);
  CHECK_FALSE(result.stopped_early);
  CHECK(result.steps == 14);
  CHECK(weights_of(model) == whole);
}

TEST_CASE("fit: a step function trains and evaluates models of several inputs and outputs") {
  struct TwoHeads : nn::Module {
    nn::Linear left{2, 8}, right{2, 8}, classes{8, 3}, size{8, 1};
    TwoHeads() {
      add("left", left);
      add("right", right);
      add("classes", classes);
      add("size", size);
    }
    std::pair<Tensor, Tensor> operator()(const Tensor& a, const Tensor& b) const {
      return called(*this, [&](auto& self) {
        const Tensor hidden = relu(self.left(a) + self.right(b));
        return std::pair(self.classes(hidden), self.size(hidden));
      });
    }
  };
  const auto points = make_points(53), validation = make_points(20, 1);
  manual_seed(5);
  TwoHeads model;
  const auto function = [&](nn::Module&, const data::Batch& batch) -> train::Step {
    const auto& x = batch[0];
    const auto [classes, size] = model(slice(x, 1, 0, 2), slice(x, 1, 2, 4));
    const auto target = sum(x, {1}, true);
    return {cross_entropy(classes, batch[1]) + mse_loss(size, target), {classes, size}, {batch[1], target}};
  };
  auto options = quiet(model, 3);
  options.step_function = function;
  options.validation = validation;
  options.metrics = {metrics::Accuracy(),
                     metrics::Mean("mae", [](const Tensor& y, const Tensor& t) { return abs(y - t); }).on(1, 1)};
  const auto result = train::fit(model, points, options);
  CHECK(result.epochs[2].train_loss < result.epochs[0].train_loss);
  const auto& last = *result.epochs[2].validation;
  CHECK(std::isnan(last.accuracy));

  double loss = 0, right = 0, error = 0, count = 0;
  for (const auto& [x, labels] : data::batches(validation, {.batch_size = 7})) {
    const auto n = static_cast<double>(labels.numel());
    const auto [classes, size] = model(slice(x, 1, 0, 2), slice(x, 1, 2, 4));
    const auto target = sum(x, {1}, true);
    loss += n * (cross_entropy(classes, labels) + mse_loss(size, target)).item<double>();
    right += sum(cast(eq(argmax(classes, 1), labels), Dtype::f32)).item<double>();
    error += sum(abs(size - target)).item<double>();
    count += n;
  }
  CHECK(last.loss == Approx(loss / count).epsilon(1e-5));
  CHECK(last.metrics[0].value == right / count);
  CHECK(last.metrics[1].name == "mae");
  CHECK(last.metrics[1].value == Approx(error / count).epsilon(1e-5));

  options.loss = nn::HuberLoss();
  CHECK_THROWS_WITH(train::fit(model, points, options), Catch::Contains("a loss beside a step function"));
  options.loss = nullptr;
  options.step_function = [&](nn::Module&, const data::Batch& batch) -> train::Step { return batch[0]; };
  CHECK_THROWS_WITH(train::fit(model, points, options), Catch::Contains("the step function gave f32[8, 4], expected a loss"));
}

TEST_CASE("fit: hooks see all records at the end, and begin another training anew") {
  struct Watch : train::Hook {
    std::vector<double> losses;
    std::string name() const override { return "watch"; }
    void after_training(train::Run& run) override {
      losses.clear();
      for (const auto& record : run.records) losses.push_back(record.train_loss);
    }
  };
  const auto points = make_points(24), validation = make_points(20, 1);
  const auto watch = std::make_shared<Watch>();
  const auto stopping = train::early_stopping({.patience = 1, .min_delta = 10});
  for (int round = 0; round < 2; ++round) {
    auto model = make_model();
    auto options = quiet(model, 5);
    options.validation = validation;
    options.hooks = {watch, stopping};
    const auto result = train::fit(model, points, options);
    CHECK(result.epochs.size() == 2);
    REQUIRE(watch->losses.size() == 2);
    CHECK(watch->losses[1] == result.epochs[1].train_loss);
  }
}

TEST_CASE("fit: a hook stops training at the loss that it hears of, or before an epoch") {
  struct Stop : train::Hook {
    bool at_loss;
    explicit Stop(bool loss) : at_loss(loss) {}
    std::string name() const override { return "stop"; }
    void on_loss(train::Run& run, std::int64_t, double) override { run.stop = run.stop || at_loss; }
    void before_epoch(train::Run& run) override { run.stop = run.stop || !at_loss; }
  };
  for (const bool at_loss : {true, false}) {
    auto model = make_model();
    auto options = quiet(model, 5);
    options.hooks = {std::make_shared<Stop>(at_loss)};
    const auto result = train::fit(model, make_points(24), options);
    CHECK(result.stopped_early);
    CHECK(result.steps == (at_loss ? 1 : 0));
    CHECK(result.epochs.size() == (at_loss ? 1 : 0));
  }
}
