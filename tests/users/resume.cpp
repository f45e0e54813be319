// Train for two epochs with checkpoints, go on to five in another model, as after a restart, and compare with five epochs in one
// go: dropout and shuffling go on, too.
#include <clnet/clnet.h>
#include <unistd.h>

#include <iostream>
#include <random>

using namespace clnet;

namespace {

const char* yes(bool b) { return b ? "yes" : "no"; }

data::ArrayDataset two_clouds() {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> points;
  std::vector<std::int32_t> labels;
  for (int i = 0; i < 100; ++i) {
    labels.push_back(i % 2);
    for (int k = 0; k < 2; ++k) points.push_back(normal(random) + (i % 2 ? 2.0F : -2.0F));
  }
  return data::from_arrays(points, {2}, labels, 2);
}

nn::Sequential make_model(std::uint64_t seed) {
  manual_seed(seed);
  return nn::Sequential{nn::Linear{2, 16}, relu, nn::Dropout{0.2}, nn::Linear{16, 2}};
}

train::FitResult fit(const char* name, nn::Sequential& model, const data::Dataset& dataset, train::FitOptions options) {
  std::cout << name << ":";
  options.batch_size = 25;
  options.optimizer = optim::Adam{model, {.learning_rate = 0.05}};
  options.progress = false;
  options.on_start = [](auto steps, auto epochs) { std::cout << " from step " << steps << ", epoch " << epochs << ';'; };
  options.on_epoch = [](const train::EpochMetrics& m) { std::cout << " epoch " << m.epoch << " at step " << m.steps << ';'; };
  const auto result = train::fit(model, dataset, options);
  std::cout << ' ' << result.epochs.size() << " epochs, " << result.steps << " steps\n";
  return result;
}

bool equal_states(const nn::Module& a, const nn::Module& b) {
  const auto x = a.state_dict(), y = b.state_dict();
  for (std::size_t i = 0; i < x.size(); ++i)
    if (x[i].first != y[i].first || x[i].second.to_vector<float>() != y[i].second.to_vector<float>()) return false;
  return x.size() == y.size();
}

}  // namespace

int main() {
  const auto folder = std::filesystem::temp_directory_path() / ("resume-" + std::to_string(getpid()));
  std::filesystem::remove_all(folder);
  const auto dataset = two_clouds();

  auto straight = make_model(5);
  fit("straight", straight, dataset, {.epochs = 5});
  auto stopped = make_model(5);
  fit("stopped", stopped, dataset, {.epochs = 2, .checkpoint = folder, .resume = true});
  std::cout << "a checkpoint: " << yes(exists(folder / "checkpoint.safetensors")) << '\n';
  std::cout << "stopped equals straight: " << yes(equal_states(stopped, straight)) << '\n';

  auto resumed = make_model(99);  // other weights and random numbers, which the checkpoint replaces
  const auto result = fit("resumed", resumed, dataset, {.epochs = 5, .checkpoint = folder, .resume = true});
  std::cout << "resumed equals straight: " << yes(equal_states(resumed, straight)) << '\n';
  std::cout << "loss below 0.2: " << yes(result.epochs.back().train_loss < 0.2) << '\n';
  std::cout << "accuracy above 0.95: " << yes(train::accuracy(resumed, dataset) > 0.95) << '\n';

  // Nothing is left to do.
  fit("again", resumed, dataset, {.epochs = 5, .checkpoint = folder, .resume = true});
  std::cout << "again equals straight: " << yes(equal_states(resumed, straight)) << '\n';

  // Another seed is another run.
  try {
    auto other = make_model(5);
    fit("other seed", other, dataset, {.epochs = 6, .seed = 1, .checkpoint = folder, .resume = true});
  } catch (const FileError& error) {
    std::cout << " refused, naming the file: " << yes(std::string(error.what()).find(folder.string()) != std::string::npos)
              << ", and the seed: " << yes(std::string(error.what()).find("seed") != std::string::npos) << '\n';
  }
  std::filesystem::remove_all(folder);
}
