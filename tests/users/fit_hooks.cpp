// The hooks of fit(), each against plain loops over recorded numbers: averages of weights, accumulated gradients, early stopping,
// a rate that falls on a plateau, and parts that are frozen at first.
#include <clnet/clnet.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <random>
#include <string>
#include <vector>

using namespace clnet;

namespace {

void check(const std::string& name, bool right) { std::cout << name << ": " << (right ? "right" : "WRONG") << '\n'; }

data::ArrayDataset clouds(int count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> points;
  std::vector<std::int32_t> labels;
  for (int i = 0; i < count; ++i) {
    labels.push_back(i % 3);
    points.push_back(normal(random) + static_cast<float>(i % 3) * 2);
    points.push_back(normal(random) - static_cast<float>(i % 3 == 1) * 3);
  }
  return data::from_arrays(points, {2}, labels, 3);
}

nn::Sequential make_model() {
  manual_seed(4);
  return nn::Sequential{nn::Linear(2, 8), tanh, nn::Linear(8, 3)};
}

std::vector<double> weights(const nn::Module& model) {
  std::vector<double> all;
  for (const auto& [name, value] : model.state_dict())
    for (double v : value.to_vector<double>()) all.push_back(v);
  return all;
}

bool close(const std::vector<double>& a, const std::vector<double>& b, double tolerance) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](double x, double y) { return std::abs(x - y) <= tolerance; });
}

/// Remembers weights and rates.
struct Recorder : train::Hook {
  std::vector<std::vector<double>> after_steps, after_epochs;
  std::vector<double> rates, losses;
  std::string name() const override { return "recorder"; }
  bool only_observes() const override { return true; }
  void after_step(train::Run& run) override { after_steps.push_back(weights(run.model)); }
  void after_epoch(train::Run& run) override {
    after_epochs.push_back(weights(run.model));
    rates.push_back(run.optimizer.learning_rate());
    losses.push_back(run.record->validation ? run.record->validation->loss : run.record->train_loss);
  }
};

train::FitOptions options_for(nn::Sequential& model, double rate, std::int64_t epochs, std::int64_t batch_size) {
  train::FitOptions options{.epochs = epochs, .batch_size = batch_size, .optimizer = optim::SGD(model, rate)};
  options.progress = false;
  return options;
}

}  // namespace

int main() {
  const auto training = clouds(120, 1), test = clouds(60, 2);

  {  // Averages follow their formula, and are what is evaluated.
    auto model = make_model();
    auto wanted = weights(model);
    optim::EMA average(model, 0.9);
    const auto recorder = std::make_shared<Recorder>();
    auto options = options_for(model, 0.1, 3, 20);
    options.validation = test;
    options.hooks = {train::ema(average), recorder};
    const auto result = train::fit(model, training, options);
    for (const auto& step : recorder->after_steps)
      for (std::size_t i = 0; i < wanted.size(); ++i) wanted[i] = 0.9 * wanted[i] + 0.1 * step[i];
    check("the model keeps its own weights", weights(model) == recorder->after_steps.back());
    average.swap();
    check("averages", close(weights(model), wanted, 1e-5));
    check("validation with averages", std::abs(train::evaluate(model, test).loss - result.epochs.back().validation->loss) < 1e-5);
  }
  {  // Four batches of 10 are one of 40.
    auto model = make_model(), other = make_model();
    auto options = options_for(model, 0.2, 5, 10), large = options_for(other, 0.2, 5, 40);
    options.shuffle = large.shuffle = false;
    options.hooks = {train::accumulation(4)};
    const auto result = train::fit(model, training, options);
    train::fit(other, training, large);
    check("accumulation", close(weights(model), weights(other), 1e-5) && result.steps == 60);
  }
  {  // A rate that is far too high: the loss goes up and down, and the best weights return.
    auto model = make_model();
    const auto recorder = std::make_shared<Recorder>();
    auto options = options_for(model, 3, 40, 20);
    options.validation = test;
    options.hooks = {train::early_stopping({.monitor = {"loss"}, .patience = 3}), recorder};
    const auto result = train::fit(model, training, options);
    const auto best = std::min_element(recorder->losses.begin(), recorder->losses.end()) - recorder->losses.begin();
    check("stopped early", result.stopped_early && static_cast<std::ptrdiff_t>(result.epochs.size()) == best + 4);
    check("the best weights", weights(model) == recorder->after_epochs[static_cast<std::size_t>(best)]);
  }
  {  // ReduceLROnPlateau by hand.
    auto model = make_model();
    const auto recorder = std::make_shared<Recorder>();
    auto options = options_for(model, 3, 20, 20);
    options.validation = test;
    options.hooks = {recorder, train::reduce_on_plateau({"loss"}, {.factor = 0.5, .patience = 1})};
    train::fit(model, training, options);
    double rate = 3, lowest = INFINITY;
    int bad = 0;
    bool right = recorder->rates.back() < 3;
    for (std::size_t i = 0; i < recorder->losses.size(); ++i) {
      const bool better = recorder->losses[i] < lowest * (1 - 1e-4);
      bad = better ? 0 : bad + 1;
      if (better) lowest = recorder->losses[i];
      if (bad > 1) {
        rate *= 0.5;
        bad = 0;
      }
      right = right && std::abs(recorder->rates[i] - rate) < 1e-9;
    }
    check("plateau", right);
  }
  {  // The first layer begins with epoch 3.
    auto model = make_model();
    const auto before = weights(model);
    const auto recorder = std::make_shared<Recorder>();
    auto options = options_for(model, 0.1, 4, 20);
    options.hooks = {train::unfreezing({{3, "0"}}), recorder};
    train::fit(model, training, options);
    const auto first_layer = [&](const std::vector<double>& all) { return std::vector<double>(all.begin(), all.begin() + 24); };
    check("frozen for two epochs",
          first_layer(recorder->after_epochs[1]) == first_layer(before) && recorder->after_epochs[1].back() != before.back());
    check("then trained", first_layer(recorder->after_epochs[2]) != first_layer(before));
  }
  try {
    auto model = make_model();
    auto options = options_for(model, 0.1, 1, 20);
    options.hooks = {train::early_stopping({.monitor = {"f1", true}})};
    train::fit(model, training, options);
  } catch (const Error& error) {
    std::cout << "refused: " << error.what() << '\n';
  }
}
