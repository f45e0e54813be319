// A call that changes several slots changes all of them or, where something throws, none.
#include <catch2/catch.hpp>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "clnet/clnet.h"
#include "lib/nn/parameter.h"
#include "tests/ops/values.h"
#include "tests/support/second_device.h"

using namespace clnet;
using namespace clnet::testing;

namespace {

/// Makes values that cannot be computed as long as it stands.
struct Obstacle {
  bool stands = true;
  nn::Parameter follower{Tensor::scalar(0.0F)};

  /// Such a value, equal to `x`.
  Tensor before(const Tensor& x) {
    const Tensor y = x * 1.0;
    follower.follow(y, [this](const Tensor& now, const Tensor&) {
      if (stands) throw std::runtime_error("the obstacle stands");
      return now * 1.0;
    });
    return y;
  }
};

const auto obstacle_stands = Catch::Contains("the obstacle stands");

/// Keys or values of four positions, which only their row tells apart.
Tensor room(float first) { return Tensor::from({first, first + 1, first + 2}, {3, 1, 1, 1}) + zeros({3, 1, 4, 1}); }
Floats firsts(const Tensor& all) { return values_of(reshape(slice(all, 2, 0, 1), {all.size(0)})); }

}  // namespace

TEST_CASE("caches of keys and values take another order all together or not at all") {
  const Tensor rows = Tensor::from(std::vector<std::int64_t>{1, 2, 0});
  Obstacle obstacle;
  std::vector<nn::KVCache> caches{{nn::Parameter(room(0)), nn::Parameter(room(10))},
                                  {nn::Parameter(room(20)), nn::Parameter(obstacle.before(room(30)))}};
  SECTION("one cache") {
    CHECK_THROWS_WITH(caches[1].reorder(rows), obstacle_stands);
    CHECK(firsts(caches[1].k) == Floats{20, 21, 22});
    obstacle.stands = false;
    caches[1].reorder(rows);
  }
  SECTION("of several layers") {
    CHECK_THROWS_WITH(nn::reorder(caches, rows), obstacle_stands);
    obstacle.stands = false;
    CHECK(firsts(caches[0].k) == Floats{0, 1, 2});
    nn::reorder(caches, rows);
    CHECK(firsts(caches[0].k) == Floats{1, 2, 0});
    CHECK(firsts(caches[0].v) == Floats{11, 12, 10});
  }
  SECTION("of several decoder layers") {
    std::vector<nn::DecoderCache> layers{{caches[0], {}}, {caches[1], {}}};
    CHECK_THROWS_WITH(nn::reorder(layers, rows), obstacle_stands);
    obstacle.stands = false;
    CHECK(firsts(caches[0].k) == Floats{0, 1, 2});
    nn::reorder(layers, rows);
    CHECK(firsts(caches[0].k) == Floats{1, 2, 0});
  }
  SECTION("of several sizes") {
    obstacle.stands = false;
    std::vector<nn::KVCache> unlike{caches[0], {nn::Parameter(zeros({2, 1, 4, 1})), nn::Parameter(zeros({2, 1, 4, 1}))}};
    CHECK_THROWS_AS(nn::reorder(unlike, rows), ShapeError);
    CHECK(firsts(caches[0].k) == Floats{0, 1, 2});
    caches[1].reorder(rows);
  }
  CHECK(firsts(caches[1].k) == Floats{21, 22, 20});
  CHECK(firsts(caches[1].v) == Floats{31, 32, 30});
}

