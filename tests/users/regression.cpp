// Fits a small network to numbers of my own (two features, some noise), watches a validation set, predicts new points,
// and checks that the saved weights predict the same in another network.
#include <clnet/clnet.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <random>
#include <string>
#include <vector>

using namespace clnet;

static float truth(float a, float b) { return 3 * std::abs(a) - 2 * b + 1; }
static const char* yes(bool b) { return b ? "yes" : "no"; }

static data::ArrayDataset measure(int count, std::mt19937& random) {
  std::uniform_real_distribution<float> place(-2, 2), noise(-0.1f, 0.1f);
  std::vector<float> features, prices;
  for (int i = 0; i < count; ++i) {
    const float a = place(random), b = place(random);
    features.insert(features.end(), {a, b});
    prices.push_back(truth(a, b) + noise(random));
  }
  return data::from_arrays(features, {2}, prices, Shape{1});
}

static nn::Sequential network() { return nn::Sequential{nn::Linear{2, 32}, relu, nn::Linear{32, 1}}; }

int main() {
  manual_seed(1);
  std::mt19937 random(1);
  const auto training = measure(512, random), validation = measure(128, random);
  auto model = network();
  std::cout << "parameters: " << model.parameter_count() << '\n';

  const auto before = train::evaluate(model, validation);
  int steps_seen = 0;
  const auto result = train::fit(model, training,
                                 {.epochs = 20,
                                  .batch_size = 32,
                                  .optimizer = optim::Adam{model, {.learning_rate = 0.03}},
                                  .validation = validation,
                                  .on_step = [&](std::int64_t, double) { ++steps_seen; },
                                  .progress = false});
  const auto& last = result.epochs.back();
  std::cout << "epochs: " << result.epochs.size() << ", steps: " << result.steps << ", told: " << steps_seen << '\n'
            << "training loss fell: " << yes(last.train_loss < 0.1 * result.epochs.front().train_loss) << '\n'
            << "validated each epoch: " << yes(last.validation.has_value()) << '\n'
            << "validation loss fell: " << yes(last.validation->loss < 0.02 * before.loss) << '\n'
            << "accuracy of numbers is no number: " << yes(std::isnan(last.validation->accuracy)) << '\n'
            << "validated again, the same: "
            << yes(std::abs(train::evaluate(model, validation).loss - last.validation->loss) < 1e-6) << '\n';

  model.inference();
  const std::vector<float> points{0, 0, 1, 1, -1, 1, 1, -1, -1.5f, 0.25f};
  const Tensor x = Tensor::from(points, {5, 2});
  const Tensor y = model(x);
  const auto predictions = y.to_vector<float>();
  std::cout << "predictions: " << y.shape() << '\n';
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    const float a = points[2 * i], b = points[2 * i + 1];
    std::cout << "  " << a << ", " << b << ": near " << truth(a, b) << ": " << yes(std::abs(predictions[i] - truth(a, b)) < 0.5f)
              << '\n';
  }

  const auto file = std::filesystem::temp_directory_path() / ("regression-" + std::to_string(getpid()) + ".safetensors");
  io::save_safetensors(file, model.state_dict());
  auto loaded = network();
  loaded.inference();
  std::cout << "another network predicts the same: " << yes(loaded(x).to_vector<float>() == predictions) << '\n';
  loaded.load_state_dict(io::load_safetensors(file).tensors);
  std::filesystem::remove(file);
  std::cout << "with the saved weights: " << yes(loaded(x).to_vector<float>() == predictions) << '\n';
  for (const auto& [name, value] : loaded.state_dict()) std::cout << "  " << name << ' ' << value.spec() << '\n';
}
