// What optimizers do around their formulas: rules of users, groups, frozen parameters, partial sums, clipping, averages, the
// search for a rate.
#include <catch2/catch.hpp>
#include <cmath>

#include "clnet/clnet.h"
#include "lib/exec/statistics.h"
#include "lib/graph/node.h"

using namespace clnet;
using Floats = std::vector<float>;

namespace {

/// Two parameters; loss() pulls each towards 0 with its own strength.
struct Two : nn::Module {
  nn::Parameter a, b;
  Two() : a(add_parameter("a", Tensor::from({1.0F, -2.0F}))), b(add_parameter("b", Tensor::from({3.0F, 0.5F, 4.0F}))) {}
  Tensor forward(const Tensor& x) override { return x; }
  Tensor loss(double of_a = 1, double of_b = 1) const { return sum(square(a)) * of_a * 0.5 + sum(square(b)) * of_b * 0.5; }
  std::vector<Floats> values() const { return {a.value().to_vector<float>(), b.value().to_vector<float>()}; }
};

bool named(const io::StateDict& state, const std::string& name) {
  return std::any_of(state.begin(), state.end(), [&](const auto& entry) { return entry.first == name; });
}

void require_near(const Floats& got, const std::vector<double>& want) {
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == Approx(want[i]).margin(1e-6));
}

/// The example of the header.
struct Momentum : optim::Rule {
  std::string name() const override { return "Momentum"; }
  std::vector<State> states(const Shape&) const override { return {{"velocity"}}; }
  Result update(const Tensor& p, const Tensor& g, const std::vector<Tensor>& states, const Step& step) const override {
    const Tensor velocity = states[0] * 0.9 + g;
    return {p - velocity * step.rate, {velocity}};
  }
};

/// A rule that gives what it is told to.
struct Odd : optim::Rule {
  std::vector<State> kept{{"s"}};
  std::function<Result(const Tensor& p)> result = [](const Tensor& p) { return Result{p, {p}}; };
  std::string name() const override { return "Odd"; }
  std::vector<State> states(const Shape&) const override { return kept; }
  Result update(const Tensor& p, const Tensor&, const std::vector<Tensor>&, const Step&) const override { return result(p); }
};

}  // namespace

TEST_CASE("a user's rule steps, keeps its state and makes one plan") {
  Two model, same;
  optim::Optimizer optimizer(model, std::make_shared<Momentum>(), 0.1);
  optim::SGD sgd(same, {.learning_rate = 0.1, .momentum = 0.9});
  const auto plans = exec::statistics().plans_made;
  for (int k = 0; k < 5; ++k) {
    optimizer.set_learning_rate(0.1 / (k + 1));
    optimizer.step(model.loss());
  }
  CHECK(exec::statistics().plans_made == plans + 1);
  for (int k = 0; k < 5; ++k) {
    sgd.set_learning_rate(0.1 / (k + 1));
    sgd.step(same.loss());
  }
  for (std::size_t i = 0; i < 2; ++i)
    for (std::size_t j = 0; j < model.values()[i].size(); ++j) CHECK(model.values()[i][j] == Approx(same.values()[i][j]));
  const auto state = optimizer.state_dict();
  CHECK(state[1].first == "a.velocity");
  CHECK(named(state, "b.velocity"));
  CHECK(optimizer.steps() == 5);
}