TEST_CASE("a module, an optimizer, an average go to another device as a whole or not at all") {
  const Device first = Device::current(), second = test::second_device();
  Obstacle obstacle;
  nn::Linear layer(3, 2);
  layer.to(first);
  SECTION("a module") {
    layer.parameter("bias").set(obstacle.before(ones({2}).detach()));
    CHECK_THROWS_WITH(layer.to(second), obstacle_stands);
    for (const auto& [name, parameter] : layer.parameters()) CHECK(parameter.value().device() == first);
    obstacle.stands = false;
    layer.to(second);
    for (const auto& [name, parameter] : layer.parameters()) CHECK(parameter.value().device() == second);
    CHECK(values_of(layer.parameter("bias")) == Floats{1, 1});
  }
  SECTION("a parameter with two names") {
    nn::Sequential twice{layer, nn::tied(layer)};
    twice.to(second);
    CHECK(layer.parameter("weight").value().device() == second);
  }
  SECTION("an optimizer") {
    optim::SGD sgd(layer, {.learning_rate = 0.1, .momentum = 0.5});
    sgd.set_loss_scale({.initial = 4});
    (void)sgd.step(sum(layer(ones({1, 3})))).item<float>();
    auto state = sgd.state_dict();
    for (auto& [name, tensor] : state)
      if (name.starts_with("bias.") || name == "loss_scale") tensor = obstacle.before(tensor.detach());
    sgd.load_state_dict(state);
    const auto count = [&](const Device& device) {
      int found = 0;
      for (const auto& [name, tensor] : sgd.state_dict())
        found += (name.starts_with("weight.") || name.starts_with("bias.") || name.starts_with("loss_scale")) &&
                 tensor.device() == device;
      return found;
    };
    CHECK_THROWS_WITH(sgd.to(second), obstacle_stands);
    CHECK(count(second) == 0);
    obstacle.stands = false;
    layer.to(second);
    sgd.to(second);
    CHECK(count(first) == 0);
    CHECK_NOTHROW(sgd.step(sum(layer(ones({1, 3})))).item<float>());
  }
  SECTION("an average") {
    optim::EMA average(layer, 0.5);
    auto state = average.state_dict();
    state.back().second = obstacle.before(state.back().second.detach());
    average.load_state_dict(state);
    const auto on = [&](const Device& device) {
      for (const auto& [name, tensor] : average.state_dict())
        if (name != "step" && tensor.device() != device) return false;
      return true;
    };
    CHECK_THROWS_WITH(average.to(second), obstacle_stands);
    CHECK(on(first));
    obstacle.stands = false;
    average.to(second);
    CHECK(on(second));
  }
}

namespace {

bool same_states(const io::StateDict& a, const io::StateDict& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i].first != b[i].first || a[i].second.to_vector<float>() != b[i].second.to_vector<float>()) return false;
  return true;
}

/// A value that waits and can be computed.
Tensor unevaluated(const Tensor& x) { return x * 1.0; }

}  // namespace

TEST_CASE("averages that cannot be loaded are as before") {
  nn::Linear layer(3, 2);
  optim::EMA average(layer, 0.5);
  Obstacle obstacle;
  auto state = average.state_dict();
  for (std::size_t i = 1; i < state.size(); ++i)
    state[i].second = i == 1 ? unevaluated(state[i].second.detach()) : obstacle.before(state[i].second.detach());
  average.load_state_dict(state);
  io::StateDict next{{"step", Tensor::scalar(7, Dtype::i64)}};
  for (std::size_t i = 1; i < state.size(); ++i) next.emplace_back(state[i].first, state[i].second + 1.0);
  CHECK_THROWS_WITH(average.load_state_dict(next), obstacle_stands);
  obstacle.stands = false;
  CHECK(same_states(average.state_dict(), state));
  average.load_state_dict(next);
  CHECK(same_states(average.state_dict(), next));
}

TEST_CASE("a step of LBFGS that throws leaves its memory as before, though a parameter cannot be computed") {
  nn::Linear layer(3, 2);
  layer.parameter("weight").set(ones({2, 3}).detach());
  Obstacle obstacle;
  layer.parameter("bias").set(obstacle.before(ones({2}).detach()));
  optim::LBFGS optimizer(layer, {.learning_rate = 0.1, .max_iter = 2});
  const auto step = [&] { return optimizer.step([&] { return sum(square(layer.parameter("weight").value())); }); };
  CHECK_THROWS_WITH(step(), obstacle_stands);
  CHECK(optimizer.iterations() == 0);
  CHECK(optimizer.evaluations() == 0);
  obstacle.stands = false;
  CHECK(values_of(layer.parameter("weight")) == Floats(6, 1));
  CHECK(step() == 6);
  CHECK(optimizer.iterations() == 1);
}

namespace {

/// Counts its calls in a buffer that is not saved.
struct CountsCalls : nn::Module {
  nn::Parameter weight, calls;
  CountsCalls()
      : weight(add_parameter("weight", Tensor::from({1.0F, 2.0F}))), calls(add_buffer("calls", Tensor::scalar(0.0F), false)) {}
  Tensor forward(const Tensor& x) override {
    Tensor y = x * weight.value();
    calls.follow(y, [](const Tensor& now, const Tensor&) { return now + 1.0; });
    return y;
  }
};

}  // namespace

TEST_CASE("a search for the learning rate leaves buffers that are not saved, too") {
  CountsCalls model;
  optim::SGD sgd(model, {.learning_rate = 0.1});
  model(ones({2})).eval();
  (void)optim::find_learning_rate(model, sgd, [&] { return sum(square(model(ones({2})))); }, {.steps = 5});
  CHECK(values_of(model.calls) == Floats{1});
}

