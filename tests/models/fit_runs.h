// A small training that the tests of train::fit make, and what it says of itself.
#pragma once

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <utility>
#include <vector>

#include "clnet/clnet.h"
#include "tests/support/temporary.h"

namespace clnet::test {

/// Points around three centres.
inline data::ArrayDataset make_points(int count, int salt = 0) {
  std::vector<float> samples;
  std::vector<std::int32_t> labels;
  for (int i = 0; i < count; ++i) {
    const int label = (i + salt) % 3;
    for (int k = 0; k < 4; ++k)
      samples.push_back(static_cast<float>((k == label ? 2.0 : 0.0) + std::sin(i * 12.9898 + k * 78.233 + salt)));
    labels.push_back(label);
  }
  return data::from_arrays(std::move(samples), {4}, std::move(labels), 3);
}

inline nn::Sequential make_model(std::uint64_t seed = 5) {
  manual_seed(seed);
  return nn::Sequential{nn::Linear{4, 16}, nn::BatchNorm1d{16}, relu, nn::Dropout{0.25}, nn::Linear{16, 3}};
}

struct Recorded {
  std::vector<double> losses;
  std::vector<train::EpochMetrics> epochs;
  std::vector<std::vector<float>> weights;
  train::FitResult result;
};

/// What all of these runs have in common.
inline void set_up(train::FitOptions& options, const nn::Module& model, const data::Dataset& validation) {
  options.optimizer = optim::Adam(model, {.learning_rate = 1e-2});
  options.batch_size = 8;
  options.validation = validation;
  options.progress = false;
  options.seed = 3;
}

inline Recorded record(const data::Dataset& points, const data::Dataset& validation, train::FitOptions options,
                       std::function<void(std::int64_t)> on_step = nullptr) {
  auto model = make_model();
  Recorded recorded;
  set_up(options, model, validation);
  options.on_step = [&](std::int64_t step, double loss) {
    recorded.losses.push_back(loss);
    if (on_step) on_step(step);
  };
  options.on_epoch = [&](const train::EpochMetrics& metrics) { recorded.epochs.push_back(metrics); };
  recorded.result = train::fit(model, points, options);
  for (const auto& [name, tensor] : model.state_dict()) recorded.weights.push_back(tensor.to_vector<float>());
  return recorded;
}

/// The checkpoint that a run of one epoch leaves in the folder.
inline std::filesystem::path checkpoint_of_an_epoch(const Folder& folder) {
  train::FitOptions options{.epochs = 1};
  options.checkpoint = folder.path();
  record(make_points(24), make_points(12, 1), options);
  return folder / "checkpoint.safetensors";
}

}  // namespace clnet::test