TEST_CASE("a rule's results are looked at before anything changes") {
  Two model;
  const auto before = model.values();
  const auto attempt = [&](const std::shared_ptr<Odd>& rule) { optim::Optimizer(model, rule, 1).step(model.loss()); };
  const auto rule = std::make_shared<Odd>();
  CHECK_NOTHROW(attempt(rule));
  rule->result = [](const Tensor& p) { return optim::Rule::Result{p, {}}; };
  CHECK_THROWS_WITH(attempt(rule), "Odd: update() gave 0 states of a, which has 1");
  rule->result = [](const Tensor& p) { return optim::Rule::Result{p, {ones({})}}; };
  CHECK_THROWS_AS(attempt(rule), ShapeError);
  rule->result = [](const Tensor& p) { return optim::Rule::Result{cast(p, Dtype::i32), {p}}; };
  CHECK_THROWS_AS(attempt(rule), DtypeError);
  rule->result = [](const Tensor& p) { return optim::Rule::Result{{}, {p}}; };
  CHECK_THROWS_WITH(attempt(rule), "Odd: update() gave the value of a undefined");
  for (const auto* name : {"", "x.y", "grad"}) {
    rule->kept = {{name}};
    CHECK_THROWS_WITH(attempt(rule), Catch::Contains("is no name of a state"));
  }
  rule->kept = {{"s"}, {"s"}};
  CHECK_THROWS_AS(attempt(rule), Error);
  CHECK_THROWS_WITH(optim::Optimizer(model, nullptr, 1), "optimizer: made without a rule");
  CHECK_THROWS_WITH(optim::Optimizer(model, std::make_shared<Momentum>(), NAN), Catch::Contains("Momentum: learning_rate"));
  CHECK(model.values() == before);
}

TEST_CASE("groups have options of their own, and their rates go together") {
  Two model;
  optim::SGD optimizer({model, [](const std::string& name) { return name == "a"; }}, {.learning_rate = 0.1});
  CHECK(optimizer.made_for(model));
  optimizer.add_group({{{"b", model.b}}}, {.learning_rate = 0.02, .weight_decay = 0.5});
  CHECK(optimizer.groups() == 2);
  optimizer.step(model.loss());
  require_near(model.values()[0], {0.9, -1.8});
  require_near(model.values()[1], {3 * (1 - 0.02 * 1.5), 0.5 * (1 - 0.02 * 1.5), 4 * (1 - 0.02 * 1.5)});
  optimizer.set_learning_rate(0.05);
  CHECK(optimizer.learning_rate(1) == Approx(0.01));
  optimizer.set_learning_rate(0);
  CHECK(optimizer.learning_rate(1) == 0);
  optimizer.set_learning_rate(0.1);
  CHECK(optimizer.learning_rate(1) == Approx(0.02));
  optimizer.set_group_learning_rate(1, 0.1);
  optimizer.set_learning_rate(0.3);
  CHECK(optimizer.learning_rate(1) == Approx(0.3));
  optimizer.set_group_learning_rate(0, 0.6);
  CHECK(optimizer.learning_rate(1) == Approx(0.3));
  optimizer.set_learning_rate(0.2);
  CHECK(optimizer.learning_rate(1) == Approx(0.1));

  CHECK_THROWS_WITH(optimizer.learning_rate(2), "SGD: there is no group 2, only 2");
  CHECK_THROWS_AS(optimizer.set_group_learning_rate(2, 0.1), Error);
  CHECK_THROWS_WITH(optimizer.add_group({{{"other", model.a}}}, {}), "SGD: other is optimized already, as a");
  CHECK_THROWS_WITH(optimizer.add_group({{{"a", nn::Parameter(ones({1}))}}}, {}),
                    "SGD: two parameters are called a; Parameters(model, wanted) takes parts of one model by name");
  CHECK_THROWS_WITH(optimizer.add_group({{{"c", nn::Parameter(ones({1}))}}}, {.clip_norm = 1}),
                    Catch::Contains("clipping is of all groups together"));
  CHECK_THROWS_AS(optimizer.add_group({{{"c", nn::Parameter(ones({1}, Dtype::i32))}}}, {}), DtypeError);
  CHECK_THROWS_WITH(optimizer.add_group(nn::NamedParameters{}, {}), "SGD: a group without parameters");
  CHECK_THROWS_WITH(optimizer.add_group({{{"c", nn::Parameter(ones({1}))}}}, {.momentum = -1}), "SGD: momentum cannot be -1");
  CHECK(optimizer.groups() == 2);
  CHECK_FALSE(optimizer.made_for(Two()));
}

