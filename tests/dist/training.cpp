// Ranks that compute on a device each: `dist_training WAY`. tests/dist/run.sh starts it under a launcher.
#include <clnet/clnet.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/dist/trained.h"

namespace {

using namespace clnet;
using namespace clnet::test;
using dist::Group;
namespace fs = std::filesystem;

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
  const Tensor like = zeros(shape);
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

/// Batch norm over all ranks is that of the whole batch, by the layer's group or by fit().
void batch_norm(const Group& world) {
  const auto alone = trained(std::nullopt, 1, {}, true);
  const bool writes = world.rank() == 0;
  const auto by_layer = trained(world, 1, {}, true, true), by_fit = trained(world, 1, {.sync_batch_norm = true}, true);
  require_same(by_layer, alone, 5e-5, writes, "batch norm");
  require(by_fit.weights == by_layer.weights, "fit() gives batch norm the group");
  require(trained(world, 1, {.sync_batch_norm = true}, true, true).weights == by_layer.weights, "both do");
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

/// What was stopped between the batches of a sum goes on with the sums of all ranks: within rounding, as they are added earlier.
void resume_sums(const Group& world) {
  const auto folder = fs::temp_directory_path() / ("clnet-dist-" + mark);
  const auto summed = [&](std::int64_t steps, bool sharded, bool resumed) {
    return trained(
        world, 1,
        {.steps = steps, .hooks = {train::accumulation(2)}, .shard_optimizer = sharded, .checkpoint = folder, .resume = resumed});
  };
  const auto whole = trained(world, 1, {.steps = 13, .hooks = {train::accumulation(2)}});
  std::vector<double> sum{0};
  for (const bool sharded : {false, true}) {
    (void)summed(6, sharded, false);
    dist::all_reduce(sum, world);
    const auto resumed = summed(13, sharded, true);
    dist::all_reduce(sum, world);
    for (std::size_t i = 0; i < whole.weights.size(); ++i)
      require_near(resumed.weights[i], whole.weights[i], 2e-5, "resumed sums");
  }
  if (world.rank() == 0) fs::remove_all(folder);
}

/// A layer for each rule, of which several are added up.
struct Layers : nn::Module {
  std::vector<nn::Linear> layers;

  Layers(std::size_t count, std::int64_t outputs) {
    for (std::size_t i = 0; i < count; ++i) {
      layers.emplace_back(12, outputs);
      add("layer" + std::to_string(i), layers.back());
    }
  }
  Tensor forward(const Tensor& x) override {
    Tensor total = layers[0](x);
    for (std::size_t i = 1; i < layers.size(); ++i) total = total + layers[i](x);
    return total;
  }
};

using Rules = std::vector<std::pair<std::string, std::shared_ptr<const optim::Rule>>>;

/// Every rule of the library.
Rules all_rules() {
  Rules rules;
  for (const auto& name : optim::names()) rules.emplace_back(name, optim::rule(name, {}));
  rules.emplace_back("sgd with momentum", optim::SGD::rule({.momentum = 0.9}));
  rules.emplace_back("sgd with dampening", optim::SGD::rule({.momentum = 0.9, .dampening = 0.1}));
  rules.emplace_back("rmsprop with momentum", optim::RMSprop::rule({.momentum = 0.9}));
  rules.emplace_back("centered rmsprop", optim::RMSprop::rule({.momentum = 0.9, .centered = true}));
  for (int i = 0; i < 2; ++i) rules.emplace_back("muon", optim::rule("muon", {}));
  rules.emplace_back("amsgrad", optim::Adam::rule({.amsgrad = true}));
  return rules;
}

struct Sharded {
  std::vector<std::vector<float>> weights;
  io::StateDict state;
  std::int64_t bytes = 0;  ///< of the states, on this rank
};

/// Four steps in which each layer has a rule of its own.
Sharded with_rules(const Rules& rules, const Group& world, bool sharded, Dtype precision, const optim::Clipping& clipping) {
  manual_seed(17);
  Layers model(rules.size(), 3);
  std::optional<optim::Optimizer> optimizer;
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const auto& [name, rule] = rules[i];
    // Muon takes matrices alone.
    const auto prefix = "layer" + std::to_string(i) + (name == "muon" ? ".weight" : ".");
    const optim::Parameters its(model, [&](const std::string& parameter) { return parameter.starts_with(prefix); });
    if (optimizer)
      optimizer->add_group(its, rule, 0.01);
    else
      optimizer.emplace(its, rule, 0.01, clipping);
  }
  train::fit(model, samples(1),
             {.steps = 4,
              .batch_size = 16,
              .optimizer = *optimizer,
              .precision = precision,
              .hooks = {train::accumulation(2)},
              .group = world,
              .shard_optimizer = sharded,
              .progress = false});
  Sharded made{.weights = {}, .state = optimizer->state_dict(), .bytes = optimizer->state_bytes()};
  for (const auto& [name, parameter] : model.parameters()) made.weights.push_back(parameter.value().to_vector<float>());
  return made;
}

void require_same_state(const io::StateDict& found, const io::StateDict& expected, const std::string& what) {
  require(found.size() == expected.size(), what + ": as many entries");
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto& [name, tensor] = found[i];
    require(name == expected[i].first && tensor.spec() == expected[i].second.spec(), what + ": the entry " + name);
    std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.spec().bytes())), others(bytes.size());
    tensor.to_bytes(bytes.data(), bytes.size());
    expected[i].second.to_bytes(others.data(), others.size());
    require(bytes == others, what + ": the bits of " + name);
  }
}