TEST_CASE("a parameter cannot begin to follow a value that is being evaluated") {
  nn::Parameter p(Tensor::scalar(0.0F)), q(Tensor::scalar(0.0F));
  const Tensor y = ones({3}) * 2.0;
  const auto one_more = [](const Tensor& now, const Tensor&) { return now + 1.0; };
  bool late = true;
  p.follow(y, [&](const Tensor& now, const Tensor& value) {
    if (late) q.follow(value, one_more);
    return now + 1.0;
  });
  CHECK_THROWS_WITH(y.eval(), Catch::Contains("Parameter::follow: called by the update of Parameter::follow"));
  late = false;
  q.follow(y, one_more);
  y.eval();
  CHECK(values_of(p) == Floats{1});
  CHECK(values_of(q) == Floats{1});
}

TEST_CASE("parameters that follow a value that is there change together or not at all") {
  const nn::Parameter p(Tensor::scalar(0.0F)), q(Tensor::scalar(0.0F));
  const Tensor y = ones({3}) * 2.0;
  bool throws = true;
  const auto one_more = [](const Tensor& now, const Tensor&) { return now + 1.0; };
  const auto last = [&](const Tensor& now, const Tensor& value) {
    if (throws) throw std::runtime_error("the last update");
    return now + sum(value);
  };
  const auto follow = [&] { nn::follow_together(std::vector<nn::Following>{{p, y, one_more}, {q, y, last}}); };
  y.eval();
  CHECK_THROWS_WITH(follow(), "the last update");
  CHECK(values_of(p) == Floats{0});
  CHECK(values_of(q) == Floats{0});
  throws = false;
  follow();
  CHECK(values_of(p) == Floats{1});
  CHECK(values_of(q) == Floats{6});
}

TEST_CASE("states cannot be loaded in a compiled function, and nothing of them is") {
  nn::Linear layer(3, 2);
  optim::SGD sgd(layer, {.learning_rate = 0.5, .momentum = 0.9});
  optim::EMA average(layer, 0.5);
  const auto states = sgd.state_dict(), averages = average.state_dict();
  const auto refuses = [](const std::function<void()>& call) {
    const auto f = compile([&](const Tensor& x) {
      call();
      return x;
    });
    CHECK_THROWS_WITH(f(ones({2})), Catch::StartsWith("compile: the function sets a parameter"));
  };
  (void)sgd.step(sum(layer(ones({1, 3})))).item<float>();
  average.update();
  sgd.set_learning_rate(0.25);
  refuses([&] { sgd.load_state_dict(states); });
  refuses([&] { average.load_state_dict(averages); });
  refuses([&] { sgd.to(Device::current()); });
  CHECK(sgd.steps() == 1);
  CHECK(sgd.learning_rate() == 0.25);
  CHECK(average.updates() == 1);
}

namespace {

/// Descent that calls a function first.
struct Calling : optim::Rule {
  std::function<void()> call;
  explicit Calling(std::function<void()> what) : call(std::move(what)) {}
  std::string name() const override { return "Calling"; }
  std::vector<State> states(const Shape&) const override { return {}; }
  Result update(const Tensor& p, const Tensor& g, const std::vector<Tensor>&, const Step& step) const override {
    call();
    return {p - g * step.rate, {}};
  }
};

}  // namespace

TEST_CASE("an optimizer is not changed by its own step") {
  const nn::Parameter w(ones({2}).detach()), more(ones({2}).detach());
  optim::Optimizer optimizer;
  std::function<void()> call;
  optimizer = {nn::NamedParameters{{"w", w}}, std::make_shared<Calling>([&] { call(); }), 0.5};
  const auto step = [&] { (void)optimizer.step(sum(w.value())); };
  call = [&] { optimizer.add_group(nn::NamedParameters{{"more", more}}, std::make_shared<Calling>([] {}), 0.5); };
  CHECK_THROWS_WITH(step(), Catch::Contains("Calling: add_group() while it makes a step"));
  const auto states = optimizer.state_dict();
  call = [&] { optimizer.load_state_dict(states); };
  CHECK_THROWS_WITH(step(), Catch::Contains("Calling: load_state_dict() while it makes a step"));
  call = step;
  CHECK_THROWS_WITH(step(), Catch::Contains("Calling: step() while it makes a step"));
  call = [&] { (void)optimizer.state_dict(); };
  CHECK_THROWS_WITH(step(), Catch::Contains("Calling: state_dict() while it makes a step"));
  CHECK(optimizer.steps() == 0);
  CHECK(optimizer.groups() == 1);
  call = [] {};
  step();
  CHECK(values_of(w) == Floats{0.5F, 0.5F});
  optimizer.add_group(nn::NamedParameters{{"more", more}}, std::make_shared<Calling>([] {}), 0.5);
  CHECK(optimizer.groups() == 2);
}