TEST_CASE("groups with different rules make one optimizer") {
  struct Net : nn::Module {
    nn::Parameter weight = add_parameter("weight", Tensor::from({1.0F, 2.0F, 3.0F, -1.0F}, {2, 2}));
    nn::Parameter bias = add_parameter("bias", Tensor::from({1.0F, 2.0F}));
    Tensor forward(const Tensor& x) override { return linear(x, weight, bias); }
  } model;
  optim::Muon optimizer({model, [](const auto& name) { return name == "weight"; }}, {.learning_rate = 0.02});
  const optim::AdamWOptions adam{.learning_rate = 0.1, .weight_decay = 0};
  optimizer.add_group({model, [](const auto& name) { return name == "bias"; }}, optim::AdamW::rule(adam), adam.learning_rate);
  optimizer.step(sum(square(model(ones({1, 2})))));
  require_near(model.bias.value().to_vector<float>(), {0.9, 1.9});
  CHECK(named(optimizer.state_dict(), "weight.momentum_buffer"));
  CHECK(named(optimizer.state_dict(), "bias.exp_avg_sq"));
}

TEST_CASE("frozen parameters are never touched") {
  Two model;
  optim::AdamW optimizer(model, {.learning_rate = 0.1, .weight_decay = 0.1, .clip_norm = 1});
  model.b.freeze();
  CHECK(model.b.frozen());
  const auto before = model.values()[1];
  optimizer.step(model.loss());
  CHECK(model.values()[1] == before);
  CHECK(model.values()[0][0] < 1);
  optimizer.accumulate(model.loss());
  CHECK_FALSE(named(optimizer.state_dict(), "b.grad"));
  optimizer.step();
  optimizer.apply({ones({2}), {}});
  CHECK(model.values()[1] == before);
  // The gradient itself is there as before.
  CHECK(gradients(model.loss(), {model.b})[0].to_vector<float>() == before);

  model.freeze();
  CHECK_THROWS_WITH(optimizer.step(model.loss()), "AdamW: all of its 2 parameters are frozen (a is the first)");
  model.freeze(false);
  optimizer.accumulate(model.loss());
  model.b.freeze();
  optimizer.step();
  CHECK(model.values()[1] == before);
  model.b.freeze(false);
  optimizer.step(model.loss());
  CHECK(model.values()[1] != before);
}

TEST_CASE("accumulate() sums gradients, and step() applies them once") {
  for (const double clip : {0.0, 0.5}) {
    Two parts, whole;
    const optim::SGDOptions options{.learning_rate = 0.1, .momentum = 0.9, .weight_decay = 0.01, .clip_norm = clip};
    optim::SGD optimizer(parts, options), reference(whole, options);
    std::uint64_t plans = 0;
    for (int k = 0; k < 4; ++k) {
      CHECK(optimizer.accumulate(parts.loss(0.5, 0.25)).item<float>() == Approx(whole.loss(0.5, 0.25).item<float>()));
      optimizer.accumulate(parts.loss(0.25, 0.5));
      // Only one of them.
      optimizer.accumulate(sum(parts.a) * 0.3);
      if (k % 2 == 0)
        optimizer.step();
      else
        optimizer.step(parts.loss(0.125, 0.125));
      reference.step(whole.loss(0.75, 0.75) + sum(whole.a) * 0.3 + whole.loss(0.125, 0.125) * (k % 2));
      for (std::size_t i = 0; i < 2; ++i) {
        const auto want = whole.values()[i];
        require_near(parts.values()[i], {want.begin(), want.end()});
      }
      CHECK(optimizer.steps() == k + 1);
      CHECK_THROWS_WITH(optimizer.step(), "SGD: step() without a loss, and nothing was accumulated");
      if (k == 1) plans = exec::statistics().plans_made;
    }
    CHECK(exec::statistics().plans_made == plans);
  }
}