/// Ranks that keep a part of the optimizer's states each compute the same bits, with every rule of the library.
void shard(const Group& world) {
  const auto rules = all_rules();
  for (const auto& [precision, clipping] :
       {std::pair(Dtype::f32, optim::Clipping{}), {Dtype::f32, {.norm = 0.1}}, {Dtype::f16, {.norm = 0.1}}}) {
    const auto what = std::string(to_string(precision)) + (clipping.norm > 0 ? ", clipped" : "");
    const auto whole = with_rules(rules, world, false, precision, clipping);
    const auto part = with_rules(rules, world, true, precision, clipping);
    for (std::size_t i = 0; i < whole.weights.size(); ++i)
      require(part.weights[i] == whole.weights[i], what + ": the bits of parameter " + std::to_string(i));
    if (world.rank() == 0) require_same_state(part.state, whole.state, what);
    std::vector<std::int64_t> bytes{part.bytes};
    dist::all_reduce(bytes, world);
    require(bytes[0] == whole.bytes, "all ranks' states together are those of one");
    require(part.bytes < whole.bytes, "a part of them");
  }
}

/// The bytes of the states on each rank: a part for each, but for the largest parameter.
void shard_memory(const Group& world) {
  Layers model(8, 64);
  optim::Adam adam(model, 0.01);
  const auto whole = adam.state_bytes(), largest = std::int64_t{2} * 12 * 64 * 4;
  require(adam.shards() == 1 && whole == 2 * 8 * (12 * 64 + 64) * 4, "Adam has two numbers for each parameter");
  adam.shard(world);
  adam.shard(world);
  require(adam.shards() == world.size(), "as many shards as ranks");
  require(adam.state_bytes() * world.size() == whole, "equal layers are dealt out evenly");
  std::vector<std::int64_t> most(static_cast<std::size_t>(world.size()));
  dist::all_gather(std::vector<std::int64_t>{adam.state_bytes()}, most, world);
  if (world.rank() == 0)
    for (std::size_t rank = 0; rank < most.size(); ++rank)
      std::cout << "states of rank " + std::to_string(rank) + ": " + std::to_string(most[rank]) + " of " + std::to_string(whole) +
                       " bytes\n";
  // A step updates them in place: it takes no more of the device than they do.
  const auto most_in_use = [&](bool sharded) {
    Layers wide(8, 4096);
    optim::Adam optimizer(wide, 0.01);
    train::add_gradients(optimizer, world);
    if (sharded) optimizer.shard(world);
    const Tensor x = Tensor::from(numbers(world.rank(), 24), {2, 12});
    for (int step = 0; step < 3; ++step) optimizer.step(mean(square(wide(x))));
    Device::current().finish();
    return std::pair(Device::current().memory().high_water, optimizer.state_bytes());
  };
  const auto [sharded_peak, sharded_bytes] = most_in_use(true);
  const auto [whole_peak, whole_bytes] = most_in_use(false);
  if (world.rank() == 0)
    std::cout << "most in use: " + std::to_string(sharded_peak) + " bytes sharded, " + std::to_string(whole_peak) + " whole\n";
  require(static_cast<double>(whole_peak - sharded_peak) > 0.8 * static_cast<double>(whole_bytes - sharded_bytes),
          "a step takes as much less of the device");

  Net uneven;
  optim::Adam other(uneven, 0.01);
  const auto all = other.state_bytes();
  other.shard(world);
  require(other.state_bytes() <= all / world.size() + largest, "no more than a part and the largest parameter");
  // A group that comes later is dealt out, too.
  Layers more(8, 64);
  adam.add_group(optim::Parameters([&] {
                   auto named = more.parameters();
                   for (auto& [name, parameter] : named) name = "more." + name;
                   return named;
                 }()),
                 optim::Adam::rule({}), 0.01);
  require(adam.state_bytes() * world.size() == 2 * whole, "a later group is dealt out evenly");
  bool refused = false;
  const auto half = world.split(world.rank() % 2);
  try {
    if (half.size() > 1) adam.shard(half);
  } catch (const Error&) {
    refused = true;
  }
  require(refused == (half.size() > 1), "another group is refused");
  optim::Adam alone(uneven, 0.01);
  alone.shard(world.split(world.rank()));
  require(alone.shards() == 1 && alone.state_bytes() == all, "one rank keeps all");
}

