// Accumulated gradients and averaged weights, with a checkpoint: the resumed loop has the same losses, to the bit.
#include <clnet/clnet.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>

using namespace clnet;

struct Training {
  nn::Sequential model{nn::Linear(6, 16), relu, nn::Dropout(0.2), nn::Linear(16, 3)};
  optim::AdamW adam{model, 1e-2};
  optim::EMA average{model, 0.9};
  std::int64_t step = 0;

  std::vector<double> run(std::int64_t until, const data::Dataset& dataset) {
    std::vector<double> losses;
    for (; step < until; ++step) {
      double sum = 0;
      for (const auto& [x, y] :
           data::batches(dataset, {.batch_size = 16, .shuffle = true, .epoch = static_cast<std::uint64_t>(step)}))
        sum += adam.accumulate(cross_entropy(model(x), y) / 4.0).item();
      adam.step();
      average.update();
      losses.push_back(sum);
    }
    return losses;
  }
  void checkpoint(bool load, const std::string& file) {
    if (load)
      io::load_checkpoint(file, {{"model", model}, {"adam", adam}, {"average", average}, {"step", step}});
    else
      io::save_checkpoint(file, {{"model", model}, {"adam", adam}, {"average", average}, {"step", step}});
  }
};

int main() {
  const auto folder = std::filesystem::temp_directory_path() / ("resume-exactly-" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  const std::string file = folder / "run.safetensors";
  manual_seed(2);
  const Tensor x = randn({64, 6});
  const auto dataset = data::from_arrays(x.to_vector<float>(), {6}, x.narrow(1, 0, 3).argmax(1).to_vector<std::int32_t>(), 3);

  Training first;
  const auto start = first.model.parameter("0.bias").value().to_vector<float>();
  first.run(1, dataset);
  const auto moved = first.model.parameter("0.bias").value().to_vector<float>();
  first.average.swap();  // 0.9 * start + 0.1 * moved
  const auto averaged = first.model.parameter("0.bias").value().to_vector<float>();
  first.average.swap();
  double error = 0;
  for (std::size_t i = 0; i < start.size(); ++i)
    error = std::max(error, std::abs(averaged[i] - (0.9 * start[i] + 0.1 * moved[i])));

  first.run(3, dataset);
  first.checkpoint(false, file);
  const auto expected = first.run(7, dataset);
  Training second;
  second.checkpoint(true, file);
  const auto losses = second.run(7, dataset);
  first.average.swap();
  second.average.swap();
  const bool same =
      losses == expected && equal(first.model.parameter("3.weight").value(), second.model.parameter("3.weight").value());
  std::cout << "the average: " << (error < 1e-6 ? "right" : "WRONG") << '\n';
  std::cout << "resumed to the bit: " << (same && losses.size() == 4 && losses.back() < losses.front() ? "right" : "WRONG")
            << '\n';
  std::filesystem::remove_all(folder);
}
