// train::fit through the API: callbacks, limits, early stopping, interrupts, and the options that it refuses. What a checkpoint
// goes on with is in fit_resume.cpp.
#include <pty.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <thread>

#include "clnet/clnet.h"
#include "tests/models/fit_runs.h"
#include "tests/support/captured.h"
#include "tests/support/temporary.h"

using namespace clnet;
using namespace clnet::test;
namespace fs = std::filesystem;

TEST_CASE("fit: trains, and calls back for every step and epoch in order") {
  const auto points = make_points(60), validation = make_points(30, 1);
  auto model = make_model();
  std::vector<std::int64_t> steps, started;
  std::vector<train::EpochMetrics> epochs;
  double sum = 0;
  train::FitOptions options{.epochs = 8, .batch_size = 16, .optimizer = optim::Adam(model, {.learning_rate = 2e-2})};
  options.validation = validation;
  options.progress = false;
  options.on_start = [&](std::int64_t s, std::int64_t e) { started = {s, e}; };
  options.on_step = [&](std::int64_t step, double loss) {
    steps.push_back(step);
    sum += loss;
  };
  options.on_epoch = [&](const train::EpochMetrics& m) {
    CHECK(steps.size() == static_cast<std::size_t>(m.steps));
    CHECK(m.train_loss == sum / 4);
    sum = 0;
    epochs.push_back(m);
  };
  model.inference();
  const auto result = train::fit(model, points, options);
  CHECK_FALSE(model.training());  // as it was
  CHECK(started == std::vector<std::int64_t>{0, 0});
  CHECK(result.steps == 32);
  CHECK_FALSE(result.interrupted);
  CHECK_FALSE(result.stopped_early);
  REQUIRE(steps.size() == 32);
  for (std::size_t i = 0; i < steps.size(); ++i) CHECK(steps[i] == static_cast<std::int64_t>(i) + 1);
  REQUIRE(epochs.size() == 8);
  REQUIRE(result.epochs.size() == 8);
  CHECK(epochs[7].epoch == 8);
  CHECK(epochs[7].validation->accuracy > 0.7);
  CHECK(epochs[7].train_loss < epochs[0].train_loss);
  CHECK(train::accuracy(model, validation) == epochs[7].validation->accuracy);
  CHECK(train::evaluate(model, validation, 7).loss == Approx(epochs[7].validation->loss).epsilon(1e-5));
}

TEST_CASE("fit and accuracy leave every part in the mode that it was given") {
  const auto points = make_points(24), validation = make_points(12, 1);
  auto model = make_model();
  const auto mean = [&] { return model.parameter("1.running_mean").value().to_vector<float>(); };
  const auto before = mean();
  model.child("1").inference();
  train::FitOptions options{.epochs = 2, .batch_size = 8, .optimizer = optim::SGD(model, {.learning_rate = 1e-2})};
  options.validation = validation;
  options.progress = false;
  train::fit(model, points, options);
  CHECK(mean() == before);
  train::accuracy(model, validation);
  CHECK(model.training());
  CHECK(model.child("3").training());
  CHECK_FALSE(model.child("1").training());

  // A model in inference mode of which nothing is frozen is trained as a whole.
  model.inference();
  const auto said = clnet::test::written_on_stderr([&] { train::fit(model, points, options); });
  CHECK(said ==
        "clnet: train::fit: the whole model is in inference mode: what has trainable parameters is in training mode while it is "
        "trained\n");
  CHECK(mean() != before);
  CHECK_FALSE(model.child("0").training());
}