TEST_CASE("a checkpoint between parts of a batch holds their sum") {
  Two model, other;
  const optim::AdamOptions options{.learning_rate = 0.1};
  optim::Adam optimizer(model, options), resumed(other, options);
  optimizer.step(model.loss());
  optimizer.accumulate(model.loss(2, 0));
  optimizer.accumulate(sum(model.a));
  other.load_state_dict(model.state_dict());
  const auto state = optimizer.state_dict();
  CHECK(named(state, "a.grad"));
  resumed.accumulate(sum(other.b));  // not in the checkpoint
  resumed.load_state_dict(state);
  CHECK(named(resumed.state_dict(), "b.grad") == named(state, "b.grad"));
  optimizer.step(model.loss());
  resumed.step(other.loss());
  CHECK(model.values() == other.values());
  CHECK_FALSE(named(optimizer.state_dict(), "a.grad"));
  CHECK(optimizer.state_dict().size() == 7);

  auto wrong = state;
  for (auto& [name, tensor] : wrong)
    if (name == "a.grad") tensor = ones({3});
  CHECK_THROWS_WITH(resumed.load_state_dict(wrong), Catch::Contains("a.grad is f32[3], not f32[2]"));
}

TEST_CASE("running statistics see every part of a batch") {
  nn::Sequential parts{nn::BatchNorm1d{2}}, whole{nn::BatchNorm1d{2}};
  optim::SGD optimizer(parts, {.learning_rate = 0.1});
  const Tensor x = Tensor::from({1.0F, 2.0F, 3.0F, -4.0F, 0.5F, 6.0F}, {3, 2});
  for (int k = 0; k < 3; ++k) {
    optimizer.accumulate(sum(square(parts(x))));
    whole(x).eval();
  }
  CHECK(parts.buffers()[0].second.value().to_vector<float>() == whole.buffers()[0].second.value().to_vector<float>());
  CHECK(parts.buffers()[1].second.value().to_vector<float>() == whole.buffers()[1].second.value().to_vector<float>());
}

TEST_CASE("results that are asked for along with a step come from the same evaluation") {
  Two model;
  optim::SGD optimizer(model, {.learning_rate = 0.1});
  const Tensor loss = model.loss(), largest = max(model.b.value());
  const auto evaluations = exec::statistics().evaluations;
  const Tensor stepped = optimizer.step(loss, {largest});
  CHECK(largest.item<float>() == 4);
  CHECK(stepped.item<float>() == Approx(15.125));
  const Tensor smallest = min(model.b.value());
  optimizer.accumulate(model.loss(), {smallest});
  CHECK(smallest.item<float>() == Approx(0.45));
  CHECK(exec::statistics().evaluations == evaluations + 2);
  CHECK_THROWS_WITH(optimizer.step(model.loss(), {smallest, Tensor()}), "SGD: result 1 to be computed along is undefined");
  CHECK(optimizer.steps() == 1);
}

TEST_CASE("a step that fails changes nothing, and may be made again") {
  const auto make = [](const nn::Module& m) { return optim::NAdam(m, {.learning_rate = 0.1, .clip_norm = 1}); };
  Two model, undisturbed;
  auto optimizer = make(model), reference = make(undisturbed);
  const Kernel broken("broken", "kernel void broken(IN(x), OUT(y)) { STORE(y, 0, nonsense); }");
  const auto everything = [](const Two& m, const optim::Optimizer& o) {
    auto all = m.values();
    for (const auto& [name, tensor] : o.state_dict()) all.push_back(tensor.to_vector<float>());
    return all;
  };
  for (int k = 0; k < 3; ++k) {
    const auto before = everything(model, optimizer);
    CHECK_THROWS_AS(optimizer.accumulate(model.loss(), {broken(ones({1}))}), BuildError);
    CHECK(everything(model, optimizer) == before);
    optimizer.accumulate(model.loss(k, 1));
    reference.accumulate(undisturbed.loss(k, 1));
    const auto summed = everything(model, optimizer);
    CHECK_THROWS_AS(optimizer.step(model.loss(), {broken(ones({1}))}), BuildError);
    CHECK(everything(model, optimizer) == summed);
    CHECK(optimizer.steps() == k);
    optimizer.step(model.loss());
    reference.step(undisturbed.loss());
    CHECK(everything(model, optimizer) == everything(undisturbed, reference));
  }
}

