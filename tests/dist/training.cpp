// Ranks that compute on a device: `dist_training WAY`. tests/dist/run.sh starts it under a launcher.
#include <clnet/clnet.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace {

using namespace clnet;
using dist::Group;
namespace fs = std::filesystem;

std::string mark;  ///< no other job has it

void require(bool holds, const std::string& what) {
  if (!holds) throw Error("test: " + what);
}
void require_near(double found, double expected, double most, const std::string& what) {
  require(std::fabs(found - expected) <= most, what + ": " + std::to_string(found) + ", not " + std::to_string(expected));
}

/// A number of a rank and an element.
float number(int rank, std::int64_t at) {
  return static_cast<float>(std::sin(1.0 + rank * 12.9898 + static_cast<double>(at) * 0.78233));
}
std::vector<float> numbers(int rank, std::int64_t count) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(number(rank, i));
  return values;
}

/// The loss of all ranks is the sum of theirs, of factors by rank and element. Gradients are compared with the formulas.
void tensors(const Group& world) {
  const int ranks = world.size(), own = world.rank();
  const std::int64_t rows = 2 * ranks, columns = 3;
  const Shape shape{rows, columns};
  const auto factor = [](int rank, std::int64_t at) { return number(rank + 50, at); };
  const auto factors = [&](const Shape& of) { return Tensor::from(numbers(own + 50, of.numel()), of); };

  const Tensor x = Tensor::from(numbers(own, shape.numel()), shape);
  const Tensor y = Tensor::from(numbers(own + 9, 5), {5});
  const auto sums = dist::all_reduce({square(x), y}, world);
  const auto gradients_ = gradients(sum(sums[0] * factors(shape)) + sum(sums[1] * factors({5})), {x, y});
  const auto values = sums[0].to_vector<float>(), gx = gradients_[0].to_vector<float>(), gy = gradients_[1].to_vector<float>();
  for (std::int64_t i = 0; i < shape.numel(); ++i) {
    double expected = 0, weight = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      expected += std::pow(number(rank, i), 2);
      weight += factor(rank, i);
    }
    require_near(values[static_cast<std::size_t>(i)], expected, 1e-5, "all_reduce");
    require_near(gx[static_cast<std::size_t>(i)], weight * 2 * number(own, i), 1e-5, "gradient of all_reduce");
    if (i < 5) require_near(gy[static_cast<std::size_t>(i)], weight, 1e-5, "gradient of the second of all_reduce");
  }

  const Tensor gathered = dist::all_gather(x, world);
  require(gathered.shape() == Shape{rows * ranks, columns}, "the shape of all_gather");
  const auto all = gathered.to_vector<float>(),
             from_all = gradients(sum(gathered * factors(gathered.shape())), {x})[0].to_vector<float>();
  for (std::int64_t i = 0; i < shape.numel(); ++i) {
    double weight = 0;
    for (int rank = 0; rank < ranks; ++rank) weight += factor(rank, own * shape.numel() + i);
    for (int rank = 0; rank < ranks; ++rank)
      require(all[static_cast<std::size_t>(rank * shape.numel() + i)] == number(rank, i), "all_gather");
    require_near(from_all[static_cast<std::size_t>(i)], weight, 1e-5, "gradient of all_gather");
  }

  const Tensor scattered = dist::reduce_scatter(x, world);
  require(scattered.shape() == Shape{2, columns}, "the shape of reduce_scatter");
  const auto part = scattered.to_vector<float>(),
             from_part = gradients(sum(scattered * factors(scattered.shape())), {x})[0].to_vector<float>();
  for (std::int64_t i = 0; i < shape.numel(); ++i)
    require_near(from_part[static_cast<std::size_t>(i)],
                 factor(static_cast<int>(i / part.size()), i % static_cast<std::int64_t>(part.size())), 1e-5,
                 "gradient of reduce_scatter");
  for (std::size_t i = 0; i < part.size(); ++i) {
    double expected = 0;
    for (int rank = 0; rank < ranks; ++rank)
      expected += number(rank, own * static_cast<std::int64_t>(part.size()) + static_cast<std::int64_t>(i));
    require_near(part[i], expected, 1e-5, "reduce_scatter");
  }

  const int root = ranks - 1;
  const Tensor sent = dist::broadcast(x, root, world);
  const auto of_root = sent.to_vector<float>(), from_root = gradients(sum(sent * factors(shape)), {x})[0].to_vector<float>();
  for (std::int64_t i = 0; i < shape.numel(); ++i) {
    double weight = 0;
    for (int rank = 0; rank < ranks; ++rank) weight += factor(rank, i);
    require(of_root[static_cast<std::size_t>(i)] == number(root, i), "broadcast");
    require_near(from_root[static_cast<std::size_t>(i)], own == root ? weight : 0, 1e-5, "gradient of broadcast");
  }

  // A pipeline: each rank doubles what the one before gives, and adds its own number. Gradients go the other way.
  Tensor h = own == 0 ? x : Tensor();
  const Tensor like = Tensor::zeros(shape);
  if (own > 0) h = dist::recv(like, own - 1, world);
  h = 2.0 * h + static_cast<double>(own);
  const Tensor last_loss = sum(h * Tensor::from(numbers(99, shape.numel()), shape));
  const Tensor loss = own + 1 < ranks ? 0.0 * sum(dist::send(h, own + 1, world)) : last_loss;
  const Tensor gradient = gradients(loss, {own == 0 ? x : like})[0];
  eval({gradient, h});
  const auto back = gradient.to_vector<float>(), there = h.to_vector<float>();
  for (std::int64_t i = 0; i < shape.numel(); ++i) {
    double expected = number(0, i);
    for (int rank = 0; rank <= own; ++rank) expected = 2 * expected + rank;
    require_near(there[static_cast<std::size_t>(i)], expected, 1e-3, "what went through send and recv");
    require_near(back[static_cast<std::size_t>(i)], number(99, i) * std::pow(2, ranks - own), 1e-3,
                 "the gradient that came back");
  }

  bool refused = false;
  try {
    (void)dist::send(x, own, world);
  } catch (const Error&) {
    refused = true;
  }
  require(refused, "send to this rank is refused");
  refused = false;
  try {
    (void)dist::reduce_scatter(Tensor::from({1.0F}), world);
  } catch (const ShapeError&) {
    refused = true;
  }
  require(refused, "reduce_scatter of too few rows is refused");
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
data::ArrayDataset samples(std::int64_t labels) {
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
Trained trained(const std::optional<Group>& group, std::int64_t labels, train::FitOptions options = {}, bool with_norm = false,
                bool over_ranks = false) {
  manual_seed(11);
  Net model(with_norm, over_ranks ? group : std::nullopt);
  const auto set = samples(labels), test = samples(labels);
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

void require_same(const Trained& found, const Trained& expected, double most, bool has_losses, const std::string& what) {
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

/// Several ranks make the steps of one, within rounding: with dropout, uneven batches, labels that do not count, accumulation.
void training(const Group& world) {
  const bool writes = world.rank() == 0;
  for (const std::int64_t labels : {std::int64_t{1}, std::int64_t{4}}) {
    const auto alone = trained(std::nullopt, labels);
    const auto together = trained(world, labels);
    require(writes || together.losses.empty(), "only rank 0 hears of losses");
    require_same(together, alone, 2e-5, writes, labels == 1 ? "a label each" : "several labels");
    const auto again = trained(world, labels);
    require(again.weights == together.weights, "the same seed gives the same bits");
    const auto halves = trained(world, labels, {.exchanged = Dtype::bf16});
    require_same(halves, alone, 0.05, writes, "gradients as bf16");
    require(halves.weights != together.weights, "bf16 is not f32");
  }
  require_same(trained(world, 1, {.hooks = {train::accumulation(2)}}),
               trained(std::nullopt, 1, {.hooks = {train::accumulation(2)}}), 2e-5, writes, "accumulated");
}

/// Batch norm over all ranks is that of the whole batch.
void batch_norm(const Group& world) {
  require_same(trained(world, 1, {}, true, true), trained(std::nullopt, 1, {}, true), 5e-5, world.rank() == 0, "batch norm");
}

/// Gradients of several buckets, sent beside the backward pass, between the collectives of batch norm.
void overlap(const Group& world) {
  using Weights = std::vector<std::vector<float>>;
  const auto weights_of = [](const nn::Module& model) {
    Weights all;
    for (const auto& [name, parameter] : model.parameters()) all.push_back(parameter.value().to_vector<float>());
    return all;
  };
  const auto trained = [&](const std::optional<Group>& group, Dtype exchanged, std::int64_t steps, Weights* before = nullptr) {
    manual_seed(13);
    nn::Sequential model;
    for (const int inputs : {12, 600, 600, 600}) {
      model.append(nn::Linear(inputs, 600, {.bias = false}));
      model.append(nn::BatchNorm1d(600, {.group = group}));
      model.append(nn::ReLU());
    }
    model.append(nn::Linear(600, 3));
    if (before) *before = weights_of(model);
    const optim::Optimizer optimizer = optim::SGD(model, {.learning_rate = 0.05, .momentum = 0.9});
    train::fit(model, samples(1),
               {.steps = steps,
                .batch_size = 16,
                .optimizer = optimizer,
                .seed = 5,
                .group = group,
                .exchanged = exchanged,
                .progress = false});
    return weights_of(model);
  };
  const auto alone = trained(std::nullopt, Dtype::f32, 5), together = trained(world, Dtype::f32, 5);
  for (std::size_t k = 0; k < alone.size(); ++k)
    for (std::size_t i = 0; i < alone[k].size(); ++i)
      require_near(together[k][i], alone[k][i], 1e-4, "a weight of a model of several buckets");
  require(trained(world, Dtype::f32, 5) == together, "the same seed gives the same bits with several buckets");

  // One step, as roundings grow in further ones. Parts of a sum may be larger than the sum.
  Weights before;
  const auto whole = trained(std::nullopt, Dtype::f32, 1, &before), halves = trained(world, Dtype::bf16, 1);
  for (std::size_t k = 0; k < whole.size(); ++k) {
    float most = 0;
    for (std::size_t i = 0; i < whole[k].size(); ++i) most = std::max(most, std::fabs(whole[k][i] - before[k][i]));
    for (std::size_t i = 0; i < whole[k].size(); ++i)
      require_near(halves[k][i], whole[k][i], 0.02 * most + 1e-6, "a weight of a model of several buckets, sent as bf16");
  }
  require(halves != whole, "several buckets of bf16 are not f32");
}

/// What was stopped and resumed has the bits of what was not, and statistics of batch norm are rank 0's.
void resume(const Group& world) {
  const auto folder = fs::temp_directory_path() / ("clnet-dist-" + mark);
  const auto options = [&](std::int64_t steps, bool resumed) {
    return train::FitOptions{.steps = steps, .checkpoint = folder, .resume = resumed};
  };
  const auto whole = trained(world, 1, {.steps = 13}, true);
  std::vector<double> sum{0};
  dist::all_reduce(sum, world);
  (void)trained(world, 1, options(7, false), true);
  dist::all_reduce(sum, world);
  const auto resumed = trained(world, 1, options(13, true), true);
  dist::all_reduce(sum, world);
  if (world.rank() == 0) fs::remove_all(folder);
  require(resumed.weights == whole.weights, "a resumed training has the same bits");
}

/// A rank that begins with other weights is told of before the first step.
void unlike_models(const Group& world) {
  manual_seed(static_cast<std::uint64_t>(world.rank()));
  Net model;
  optim::Adam adam(model, 0.02);
  train::fit(model, samples(1), {.steps = 2, .optimizer = adam, .group = world, .progress = false});
}

const std::map<std::string, std::function<void(const Group&)>> ways{{"tensors", tensors},       {"training", training},
                                                                    {"batch-norm", batch_norm}, {"overlap", overlap},
                                                                    {"resume", resume},         {"unlike-models", unlike_models}};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || !ways.contains(argv[1])) {
    std::cerr << "usage: dist_training WAY\n";
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
}