TEST_CASE("fit leaves frozen parts of a model in inference mode as they are") {
  const auto points = make_points(24);
  // Which parts saw a step in training mode.
  struct Watched : nn::Sequential {
    explicit Watched(const nn::Sequential& parts) : nn::Sequential(parts) {}
    std::vector<bool> trained;
    Tensor forward(const Tensor& x) override {
      trained.clear();
      for (const auto* name : {"0", "0.1", "0.3", "1", "1.1", "1.2"}) trained.push_back(child(name).training());
      return nn::Sequential::forward(x);
    }
  };
  Watched model(nn::Sequential{nn::Sequential{nn::Linear{4, 8}, nn::BatchNorm1d{8}, relu, nn::Dropout{0.5}},
                               nn::Sequential{nn::Linear{8, 8}, nn::Dropout{0.25}, nn::BatchNorm1d{8}, nn::Linear{8, 3}}});
  model.child("0").freeze();
  const auto state_of = [&](const std::string& name) { return model.parameter(name).value().to_vector<float>(); };
  const auto train = [&] {
    train::FitOptions options{.epochs = 2, .batch_size = 8, .optimizer = optim::SGD(model, {.learning_rate = 1e-2})};
    options.progress = false;
    return clnet::test::written_on_stderr([&] { train::fit(model, points, options); });
  };
  const auto frozen_mean = state_of("0.1.running_mean"), mean = state_of("1.2.running_mean"), weight = state_of("1.3.weight");

  model.inference();
  CHECK_THAT(train(), Catch::EndsWith("while it is trained; 2 frozen layers stay in inference mode\n"));
  CHECK(model.trained == std::vector<bool>{false, false, false, true, true, true});
  CHECK(state_of("0.1.running_mean") == frozen_mean);
  CHECK(state_of("1.2.running_mean") != mean);
  CHECK(state_of("1.3.weight") != weight);
  CHECK_FALSE(model.child("1.2").training());

  // One part in training mode says what is meant, whatever the module that holds it is in.
  model.child("1.1").train();
  CHECK(train().empty());
  CHECK(model.trained == std::vector<bool>{false, false, false, false, true, false});
}

TEST_CASE("beside frozen layers, statistics without parameters stay as they are in inference mode") {
  const auto points = make_points(24);
  nn::Sequential model{nn::Linear{4, 4}, nn::BatchNorm1d{4, {.affine = false}}, nn::Linear{4, 3}};
  const auto train = [&] {
    model.inference();
    train::FitOptions options{.batch_size = 8, .optimizer = optim::SGD(model, {.learning_rate = 1e-2}), .progress = false};
    return clnet::test::written_on_stderr([&] { train::fit(model, points, options); });
  };
  const auto mean = [&] { return model.parameter("1.running_mean").value().to_vector<float>(); };
  const auto before = mean();
  model.child("0").freeze();
  CHECK_THAT(train(), Catch::EndsWith("while it is trained; 2 frozen layers stay in inference mode\n"));
  CHECK(mean() == before);
  model.child("0").freeze(false);
  CHECK_THAT(train(), Catch::EndsWith("while it is trained\n"));
  CHECK(mean() != before);
}

TEST_CASE("fit and evaluate name a label of a class that the model does not have") {
  auto points = make_points(24);
  nn::Sequential model{nn::Linear{4, 2}};
  const train::FitOptions options{.batch_size = 8, .optimizer = optim::SGD(model, {}), .progress = false};
  CHECK_THROWS_WITH(train::fit(model, points, options), "train: label 2 of sample 2 is no class, and the model gives 2 classes");
  CHECK_THROWS_WITH(train::evaluate(model, points), Catch::Contains("label 2 of sample 2 is no class"));
  // So does a loop of one's own, and a loss that fit() is given.
  const auto step = [&] {
    for (const auto& [x, y] : data::batches(points, {.batch_size = 8})) cross_entropy(model(x), y).eval();
  };
  CHECK_THROWS_WITH(step(), "cross_entropy: label 2 of sample 2 is no class: there are 2, from 0, and ignore_index -100");
  train::FitOptions given = options;
  given.loss = [](const Tensor& output, const Tensor& labels) { return cross_entropy(output, labels); };
  CHECK_THROWS_WITH(train::fit(model, points, given), Catch::Contains("is no class"));
  // To a loss of one's own labels may be anything.
  train::FitOptions own = options;
  own.loss = [](const Tensor& output, const Tensor& labels) {
    return mse_loss(output, stack({cast(labels, Dtype::f32), cast(labels, Dtype::f32)}, 1));
  };
  own.validation = points;
  CHECK_NOTHROW(train::fit(model, points, own));
  // Classes of which there is no sample do no harm.
  for (auto& label : points.labels) label = label % 2;
  CHECK_NOTHROW(train::fit(model, points, options));
}