/// A loop of one's own shards by the same call. Products are large enough that solvers pack the weights that stay.
void shard_loop(const Group& world) {
  struct Wide : nn::Module {
    nn::Linear first{784, 128}, last{128, 10};
    Wide() {
      add("first", first);
      add("last", last);
    }
    Tensor forward(const Tensor& x) override { return last(relu(first(x))); }
  };
  const auto weights = [&](bool sharded) {
    manual_seed(11);
    Wide model;
    optim::Adam adam(model, 0.02);
    train::add_gradients(adam, world);
    if (sharded) adam.shard(world);
    for (int step = 0; step < 3; ++step) {
      const Tensor x = Tensor::from(numbers(step + 10 * world.rank(), 8 * 784), {8, 784});
      adam.step(mean(square(model(x))) / world.size());
    }
    std::vector<std::vector<float>> all;
    for (const auto& [name, parameter] : model.parameters()) all.push_back(parameter.value().to_vector<float>());
    return all;
  };
  require(weights(true) == weights(false), "the bits of a loop of one's own");

  // All ranks but one keep nothing.
  const auto of_one = [&](bool sharded) {
    manual_seed(11);
    nn::Linear model(12, 3, {.bias = false});
    optim::Adam adam(model, 0.02);
    train::add_gradients(adam, world);
    if (sharded) adam.shard(world);
    require(!sharded || (adam.state_bytes() > 0) == (world.rank() == 0), "one rank keeps the only states");
    for (int step = 0; step < 3; ++step) adam.step(mean(square(model(Tensor::from(numbers(step + world.rank(), 24), {2, 12})))));
    return model.parameters()[0].second.value().to_vector<float>();
  };
  require(of_one(true) == of_one(false), "the bits of one parameter");

  // A collective for each gradient: all ranks evaluate all of them, and clip what they got.
  const auto each_apart = [&](bool sharded) {
    manual_seed(11);
    nn::Sequential model(nn::Linear(6, 6, {.bias = false}), nn::Linear(6, 6, {.bias = false}), nn::Linear(6, 2));
    optim::Adam adam(model, 0.02);
    adam.set_gradient_function([&](std::vector<Tensor>& gradients, std::vector<Tensor>&) {
      for (auto& gradient : gradients) gradient = dist::all_reduce(gradient, world);
    });
    if (sharded) adam.shard(world);
    for (int step = 0; step < 3; ++step) {
      adam.set_clipping({.value = step < 2 ? 0 : 0.01});
      adam.step(mean(square(model(Tensor::from(numbers(step + world.rank(), 24), {4, 6})))));
    }
    std::vector<std::vector<float>> all;
    for (const auto& [name, parameter] : model.parameters()) all.push_back(parameter.value().to_vector<float>());
    return all;
  };
  require(each_apart(true) == each_apart(false), "the bits with a collective for each gradient");
}

