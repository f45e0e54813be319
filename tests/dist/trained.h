// A small training of several ranks, and what is compared. Programs of tests/dist/run.sh use nothing but the public headers.
#pragma once

#include <clnet/clnet.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace clnet::test {

using dist::Group;

inline std::string mark;  ///< no other job has it

inline void require(bool holds, const std::string& what) {
  if (!holds) throw Error("test: " + what);
}
inline void require_near(double found, double expected, double most, const std::string& what) {
  require(std::fabs(found - expected) <= most, what + ": " + std::to_string(found) + ", not " + std::to_string(expected));
}

/// A number of a rank and an element.
inline float number(int rank, std::int64_t at) {
  return static_cast<float>(std::sin(1.0 + rank * 12.9898 + static_cast<double>(at) * 0.78233));
}
inline std::vector<float> numbers(int rank, std::int64_t count) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(number(rank, i));
  return values;
}

struct Net : nn::Module {
  nn::Linear first{12, 16}, last{16, 3};
  nn::Dropout dropout{0.25};
  nn::BatchNorm1d norm;

  explicit Net(bool with_norm = false, const std::optional<Group>& group = {})
      : norm(16, {.group = group}), with_norm_(with_norm) {
    add("first", first);
    add("dropout", dropout);
    add("last", last);
    if (with_norm) add("norm", norm);
  }
  Tensor forward(const Tensor& x) override {
    const Tensor h = first(x);
    return last(dropout(relu(with_norm_ ? norm(h) : h)));
  }

 private:
  bool with_norm_;
};

/// 70 samples: batches of 16 leave one of 6. Labels of -100 do not count.
inline data::ArrayDataset samples(std::int64_t labels) {
  std::vector<std::int32_t> classes;
  for (int i = 0; i < 70 * labels; ++i) classes.push_back(labels > 1 && i % 3 == 0 ? -100 : (i * 7 + i / 5) % 3);
  if (labels == 1) return data::from_arrays(numbers(3, 70 * 12), {12}, classes, 3);
  return data::from_arrays(numbers(3, 70 * 12 * labels), {labels, 12}, classes, {labels}, 3);
}

struct Trained {
  std::vector<double> losses, weights;
  train::FitResult result;
};

/// A training from the same beginning each time.
inline Trained trained(const std::optional<Group>& group, std::int64_t labels, train::FitOptions options = {},
                       bool with_norm = false, bool over_ranks = false) {
  manual_seed(11);
  Net model(with_norm, over_ranks ? group : std::nullopt);
  const bool has_data = !options.scatter_data || group->rank() == 0;
  const auto set = has_data ? samples(labels) : data::ArrayDataset(), test = has_data ? samples(labels) : data::ArrayDataset();
  // Batch norm takes the bias before it away: its gradient is rounding, which Adam would make large.
  optim::Optimizer optimizer = optim::Adam(model, 0.02);
  if (with_norm) optimizer = optim::SGD(model, {.learning_rate = 0.1, .momentum = 0.9});
  Trained made;
  options.steps = options.steps == 0 ? 12 : options.steps;
  options.batch_size = 16;
  options.optimizer = optimizer;
  options.validation = test;
  options.metrics = {metrics::Accuracy()};
  options.seed = 5;
  options.progress = false;
  options.group = group;
  options.on_step = [&](std::int64_t, double loss) { made.losses.push_back(loss); };
  made.result = train::fit(model, set, options);
  for (const auto& [name, parameter] : model.parameters())
    for (const auto value : parameter.value().to_vector<float>()) made.weights.push_back(value);
  return made;
}

inline void require_same(const Trained& found, const Trained& expected, double most, bool has_losses, const std::string& what) {
  require(found.weights.size() == expected.weights.size(), what + ": as many weights");
  for (std::size_t i = 0; i < found.weights.size(); ++i)
    require_near(found.weights[i], expected.weights[i], most, what + ": a weight");
  require(!has_losses || found.losses.size() == expected.losses.size(), what + ": as many losses");
  for (std::size_t i = 0; has_losses && i < found.losses.size(); ++i)
    require_near(found.losses[i], expected.losses[i], most, what + ": a loss");
  require(found.result.epochs.size() == expected.result.epochs.size(), what + ": as many epochs");
  for (std::size_t i = 0; i < found.result.epochs.size(); ++i) {
    const auto &one = found.result.epochs[i], &other = expected.result.epochs[i];
    require_near(one.train_loss, other.train_loss, most, what + ": training loss");
    require_near(one.validation->loss, other.validation->loss, most, what + ": validation loss");
    require_near(one.validation->accuracy, other.validation->accuracy, most, what + ": accuracy");
    require_near(one.metrics[0].value, other.metrics[0].value, most, what + ": a metric");
  }
}

using Ways = std::map<std::string, std::function<void(const Group&)>>;

/// The program: one way of a job, and a line of each rank that has gone it.
inline int run_way(int argc, char** argv, const Ways& ways) {
  if (argc < 2 || !ways.contains(argv[1])) {
    std::cerr << "usage: " << argv[0] << " WAY\n";
    return 2;
  }
  try {
    const auto world = dist::init();
    if (argc > 3) mark = argv[3];
    ways.at(argv[1])(world);
    std::cout << "rank " + std::to_string(world.rank()) + ": ok\n" << std::flush;
  } catch (const std::exception& error) {
    std::cerr << std::string("error: ") + error.what() + "\n";
    return 1;
  }
  return 0;
}

}  // namespace clnet::test