TEST_CASE("fit: on a terminal the bar is as long as the steps of its epoch, and tells no speed of the first step") {
  const auto points = make_points(80);
  auto model = make_model();
  int shown = -1, screen = -1;
  REQUIRE(::openpty(&shown, &screen, nullptr, nullptr, nullptr) == 0);
  std::fflush(stderr);
  const int before = ::dup(STDERR_FILENO);
  ::dup2(screen, STDERR_FILENO);
  train::fit(model, points, {.steps = 12, .batch_size = 8, .optimizer = optim::SGD(model, {})});
  std::fflush(stderr);
  ::dup2(before, STDERR_FILENO);
  ::close(before);
  ::close(screen);
  std::string said;
  char buffer[4096];
  for (ssize_t count; (count = ::read(shown, buffer, sizeof buffer)) > 0;) said.append(buffer, static_cast<std::size_t>(count));
  ::close(shown);
  INFO(said);
  const auto first = said.substr(0, said.find('\r', 1));
  CHECK_THAT(first, Catch::Contains("epoch 1/2 [") && Catch::Contains(" 1/10  loss "));
  CHECK_THAT(first, !Catch::Contains("ETA") && !Catch::Contains("images/s"));
  CHECK_THAT(said, Catch::Contains("epoch 2/2 [") && Catch::Contains(" 2/2  loss ") && Catch::Contains("images/s  ETA"));
}

TEST_CASE("fit: the schedule is asked for each step, and a number of steps ends it") {
  const auto points = make_points(24);
  auto model = make_model();
  std::vector<std::int64_t> asked;
  train::FitOptions options{.epochs = 1, .steps = 7, .batch_size = 8, .optimizer = optim::SGD(model, {})};
  options.progress = false;
  options.schedule = [&](std::int64_t step) {
    asked.push_back(step);
    return 1e-2;
  };
  const auto result = train::fit(model, points, options);
  CHECK(result.steps == 7);
  CHECK(asked == std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6});
  REQUIRE(result.epochs.size() == 3);
  CHECK(result.epochs[2].steps == 7);
  CHECK_FALSE(result.epochs[2].validation);
  CHECK(options.optimizer.learning_rate() == 1e-2);
}

TEST_CASE("fit: a schedule of the momentum does what setting it before each step does") {
  const auto points = make_points(24);
  const auto rate = optim::one_cycle(0.05, 6), momentum = optim::one_cycle_momentum(6);
  const auto trained = [&](const optim::Schedule& scheduled) {
    manual_seed(7);
    auto model = make_model();
    optim::SGD sgd(model, {.momentum = 0.95});
    train::FitOptions options{.epochs = 2, .batch_size = 8, .optimizer = sgd, .schedule = rate, .momentum = scheduled};
    options.progress = false;
    train::fit(model, points, options);
    return std::pair(model.state_dict().front().second.to_vector<float>(), *sgd.momentum());
  };
  std::vector<std::int64_t> asked;
  const auto scheduled = trained([&](std::int64_t step) {
    asked.push_back(step);
    return momentum(step);
  });
  CHECK(asked == std::vector<std::int64_t>{0, 1, 2, 3, 4, 5});
  CHECK(scheduled.second == momentum(5));
  manual_seed(7);
  auto model = make_model();
  optim::SGD sgd(model, {.momentum = 0.95});
  model.train();
  for (std::int64_t epoch = 0, step = 0; epoch < 2; ++epoch)
    for (const auto& [x, labels] :
         data::batches(points, {.batch_size = 8, .shuffle = true, .epoch = static_cast<std::uint64_t>(epoch)})) {
      sgd.set_learning_rate(rate(step));
      sgd.set_momentum(momentum(step++));
      sgd.step(cross_entropy(model(x), labels));
    }
  CHECK(model.state_dict().front().second.to_vector<float>() == scheduled.first);
  CHECK(trained(nullptr).first != scheduled.first);

  train::FitOptions none{.batch_size = 8, .optimizer = optim::SGD(model, {}), .momentum = momentum};
  CHECK_THROWS_WITH(train::fit(model, points, none), Catch::Contains("the optimizer has none that could be set"));
}

TEST_CASE("fit: stops early when the validation loss no longer improves") {
  const auto points = make_points(24), validation = make_points(12, 1);
  auto model = make_model();
  train::FitOptions options{.epochs = 50, .batch_size = 8, .optimizer = optim::SGD(model, {.learning_rate = 0})};
  options.validation = validation;
  options.early_stopping = 3;
  options.progress = false;
  // Running statistics still move, so the loss is one that cannot improve.
  options.loss = [](const Tensor& output, const Tensor&) { return sum(output * 0.0) + 1.0; };
  const auto result = train::fit(model, points, options);
  CHECK(result.stopped_early);
  CHECK(result.epochs.size() == 4);
}