TEST_CASE("gradients are clipped by value, and then by norm") {
  Two model;
  optim::SGD by_value(model, {.learning_rate = 1, .clip_value = 0.5});
  by_value.apply({Tensor::from({3.0F, -0.25F}), Tensor::from({-7.0F, 0.5F, 0.0F})});
  require_near(model.values()[0], {0.5, -1.75});
  require_near(model.values()[1], {3.5, 0, 4});
  Two other;
  optim::SGD both(other, {.learning_rate = 1, .clip_norm = 0.5, .clip_value = 0.5});
  both.apply({Tensor::from({3.0F, 0.0F}), Tensor::from({-7.0F, 0.5F, 0.5F})});
  require_near(other.values()[0], {0.75, -2});
  require_near(other.values()[1], {3.25, 0.25, 3.75});
  // By another norm, from now on.
  const auto w = nn::Parameter(Tensor::from({0.0F, 0.0F}));
  optim::SGD largest(nn::NamedParameters{{"w", w}}, {.learning_rate = 1});
  largest.set_clipping({.norm = 1, .p = HUGE_VAL});
  CHECK(largest.clipping().norm == 1);
  largest.apply({Tensor::from({2.0F, -4.0F})});
  CHECK(w.value().to_vector<float>()[0] == Approx(-0.5));
  CHECK(w.value().to_vector<float>()[1] == Approx(1));
  CHECK_THROWS_WITH(largest.set_clipping({.norm = -1}), "SGD: clip_norm cannot be -1");
  CHECK_THROWS_WITH(largest.set_clipping({.norm = 1, .p = 0}), "SGD: clipping's p cannot be 0");
  const auto clipped = optim::clip_by_value({Tensor::from({3.0F, -0.25F}), cast(Tensor::from({-7.0F}), Dtype::f16)}, 2);
  CHECK(clipped[0].to_vector<float>() == Floats{2, -0.25F});
  CHECK(clipped[1].to_vector<float>() == Floats{-2});
  CHECK_THROWS_WITH(optim::clip_by_value({}, 0), Catch::Contains("clip_by_value"));
  CHECK_THROWS_WITH(optim::SGD(model, {.clip_value = -1}), "SGD: clip_value cannot be -1");
}

TEST_CASE("given gradients are added up and applied as those of losses are") {
  Two model, other;
  optim::Adam by_loss(model, {.learning_rate = 0.1}), given(other, {.learning_rate = 0.1});
  for (int step = 0; step < 2; ++step) {
    by_loss.accumulate(model.loss());
    by_loss.accumulate(model.loss() * 0.5);
    by_loss.step(model.loss());
    const auto gradients = [&](double factor) {
      auto all = nn::gradients(other.loss() * factor, other.parameters());
      for (auto& each : all) each = each.detach();
      return all;
    };
    given.add_to_sums(gradients(1));
    given.add_to_sums(gradients(0.5));
    CHECK(given.steps() == step);
    CHECK(named(given.state_dict(), "a.grad"));
    // The program's function sees the sums once.
    int calls = 0;
    given.set_gradient_function([&](std::vector<Tensor>&, std::vector<Tensor>&) { ++calls; });
    given.apply_with_sums(gradients(1));
    CHECK(calls == 1);
    CHECK_FALSE(named(given.state_dict(), "a.grad"));
    CHECK(other.values() == model.values());
  }
  CHECK_THROWS_AS(given.add_to_sums({ones({2})}), Error);
  CHECK_THROWS_WITH(given.apply_with_sums({ones({2}), ones({2})}), "Adam: b is f32[3], its gradient f32[2]");
}

