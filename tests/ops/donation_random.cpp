// Random histories of training, with everything that a program may hold meanwhile, each made twice: with values in the memory of
// others, and with a buffer for each.
#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "clnet/clnet.h"
#include "lib/exec/place/placement.h"
#include "tests/ops/check.h"

using namespace clnet;
using namespace clnet::testing;

namespace {

using Floats = std::vector<float>;

struct Throwing : optim::Rule {
  std::shared_ptr<bool> throws = std::make_shared<bool>(false);
  std::string name() const override { return "Throwing"; }
  std::vector<State> states(const Shape&) const override { return {{"a"}, {"b", 1.0}}; }
  Result update(const Tensor& p, const Tensor& g, const std::vector<Tensor>& s, const Step& step) const override {
    if (*throws) throw Error("thrown by the rule");
    const Tensor a = s[0] * 0.9 + g, b = s[1] * 0.5 + abs(a) + s[0] * 0.1;
    return {p - a / (b + 1.0) * step.rate, {b, a}};  // crosswise
  }
};

/// What a history reads, in order.
Floats history(unsigned seed) {
  std::mt19937 random(seed);
  const auto below = [&](int count) { return std::uniform_int_distribution<int>(0, count - 1)(random); };
  Floats log;
  const auto read = [&](const Tensor& tensor) {
    for (const float value : tensor.to_vector<float>()) log.push_back(value);
  };
  manual_seed(seed);
  std::vector<nn::Sequential> nets;
  std::vector<optim::Optimizer> optimizers;
  const auto names = optim::names();
  const auto throwing = std::make_shared<Throwing>();
  for (int i = 0; i < 2; ++i) {
    nets.push_back(nn::Sequential{nn::Linear{4, 5}, relu, nn::BatchNorm1d{5}, nn::Linear{5, 3}, nn::Linear{3, 3}});
    const auto& name = names[seed % names.size()];
    if (seed % 5 == 4)
      optimizers.push_back(optim::Optimizer(nets.back(), throwing, 0.01));
    else
      optimizers.push_back(optim::make(name, nets.back(), {.learning_rate = 0.01, .clip_norm = seed % 3 == 0 ? 1.0 : 0.0}));
  }
  optim::EMA average(nets[0], 0.9);
  std::vector<Tensor> losses(2), held;
  std::vector<io::StateDict> states;
  std::vector<decltype(Tensor().read_async())> readings;
  const auto batch = [&](int number) { return make_tensor({4, 4}, static_cast<std::uint64_t>(number)); };
  for (int step = 0; step < 40; ++step) {
    const auto which = static_cast<std::size_t>(below(2));
    auto& net = nets[which];
    auto& optimizer = optimizers[which];
    const auto fresh = [&] { return mean(square(net(batch(step)))); };
    try {
      switch (below(22)) {
        case 0: losses[which] = fresh(); break;
        case 1:
          if (losses[which].defined()) optimizer.step(losses[which]);
          break;
        case 2:
          if (losses[which].defined()) optimizer.accumulate(losses[which]);
          break;
        case 3: optimizer.accumulate(fresh()); break;
        case 4: optimizer.step(); break;
        case 5: states.push_back(optimizer.state_dict()); break;
        case 6:
          if (!states.empty())
            optimizer.load_state_dict(states[static_cast<std::size_t>(below(static_cast<int>(states.size())))]);
          break;
        case 7: optimizers[1 - which].load_state_dict(optimizer.state_dict()); break;
        case 8: {
          const auto state = optimizer.state_dict();
          const auto& [name, tensor] = state[static_cast<std::size_t>(below(static_cast<int>(state.size())))];
          readings.push_back(tensor.read_async());
          break;
        }
        case 9: {
          auto parameters = optimizer.parameters();
          auto& parameter = parameters[static_cast<std::size_t>(below(static_cast<int>(parameters.size())))].second;
          parameter.freeze(!parameter.frozen());
          break;
        }
        case 10: average.update(); break;
        case 11: optimizer.set_loss_scale({.initial = below(2) == 0 ? 8.0 : 1e38, .interval = 2}); break;
        case 12: optimizer.remove_loss_scale(); break;
        case 13: {
          const auto state = optimizer.state_dict();
          const auto& tensor = state[static_cast<std::size_t>(below(static_cast<int>(state.size())))].second;
          if (tensor.dtype() != Dtype::f32) break;
          const Tensor total = sum(tensor * 2.0);
          held.push_back(tensor.detach());
          optimizer.step(fresh(), {total});
          read(total);
          break;
        }
        case 14:
          *throwing->throws = true;
          optimizer.step(fresh());
          break;
        case 15: {
          const DetectAnomaly looking;
          read(optimizer.step(fresh()));
          break;
        }
        case 16: {
          std::vector<Tensor> gradients;
          for (const auto& gradient : nn::gradients(fresh(), optimizer.parameters())) gradients.push_back(gradient * 0.5);
          optimizer.apply(gradients);
          break;
        }
        case 17: {
          // Adversaries: both losses first, then both steps.
          const Tensor first = fresh(), second = mean(nets[1 - which](batch(step)) * net(batch(step + 1)));
          optimizers[1 - which].step(second);
          optimizer.step(first);
          break;
        }
        case 18:
          net = nn::clone(net);
          optimizer = optim::make(names[seed % names.size()], net, {.learning_rate = 0.01});
          losses[which] = {};
          states.clear();
          break;
        default: {
          const Tensor loss = optimizer.step(fresh());
          if (below(2) == 0) read(loss);
        }
      }
    } catch (const Error& error) {
      const std::string what = error.what();
      if (what.find("lost") != std::string::npos) throw;
      log.push_back(-1);
    }
    *throwing->throws = false;
    if (held.size() > 3) held.erase(held.begin());
    if (states.size() > 3) states.erase(states.begin());
    if (readings.size() > 2) {
      for (const float value : readings.front().get()) log.push_back(value);
      readings.erase(readings.begin());
    }
    if (below(4) == 0) {
      for (const auto& tensor : held) read(tensor);
      for (const auto& state : states)
        for (const auto& [name, tensor] : state)
          if (tensor.dtype() == Dtype::f32) read(tensor);
    }
  }
  for (auto& net : nets)
    for (const auto& [name, tensor] : net.state_dict()) read(tensor);
  for (auto& optimizer : optimizers)
    for (const auto& [name, tensor] : optimizer.state_dict()) read(tensor);
  return log;
}

}  // namespace

TEST_CASE("random histories of training are the same with and without values in the memory of others") {
  for (unsigned seed = 0; seed < 8; ++seed) {
    INFO("seed " << seed << " " << optim::names()[seed % optim::names().size()]);
    Floats apart, donated;
    {
      const exec::NoMemorySharing each;
      apart = history(seed);
    }
    CHECK_NOTHROW(donated = history(seed));
    CHECK(donated.size() == apart.size());
    bool same = donated.size() == apart.size();
    for (std::size_t i = 0; same && i < apart.size(); ++i)
      same = donated[i] == apart[i] || (std::isnan(donated[i]) && std::isnan(apart[i]));
    CHECK(same);
  }
}