TEST_CASE("fit: in f16 and bf16 weights stay f32, losses are close, and resuming gives the same bits") {
  const auto points = make_points(53), validation = make_points(20, 1);
  const auto exact = record(points, validation, {.epochs = 4});
  for (const auto precision : {Dtype::f16, Dtype::bf16}) {
    train::FitOptions options{.epochs = 4};
    options.precision = precision;
    const auto whole = record(points, validation, options);
    REQUIRE(whole.losses.size() == exact.losses.size());
    for (std::size_t i = 0; i < whole.losses.size(); ++i) CHECK(whole.losses[i] == Approx(exact.losses[i]).margin(0.05));
    CHECK(whole.losses != exact.losses);
    CHECK(whole.epochs.back().validation->loss == Approx(exact.epochs.back().validation->loss).margin(0.05));
    CHECK(whole.epochs.back().validation->loss != exact.epochs.back().validation->loss);

    const clnet::test::Folder folder;
    options.checkpoint = folder.path();
    options.resume = true;
    options.epochs = 2;
    const auto first = record(points, validation, options);
    options.epochs = 4;
    for (const auto other : {Dtype::f32, Dtype::f16, Dtype::bf16}) {
      if (other == precision) continue;
      options.precision = other;
      CHECK_THROWS_WITH(record(points, validation, options),
                        Catch::Contains(std::string("was made with precision ") + (precision == Dtype::f16 ? "f16" : "bf16")));
    }
    options.precision = precision;
    const auto second = record(points, validation, options);
    auto losses = first.losses;
    losses.insert(losses.end(), second.losses.begin(), second.losses.end());
    CHECK(losses == whole.losses);
    CHECK(second.weights == whole.weights);
  }
}

TEST_CASE("fit: f16 goes on after a step that was skipped, with a loss scale of its own or the user's") {
  const auto points = make_points(48);
  auto model = make_model();
  train::FitOptions options{.epochs = 2, .batch_size = 8, .optimizer = optim::Adam(model)};
  options.precision = Dtype::f16;
  options.progress = false;
  train::fit(model, points, options);
  CHECK(options.optimizer.loss_scale().item<float>() == 65536);
  // Gradients of a scale as large as this overflow in f16; the loss itself does not.
  options.optimizer.set_loss_scale({.initial = 0x1p40});
  const auto result = train::fit(model, points, options);
  CHECK(result.steps == 12);
  CHECK(options.optimizer.loss_scale().item<float>() < 0x1p40F);
  CHECK(options.optimizer.steps_made().item<std::int64_t>() < options.optimizer.steps());
  for (const auto& [name, parameter] : model.parameters()) CHECK(parameter.value().dtype() == Dtype::f32);
}

TEST_CASE("fit: Ctrl-C ends after the step and saves; the handlers are put back") {
  const auto points = make_points(53), validation = make_points(20, 1);
  const auto whole = record(points, validation, {.epochs = 2});
  const clnet::test::Folder folder;
  static int received = 0;
  struct sigaction ours {
  }, old, after;
  ours.sa_handler = [](int) { ++received; };
  REQUIRE(sigaction(SIGTERM, &ours, &old) == 0);
  train::FitOptions options{.epochs = 2};
  options.checkpoint = folder.path();
  options.resume = true;
  const auto first = record(points, validation, options, [](std::int64_t step) {
    if (step == 5) std::raise(SIGTERM);
  });
  CHECK(first.result.interrupted);
  CHECK(first.result.steps >= 5);
  CHECK(received == 0);
  REQUIRE(sigaction(SIGTERM, nullptr, &after) == 0);
  CHECK(after.sa_handler == ours.sa_handler);
  sigaction(SIGTERM, &old, nullptr);

  const auto second = record(points, validation, options);
  CHECK_FALSE(second.result.interrupted);
  auto losses = first.losses;
  losses.insert(losses.end(), second.losses.begin(), second.losses.end());
  CHECK(losses == whole.losses);
  CHECK(second.weights == whole.weights);
}