/// A checkpoint of sharded states is that of whole ones, and goes on with any number of ranks, sharded or not.
void shard_resume(const Group& world) {
  const auto folder = [](const std::string& of) { return fs::temp_directory_path() / ("clnet-dist-" + mark + "-" + of); };
  std::vector<double> sum{0};
  const auto wait = [&] { dist::all_reduce(sum, world); };
  const auto copied = [&](const std::string& to) {
    fs::create_directories(folder(to));
    fs::copy_file(folder("sharded") / "checkpoint.safetensors", folder(to) / "checkpoint.safetensors");
  };
  const auto whole = trained(world, 1, {.steps = 13});
  (void)trained(world, 1, {.steps = 7, .shard_optimizer = true, .checkpoint = folder("sharded")});
  (void)trained(world, 1, {.steps = 7, .checkpoint = folder("whole")});
  const auto half = world.split(world.rank() / 2);
  const auto of_half = "half" + std::to_string(world.rank() / 2), alone = "alone" + std::to_string(world.rank());
  wait();
  if (world.rank() == 0) {
    require_same_state(io::load_safetensors(folder("sharded") / "checkpoint.safetensors").tensors,
                       io::load_safetensors(folder("whole") / "checkpoint.safetensors").tensors, "the checkpoint");
    copied("again");
  }
  if (half.rank() == 0) copied(of_half);
  copied(alone);
  wait();
  const auto resumed = [&](const std::optional<Group>& group, const std::string& from, bool sharded) {
    return trained(group, 1, {.steps = 13, .shard_optimizer = sharded, .checkpoint = folder(from), .resume = true}).weights;
  };
  require(resumed(world, "again", true) == whole.weights, "resumed sharded: the same bits");
  require(resumed(world, "sharded", false) == whole.weights, "resumed whole: the same bits");
  require(resumed(world, "whole", true) == whole.weights, "a whole one resumed sharded: the same bits");
  // An optimizer that is sharded already goes on, and takes its part of a checkpoint.
  const auto twice = [&](bool sharded) {
    manual_seed(11);
    Net model;
    optim::Adam adam(model, 0.02);
    for (const std::int64_t steps : {7, 7, 13}) {
      train::fit(model, samples(1),
                 {.steps = steps,
                  .batch_size = 16,
                  .optimizer = adam,
                  .group = world,
                  .shard_optimizer = sharded,
                  .checkpoint = folder(sharded ? "twice" : "twice-whole"),
                  .resume = true,
                  .progress = false});
      wait();
    }
    std::vector<std::vector<float>> all;
    for (const auto& [name, parameter] : model.parameters()) all.push_back(parameter.value().to_vector<float>());
    return all;
  };
  require(twice(true) == twice(false), "a second fit() with the same optimizer");
  for (const auto& other : {resumed(half, of_half, true), resumed(std::nullopt, alone, true)})
    for (std::size_t i = 0; i < other.size(); ++i)
      require_near(other[i], whole.weights[i], 2e-5, "resumed on fewer ranks: a weight");
  wait();
  if (half.rank() == 0) fs::remove_all(folder(of_half));
  fs::remove_all(folder(alone));
  if (world.rank() == 0)
    for (const auto* name : {"sharded", "whole", "again", "twice", "twice-whole"}) fs::remove_all(folder(name));
}

/// Samples that rank 0 alone has.
const data::Dataset& of_first(const Group& world, const data::Dataset& set) {
  static const data::ArrayDataset nothing;
  return world.rank() == 0 ? set : nothing;
}

/// Samples of a class of one's own, or a stream of them. One of them may be unreadable.
struct Numbers : data::Dataset {
  std::int64_t count;
  bool is_stream;
  std::int64_t unreadable;

  explicit Numbers(std::int64_t number, bool as_stream = false, std::int64_t fails = -1)
      : count(number), is_stream(as_stream), unreadable(fails) {}
  std::int64_t size() const override { return is_stream ? unknown : count; }
  data::Example get(std::int64_t index, std::uint64_t) const override {
    if (index == unreadable) throw FileError("/data/40.png: cannot be read");
    return {data::Array(numbers(static_cast<int>(index), 12), {12}, "sample"),
            data::Array(static_cast<std::int32_t>(index % 3), "class")};
  }
  struct Pass : data::Stream {
    const Numbers& of;
    std::int64_t at = 0;
    explicit Pass(const Numbers& set) : of(set) {}
    std::optional<data::Example> next() override { return at == of.count ? std::nullopt : std::optional(of.get(at++, 0)); }
  };
  std::unique_ptr<data::Stream> iterate(std::uint64_t) const override { return std::make_unique<Pass>(*this); }
};

