// A loop of my own that writes checkpoints of all that it needs: model, optimizer, averages, schedule, metric, best loss and
// place. It stops in the middle of an epoch, and new objects go on from the file. Losses and weights are those of a run without a
// stop, to the bit, although dropout and batch normalization take part.
#include <clnet/clnet.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <random>
#include <string>
#include <vector>

using namespace clnet;

namespace {

const char* yes(bool b) { return b ? "yes" : "no"; }

data::ArrayDataset rings() {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> angle(0, 6.2831853F), width(0, 0.5F);
  std::vector<float> points;
  std::vector<std::int32_t> labels;
  for (int i = 0; i < 200; ++i) {
    const float a = angle(random), r = static_cast<float>(i % 2) + width(random);
    points.push_back(r * std::cos(a));
    points.push_back(r * std::sin(a));
    labels.push_back(i % 2);
  }
  return data::from_arrays(points, {2}, labels, 2);
}

/// All that a run consists of.
struct Trainer {
  nn::Sequential model{nn::Linear(2, 16), nn::BatchNorm1d(16), relu, nn::Dropout(0.2), nn::Linear(16, 2)};
  optim::AdamW adam{model, 1e-2};
  optim::EMA average{model, 0.95};
  optim::Scheduler schedule{adam, optim::warm_up(5, optim::cosine(2e-2, 40))};
  metrics::Accuracy accuracy;
  std::int64_t epoch = 0, batch = 0;
  double lowest = INFINITY;

  /// Goes on for `count` steps. Returns their losses.
  std::vector<double> run(const data::Dataset& dataset, int count) {
    std::vector<double> losses;
    while (count > 0) {
      const data::BatchOptions options{
          .batch_size = 20, .shuffle = true, .epoch = static_cast<std::uint64_t>(epoch), .start = batch};
      for (const auto& [x, y] : data::batches(dataset, options)) {
        const Tensor output = model(x);
        const double loss = adam.step(cross_entropy(output, y), accuracy.update(output, y)).item<double>();
        average.update();
        schedule.step();
        losses.push_back(loss);
        lowest = std::min(lowest, loss);
        ++batch;
        if (--count == 0) break;
      }
      if (batch == 10) {
        batch = 0;
        ++epoch;
        accuracy.reset();
      }
    }
    return losses;
  }
  void save(const std::filesystem::path& file) const {
    io::save_checkpoint(file,
                        {{"model", model},
                         {"optimizer", adam},
                         {"average", average},
                         {"schedule", schedule},
                         {"accuracy", accuracy},
                         {"epoch", epoch},
                         {"batch", batch},
                         {"lowest", lowest}},
                        {{"comment", "rings"}});
  }
  std::map<std::string, std::string> load(const std::filesystem::path& file) {
    return io::load_checkpoint(file, {{"model", model},
                                      {"optimizer", adam},
                                      {"average", average},
                                      {"schedule", schedule},
                                      {"accuracy", accuracy},
                                      {"epoch", epoch},
                                      {"batch", batch},
                                      {"lowest", lowest}});
  }
};

bool same(const io::StateDict& a, const io::StateDict& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return x.first == y.first && equal(x.second, y.second); });
}

}  // namespace

int main() {
  const auto file = std::filesystem::temp_directory_path() / ("own-loop-" + std::to_string(getpid()) + ".safetensors");
  const auto dataset = rings();

  manual_seed(11);
  Trainer straight;
  const auto losses = straight.run(dataset, 36);

  manual_seed(11);
  Trainer stopped;
  const auto first = stopped.run(dataset, 17);
  stopped.save(file);
  std::cout << "the first 17 losses are the same: " << yes(std::equal(first.begin(), first.end(), losses.begin())) << '\n';

  manual_seed(99);
  Trainer resumed;
  const auto metadata = resumed.load(file);
  std::cout << metadata.at("comment") << ", epoch " << resumed.epoch << ", batch " << resumed.batch << ", step "
            << resumed.schedule.steps() << '\n';
  const auto rest = resumed.run(dataset, 19);
  std::cout << "the others, too: " << yes(std::equal(rest.begin(), rest.end(), losses.begin() + 17, losses.end())) << '\n';
  std::cout << "weights and statistics: " << yes(same(resumed.model.state_dict(), straight.model.state_dict())) << '\n';
  std::cout << "optimizer: " << yes(same(resumed.adam.state_dict(), straight.adam.state_dict())) << '\n';
  std::cout << "averages: " << yes(same(resumed.average.values(), straight.average.values())) << '\n';
  std::cout << "accuracy: " << yes(resumed.accuracy.value() == straight.accuracy.value()) << '\n';
  std::cout << "lowest loss: "
            << yes(resumed.lowest == straight.lowest && straight.lowest == *std::min_element(losses.begin(), losses.end()))
            << '\n';
  std::cout << "rate of a cosine: "
            << yes(std::abs(straight.adam.learning_rate() - 1e-2 * (1 + std::cos(3.141592653589793 * 36 / 40))) < 1e-12) << '\n';

  // A part of the file, and what does not fit.
  nn::Sequential other{nn::Linear(2, 16), nn::BatchNorm1d(16), relu, nn::Dropout(0.2), nn::Linear(16, 2)};
  io::load_checkpoint(file, {{"model", other}}, {.some_parts = true, .random_state = false});
  std::cout << "the model alone: " << yes(same(other.state_dict(), stopped.model.state_dict())) << '\n';
  nn::Linear small(2, 2);
  try {
    io::load_checkpoint(file, {{"model", small}}, {.some_parts = true});
  } catch (const FileError& error) {
    std::cout << "refused, naming the part: " << yes(std::string(error.what()).find("model") != std::string::npos) << '\n';
  }
  try {
    io::load_checkpoint(file, {{"model", other}});
  } catch (const FileError& error) {
    std::cout << "refused, naming a part that nobody asked for: "
              << yes(std::string(error.what()).find("accuracy") != std::string::npos) << '\n';
  }
  std::filesystem::remove(file);
}