TEST_CASE("fit: a second signal is the host's, an ignored one stays ignored, and an earlier training is not lost") {
  const auto points = make_points(24);
  static int received = 0;
  struct sigaction ours {
  }, ignored{}, old_int, old_term, found;
  ours.sa_handler = [](int) { ++received; };
  ignored.sa_handler = SIG_IGN;
  REQUIRE(sigaction(SIGTERM, &ours, &old_term) == 0);
  REQUIRE(sigaction(SIGINT, &ignored, &old_int) == 0);
  auto model = make_model();
  train::FitOptions options{.epochs = 1, .batch_size = 4, .optimizer = optim::Adam(model)};
  options.progress = false;
  options.on_step = [&](std::int64_t step, double) {
    if (step == 1) std::raise(SIGINT);
  };
  CHECK_FALSE(train::fit(model, points, options).interrupted);
  REQUIRE(sigaction(SIGINT, nullptr, &found) == 0);
  CHECK(found.sa_handler == SIG_IGN);

  options.on_step = nullptr;
  int calls = 0;
  options.loss = [&](const Tensor& output, const Tensor& labels) {
    if (calls++ == 0) {
      std::raise(SIGTERM);
      // Longer than a first training would be waited for.
      std::this_thread::sleep_for(std::chrono::milliseconds(900));
    }
    return cross_entropy(output, labels);
  };
  const auto busy = train::fit(model, points, options);
  CHECK(busy.interrupted);
  CHECK(received == 0);

  options.loss = nullptr;
  options.on_step = [&](std::int64_t, double) {
    std::raise(SIGTERM);
    std::raise(SIGTERM);
  };
  CHECK(train::fit(model, points, options).interrupted);
  CHECK(received >= 1);
  REQUIRE(sigaction(SIGTERM, nullptr, &found) == 0);
  CHECK(found.sa_handler == ours.sa_handler);
  sigaction(SIGINT, &old_int, nullptr);
  sigaction(SIGTERM, &old_term, nullptr);
}

TEST_CASE("fit: refuses what makes no sense, before training") {
  const auto points = make_points(12), empty = make_points(0);
  auto model = make_model(), other = make_model();
  const clnet::test::Folder folder;
  const auto attempt = [&](const std::function<void(train::FitOptions&)>& change, const data::Dataset& dataset) {
    train::FitOptions options{.epochs = 1, .batch_size = 4, .optimizer = optim::Adam(model)};
    options.progress = false;
    options.on_step = [](std::int64_t, double) { FAIL("a step was made"); };
    change(options);
    train::fit(model, dataset, options);
  };
  using Options = train::FitOptions;
  CHECK_THROWS_AS(attempt([](Options& o) { o.optimizer = {}; }, points), Error);
  CHECK_THROWS_AS(attempt([&](Options& o) { o.optimizer = optim::Adam(other); }, points), Error);
  CHECK_THROWS_AS(attempt([](Options& o) { o.epochs = 0; }, points), Error);
  CHECK_THROWS_AS(attempt([](Options& o) { o.batch_size = 0; }, points), Error);
  CHECK_THROWS_AS(attempt([](Options& o) { o.steps = -1; }, points), Error);
  CHECK_THROWS_AS(attempt([](Options& o) { o.precision = Dtype::i8; }, points), Error);
  CHECK_THROWS_AS(attempt([](Options& o) { o.early_stopping = 1; }, points), Error);
  CHECK_THROWS_AS(attempt([](Options& o) { o.resume = true; }, points), Error);
  CHECK_THROWS_AS(attempt([&](Options& o) { o.validation = empty; }, points), Error);
  CHECK_THROWS_AS(attempt([](Options&) {}, empty), Error);
  folder.write("file", "");
  CHECK_THROWS_AS(attempt([&](Options& o) { o.checkpoint = folder / "file"; }, points), FileError);
  CHECK_THROWS_AS(attempt([&](Options& o) { o.checkpoint = folder / "file/run"; }, points), FileError);
  CHECK_THROWS_AS(train::evaluate(model, empty), Error);
}

TEST_CASE("fit: a loss that is not a number ends it, naming the step") {
  const auto points = make_points(24);
  auto model = make_model();
  int calls = 0;
  const clnet::test::Folder folder;
  train::FitOptions options{.epochs = 5, .batch_size = 8, .optimizer = optim::Adam(model)};
  options.progress = false;
  options.checkpoint = folder.path();
  options.loss = [&](const Tensor& output, const Tensor& labels) {
    auto loss = cross_entropy(output, labels);
    return ++calls == 2 ? loss * std::numeric_limits<double>::quiet_NaN() : loss;
  };
  CHECK_THROWS_WITH(train::fit(model, points, options), Catch::Contains("nan at step 2"));
  CHECK_FALSE(fs::exists(folder / "checkpoint.safetensors"));
}