TEST_CASE("gradients of another shape or kind are refused by name") {
  Two model;
  optim::NAdam optimizer(model);
  CHECK_THROWS_WITH(optimizer.apply({ones({2}), ones({2})}), "NAdam: b is f32[3], its gradient f32[2]");
  CHECK_THROWS_AS(optimizer.apply({ones({2}), ones({3}, Dtype::i32)}), DtypeError);
  CHECK_THROWS_AS(optimizer.apply({ones({2}), {}}), Error);
  CHECK(optimizer.steps() == 0);
}

TEST_CASE("averages of weights follow, take their turn in the module, and come back from a checkpoint") {
  for (const bool warm_up : {false, true}) {
    Two model;
    optim::EMA average(model, {.decay = 0.75, .warm_up = warm_up});
    optim::SGD optimizer(model, {.learning_rate = 0.1});
    auto want = model.values();
    std::uint64_t plans = 0;
    for (int n = 0; n < 5; ++n) {
      optimizer.step(model.loss());
      average.update();
      const double decay = warm_up ? std::min(0.75, (1.0 + n) / (10.0 + n)) : 0.75;
      for (std::size_t i = 0; i < 2; ++i)
        for (std::size_t j = 0; j < want[i].size(); ++j)
          want[i][j] = static_cast<float>(decay * want[i][j] + (1 - decay) * model.values()[i][j]);
      if (n == 1) plans = exec::statistics().plans_made;
    }
    CHECK(exec::statistics().plans_made == plans);
    CHECK(average.updates() == 5);
    const auto values = average.values();
    CHECK(values[1].first == "b");
    for (std::size_t i = 0; i < 2; ++i) {
      const auto got = values[i].second.to_vector<float>();
      require_near(got, {want[i].begin(), want[i].end()});
    }

    const auto trained = model.values();
    average.swap();
    CHECK(average.swapped());
    CHECK(model.values()[0] == values[0].second.to_vector<float>());
    CHECK_THROWS_WITH(average.update(), Catch::Contains("swap()"));
    CHECK_THROWS_AS(average.apply_to_module(), Error);
    const auto state = average.state_dict();
    CHECK_THROWS_AS(average.load_state_dict(state), Error);
    average.swap();
    CHECK(model.values() == trained);

    optim::EMA resumed(model, {.decay = 0.75, .warm_up = warm_up});
    resumed.load_state_dict(state);
    CHECK(resumed.updates() == 5);
    average.update();
    resumed.update();
    CHECK(average.values()[0].second.to_vector<float>() == resumed.values()[0].second.to_vector<float>());
    CHECK_THROWS_WITH(resumed.load_state_dict({}), Catch::Contains("step is missing; average.a is missing"));
    average.apply_to_module();
    CHECK(model.values()[1] == resumed.values()[1].second.to_vector<float>());
  }
  Two model;
  CHECK_THROWS_WITH(optim::EMA(model, 1.5), "EMA: decay cannot be 1.5");
}

TEST_CASE("averages of half precision parameters are f32") {
  struct Half : nn::Module {
    nn::Parameter p = add_parameter("p", cast(Tensor::from({1.0F}), Dtype::f16));
    Tensor forward(const Tensor& x) override { return x; }
  } model;
  optim::EMA average(model, 0.999);
  model.p.set(cast(Tensor::from({2.0F}), Dtype::f16));
  for (int n = 0; n < 3; ++n) average.update();
  // In f16 an average would not leave 1 by so little.
  CHECK(average.state_dict()[1].second.to_vector<float>()[0] == Approx(2 - std::pow(0.999, 3)).epsilon(1e-6));
  CHECK(average.values()[0].second.dtype() == Dtype::f16);
  average.swap();
  CHECK(model.p.value().dtype() == Dtype::f16);
}

TEST_CASE("averages hold no graph") {
  Two model;
  optim::EMA average(model, 0.9);
  optim::SGD optimizer(model, {.learning_rate = 0.01});
  const auto round = [&] {
    optimizer.step(model.loss());
    average.update();
  };
  round();
  const auto alive = Node::alive();
  for (int n = 0; n < 5; ++n) round();
  CHECK(Node::alive() == alive);
}