/// The numbers of a training with validation, and of an evaluation.
std::vector<double> scattered(const Group& world, const data::Dataset& set, const data::Dataset& test, train::FitOptions options,
                              bool scatters) {
  manual_seed(11);
  Net model;
  options.steps = 12;
  options.batch_size = 16;
  options.optimizer = optim::Adam(model, 0.02);
  options.validation = scatters ? of_first(world, test) : test;
  options.metrics = {metrics::Accuracy()};
  options.seed = 5;
  options.group = world;
  options.scatter_data = scatters;
  options.progress = false;
  std::vector<double> all;
  options.on_step = [&](std::int64_t, double loss) { all.push_back(loss); };
  const auto result = train::fit(model, scatters ? of_first(world, set) : set, options);
  for (const auto& epoch : result.epochs)
    for (const double value : {epoch.train_loss, epoch.validation->loss, epoch.validation->accuracy, epoch.metrics[0].value})
      all.push_back(value);
  for (const auto& [name, parameter] : model.parameters())
    for (const auto value : parameter.value().to_vector<float>()) all.push_back(static_cast<double>(value));
  const auto found = train::evaluate(model, scatters ? of_first(world, test) : test,
                                     {.batch_size = 16, .group = world, .scatter_data = scatters});
  all.push_back(found.loss);
  all.push_back(found.accuracy);
  return all;
}

/// Ranks without the data have the bits of those that read it.
void scatter(const Group& world) {
  const auto require_equal = [&](const data::Dataset& set, const data::Dataset& test, const train::FitOptions& options,
                                 const std::string& what) {
    require(scattered(world, set, test, options, true) == scattered(world, set, test, options, false), what + ": the same bits");
  };
  const auto one = samples(1), several = samples(4);
  require_equal(one, one, {}, "arrays");
  require_equal(several, several, {}, "several labels, of which some do not count");
  train::FitOptions changed;
  changed.augmentation.change = [](const data::Sample& sample) { sample.values[0] += static_cast<float>(sample.random % 7); };
  require_equal(one, one, changed, "augmented");
  require_equal(Numbers(70), Numbers(33), {.workers = 3}, "samples of one's own");
  require_equal(Numbers(70, true), Numbers(33, true), {}, "a stream");
}

/// A checkpoint of ranks without the data goes on with the same bits.
void scatter_resume(const Group& world) {
  const auto folder = fs::temp_directory_path() / ("clnet-dist-" + mark);
  const auto set = samples(1);
  const auto weights = [&](train::FitOptions options) {
    manual_seed(11);
    Net model;
    options.batch_size = 16;
    options.optimizer = optim::Adam(model, 0.02);
    options.group = world;
    options.progress = false;
    train::fit(model, options.scatter_data ? of_first(world, set) : set, options);
    std::vector<std::vector<float>> all;
    for (const auto& [name, parameter] : model.parameters()) all.push_back(parameter.value().to_vector<float>());
    std::vector<double> sum{0};
    dist::all_reduce(sum, world);
    return all;
  };
  const auto whole = weights({.steps = 12});
  (void)weights({.steps = 7, .scatter_data = true, .checkpoint = folder});
  const auto resumed = weights({.steps = 12, .scatter_data = true, .checkpoint = folder, .resume = true});
  if (world.rank() == 0) fs::remove_all(folder);
  require(resumed == whole, "a resumed training has the same bits");
}

/// What rank 0 cannot read ends all ranks, each with that line.
void scatter_fails(const Group& world) { (void)scattered(world, Numbers(70, false, 40), Numbers(33), {}, true); }

/// A rank that begins with other weights is told of before the first step.
void unlike_models(const Group& world) {
  manual_seed(static_cast<std::uint64_t>(world.rank()));
  Net model;
  optim::Adam adam(model, 0.02);
  train::fit(model, samples(1), {.steps = 2, .optimizer = adam, .group = world, .progress = false});
}

const Ways ways{{"tensors", tensors},
                {"training", training},
                {"batch-norm", batch_norm},
                {"overlap", overlap},
                {"resume", resume},
                {"resume-sums", resume_sums},
                {"shard", shard},
                {"shard-memory", shard_memory},
                {"shard-loop", shard_loop},
                {"shard-resume", shard_resume},
                {"scatter", scatter},
                {"scatter-resume", scatter_resume},
                {"scatter-fails", scatter_fails},
                {"unlike-models", unlike_models}};

}  // namespace

int main(int argc, char** argv) { return run_way(argc, argv, ways); }