TEST_CASE("a search for the learning rate finds where the loss falls, and leaves nothing behind") {
  manual_seed(3);
  nn::Sequential model{nn::Linear{4, 8}, nn::BatchNorm1d{8}, relu, nn::Dropout{0.1}, nn::Linear{8, 1}};
  optim::SGD optimizer({model, [](const auto& name) { return name.ends_with("weight"); }},
                       {.learning_rate = 0.07, .momentum = 0.5});
  optimizer.add_group({model, [](const auto& name) { return name.ends_with("bias"); }}, {.learning_rate = 0.01});
  const Tensor x = randn({16, 4});
  const auto loss = [&] { return mean(square(model(x) - sum(x, {1}, true))); };
  optimizer.step(loss());
  const auto everything = [&] {
    std::vector<Floats> all;
    for (const auto& [name, tensor] : model.state_dict()) all.push_back(tensor.to_vector<float>());
    for (const auto& [name, tensor] : optimizer.state_dict()) all.push_back(tensor.to_vector<float>());
    return all;
  };
  const auto before = everything();
  const auto random = random_state().offset;
  const auto curve = optim::find_learning_rate(model, optimizer, loss, {.first = 1e-5, .last = 100, .steps = 60});
  CHECK(everything() == before);
  CHECK(random_state().offset == random);
  CHECK(optimizer.learning_rate(0) == 0.07);
  CHECK(optimizer.learning_rate(1) == 0.01);
  REQUIRE(curve.rates.size() == curve.losses.size());
  CHECK(curve.rates.size() > 20);
  CHECK(curve.rates[0] == Approx(1e-5));
  CHECK(curve.suggestion > 1e-4);
  CHECK(curve.suggestion < 10);

  int calls = 0;
  const auto fails = [&]() -> Tensor {
    if (++calls == 3) throw std::runtime_error("no more data");
    return loss();
  };
  CHECK_THROWS_WITH(optim::find_learning_rate(model, optimizer, fails), "no more data");
  CHECK(everything() == before);
  CHECK(optimizer.learning_rate() == 0.07);
  CHECK_THROWS_WITH(optim::find_learning_rate(model, optimizer, loss, {.first = 0}), "find_learning_rate: first cannot be 0");
  optim::Optimizer none;
  CHECK_THROWS_AS(optim::find_learning_rate(model, none, loss), Error);
}

TEST_CASE("corrections for the first steps count the steps that a parameter has made") {
  // As PyTorch: the first steps of Adam are as long as the rate, whenever a parameter begins to move.
  Two model;
  optim::Adam optimizer({model, [](const auto& name) { return name == "a"; }}, {.learning_rate = 1e-3});
  model.b.freeze();
  for (int k = 0; k < 100; ++k) optimizer.step(model.loss());
  model.b.freeze(false);
  optimizer.add_group({{{"b", model.b}}}, {.learning_rate = 1e-3});
  for (int k = 1; k <= 3; ++k) {
    optimizer.step(model.loss());
    require_near(model.values()[1], {3 - 1e-3 * k, 0.5 - 1e-3 * k, 4 - 1e-3 * k});
  }
  // Those that the loss does not reach stay, and their count with them.
  for (int k = 0; k < 50; ++k) optimizer.step(sum(square(model.a)));
  Two twin;
  twin.load_state_dict(model.state_dict());
  optim::Adam other({twin, [](const auto& name) { return name == "a"; }}, {.learning_rate = 1e-3});
  other.add_group({{{"b", twin.b}}}, {.learning_rate = 1e-3});
  other.load_state_dict(optimizer.state_dict());
  for (int k = 0; k < 3; ++k) {
    optimizer.step(model.loss());
    other.step(twin.loss());
  }
  CHECK(twin.values() == model.values());
  // Six steps of its own: the curve of Adam from its beginning.
  Two alone;
  optim::Adam fresh(alone, {.learning_rate = 1e-3});
  for (int k = 0; k < 6; ++k) fresh.step(alone.loss());
  const auto want = alone.values()[1];
  require_near(model.values()[1], {want[0], want[1], want[2]});

  auto wrong = optimizer.state_dict();
  for (auto& [name, tensor] : wrong)
    if (name == "b.step") tensor = Tensor::scalar(1000, Dtype::i64);
  CHECK_THROWS_WITH(optimizer.load_state_dict(wrong), Catch::Contains("b.step is more than the optimizer's own"));
}

TEST_CASE("a loss scale counts the steps of each parameter, too") {
  Two model;
  optim::Adam optimizer(model, {.learning_rate = 1e-3});
  optimizer.set_loss_scale();
  for (int k = 0; k < 20; ++k) optimizer.step(sum(square(model.a)));
  optimizer.step(model.loss());
  require_near(model.values()[1], {3 - 1e-3, 0.5 - 1e-3, 4 - 1e-3});
}

TEST_CASE("rates of groups are in the state, and keep their proportions through rates of 0 and warm-ups") {
  Two model;
  const auto make = [](const Two& m, double of_a, double of_b) {
    optim::SGD optimizer({m, [](const auto& name) { return name == "a"; }}, {.learning_rate = of_a});
    optimizer.add_group({{{"b", m.b}}}, {.learning_rate = of_b});
    return optimizer;
  };
  auto optimizer = make(model, 0.1, 0.01);
  optimizer.set_group_learning_rate(0, 0);
  optimizer.set_learning_rate(0.1);
  CHECK(optimizer.learning_rate(1) == Approx(0.01));
  optim::SGD warming({model, [](const auto& name) { return name == "a"; }}, {.learning_rate = 0.1});
  warming.set_learning_rate(0.001);
  warming.add_group({{{"b", model.b}}}, {.learning_rate = 0.01});
  CHECK(warming.learning_rate(1) == 0.01);
  warming.set_learning_rate(0.1);
  CHECK(warming.learning_rate(1) == Approx(0.01));

  optimizer.set_learning_rate(1e-4);
  auto other = make(model, 0.5, 0.5);
  other.load_state_dict(optimizer.state_dict());
  CHECK(other.learning_rate(0) == 1e-4);
  CHECK(other.learning_rate(1) == optimizer.learning_rate(1));
  other.set_learning_rate(0.1);
  CHECK(other.learning_rate(1) == Approx(0.01));
  auto older = optimizer.state_dict();
  std::erase_if(older, [](const auto& entry) { return entry.first.find("_rate.") != std::string::npos; });
  auto kept = make(model, 0.5, 0.25);
  kept.load_state_dict(older);
  CHECK(kept.learning_rate(1) == 0.25);
}

TEST_CASE("a search for the learning rate leaves parameters of other modules, too") {
  Two body, head;
  optim::SGD optimizer(body, {.learning_rate = 0.1});
  optimizer.add_group({{{"head.a", head.a}}}, {.learning_rate = 0.1});
  const auto before = head.values();
  (void)optim::find_learning_rate(body, optimizer, [&] { return body.loss() + sum(square(head.a)); }, {.steps = 10});
  CHECK(head.values() == before);
}

TEST_CASE("averages that the module holds must not be trained") {
  Two model;
  optim::EMA average(model, 0.9);
  optim::SGD optimizer(model, {.learning_rate = 0.1});
  optimizer.step(model.loss());
  average.update();
  average.swap();
  optimizer.step(model.loss());
  CHECK_THROWS_WITH(average.swap(), "EMA: a has changed while the module held the averages");
  CHECK(average.swapped());
}

TEST_CASE("AdamW decays where only its rate is given, as PyTorch's") {
  Two model;
  optim::AdamW optimizer(model, {.learning_rate = 0.1});
  optimizer.apply({zeros({2}), zeros({3})});
  require_near(model.values()[0], {0.999, -1.998});
}
