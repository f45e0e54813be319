// Parameters have an identity: which leaf of the graph is whose value, what a loss knows of it, and who shares one.
#include <catch2/catch.hpp>
#include <cmath>
#include <thread>

#include "clnet/clnet.h"
#include "lib/exec/statistics.h"
#include "lib/graph/node.h"

using namespace clnet;

namespace {

/// exp(w x), or whatever `formula` says.
struct Scale : nn::Module {
  nn::Parameter weight;
  explicit Scale(float w = 1.0F) : weight(add_parameter("weight", Tensor::from({w}))) {}
  Tensor forward(const Tensor& x) override { return exp(weight * x); }
};

/// Goes against the sum of the gradients, wherever it is.
struct Blind : optim::Rule {
  std::string name() const override { return "Blind"; }
  std::vector<State> states(const Shape&) const override { return {{"sum"}}; }
  Result update(const Tensor&, const Tensor& gradient, const std::vector<Tensor>& states, const Step&) const override {
    const Tensor sum = states[0] + gradient;
    return {sum * -1.0, {sum}};
  }
};

float number(const Tensor& tensor) { return tensor.item<float>(); }

optim::SGD sgd(const nn::Module& module, double rate = 0.1) { return {module, {.learning_rate = rate}}; }

}  // namespace

TEST_CASE("a model that was given another's state does not share its gradients") {
  Scale fresh, old;
  old.load_state_dict(fresh.state_dict());
  const Tensor x = Tensor::from({0.25F, 0.5F});
  // As in PPO: the ratio of a policy to what it was. d/dw mean(exp(w x) / exp(w' x)) = mean(x) where w = w'.
  const auto ratio = mean(fresh(x) / old(x));
  const auto both = gradients(ratio, {fresh.weight, old.weight});
  CHECK(number(both[0]) == Approx(0.375));
  CHECK(number(both[1]) == Approx(-0.375));
}

TEST_CASE("a parameter has the shape and dtype of its values") {
  nn::Parameter p(zeros({2, 3}, Dtype::f16));
  CHECK(p.shape() == Shape{2, 3});
  CHECK(p.dtype() == Dtype::f16);
  const auto of_compiled = compile([&](const Tensor& x) { return x * static_cast<double>(p.shape()[1]); });
  CHECK(number(of_compiled(ones({1}))) == 3);
}

TEST_CASE("two parameters of one tensor are two leaves") {
  const Tensor initial = Tensor::from({2.0F});
  const nn::Parameter p(initial), q(initial);
  const auto g = gradients(sum(p * q * q), {p, q, initial});
  CHECK(number(g[0]) == 4);
  CHECK(number(g[1]) == 8);
  CHECK(number(g[2]) == 0);
}

TEST_CASE("a loss that was built before the parameters changed counts at the values that it was built with") {
  const Tensor one = Tensor::from({1.0F});
  Scale model(1.0F);
  auto optimizer = sgd(model);
  const Tensor first = sum(square(model.weight) * 0.5), second = sum(square(model.weight) * 2.0);
  CHECK(number(optimizer.step(first)) == Approx(0.5));
  CHECK(number(model.weight) == Approx(1 - 0.1 * 1));
  CHECK(number(optimizer.step(second)) == Approx(2));
  CHECK(number(model.weight) == Approx(0.9 - 0.1 * 4));
  CHECK(optimizer.steps() == 2);

  SECTION("also when it was set in between, and not evaluated yet") {
    const Tensor third = sum(square(model.weight) * 1.0);
    model.weight.set(model.weight * 10.0);
    optimizer.step(third);
    CHECK(number(model.weight) == Approx(5 - 0.1 * 1));
  }
}

TEST_CASE("gradients by parameters are those of the values that the loss was built with") {
  Scale model(1.0F), other;
  auto optimizer = sgd(model);
  const Tensor loss = sum(square(model.weight) * 0.5);
  optimizer.step(loss);
  CHECK(number(nn::gradients(loss, model.parameters())[0]) == 1);
  model.weight.freeze();
  CHECK(number(nn::gradients(loss, model.parameters())[0]) == 1);
  CHECK(number(nn::gradients(loss, other.parameters())[0]) == 0);
  CHECK_THROWS_WITH(nn::gradients(loss * sum(model.weight), model.parameters()),
                    Catch::StartsWith("gradients: the loss was made with 2 different values of weight"));
  CHECK_THROWS_WITH(nn::gradients(Tensor(), model.parameters()), "gradients: the loss is undefined");
}

TEST_CASE("a loss of another model is no loss for an optimizer") {
  Scale mine, other;
  auto optimizer = sgd(mine);
  const auto before = number(mine.weight);
  CHECK_THROWS_WITH(optimizer.step(sum(other(ones({2})))),
                    Catch::Contains("SGD") && Catch::Contains("weight") && Catch::Contains("none of its 1 parameters"));
  CHECK_THROWS_WITH(optimizer.step(sum(mine(ones({2})).detach())), Catch::Contains("none of its 1 parameters"));
  CHECK(number(mine.weight) == before);
  CHECK(optimizer.steps() == 0);
}

TEST_CASE("two generations of one parameter in a loss need a detach()") {
  Scale model(1.0F);
  auto optimizer = sgd(model);
  const Tensor x = Tensor::from({0.25F, 0.5F});
  const Tensor before = model(x);
  model.weight.set(Tensor::from({2.0F}));
  CHECK_THROWS_WITH(optimizer.step(mean(model(x) / before)), Catch::Contains("weight") && Catch::Contains("detach()"));
  CHECK(number(model.weight) == 2);
  // No gradient flows through indices.
  CHECK_NOTHROW(optimizer.step(mean(model(x)) + sum(cast(argmax(before, 0, true), Dtype::f32)) * 0.0));
  CHECK_NOTHROW(optimizer.step(mean(model(x) / before.detach())));
}

TEST_CASE("a value that is set but not computed is a leaf for gradients") {
  const nn::Parameter p(Tensor::from({1.0F})), q(Tensor::from({3.0F}));
  nn::Parameter average(p.value());
  average.set(average * 0.75 + q * 0.25);
  const Tensor now = average;
  const auto loss = sum(square(average) + p);
  const auto g = gradients(loss, {p, q, now});
  CHECK(number(g[0]) == 1);
  CHECK(number(g[1]) == 0);
  CHECK(number(g[2]) == Approx(3));
  CHECK(number(loss) == Approx(2.25 + 1));

  SECTION("it is computed with what reads it first, once, and keeps nothing of its graph") {
    const auto operations = exec::statistics().operations;
    CHECK(number(average) == Approx(1.5));
    CHECK(exec::statistics().operations == operations);
    CHECK(node_of(now)->inputs.empty());
  }
}

TEST_CASE("moving averages hold no graph once they are computed") {
  Scale model, average;
  auto optimizer = sgd(model, 0.01);
  const Tensor x = ones({4});
  const auto step = [&] {
    optimizer.step(sum(model(x)));
    average.weight.set(average.weight * 0.9 + model.weight * 0.1);
    average.weight.value().eval();
  };
  step();
  step();
  const auto alive = Node::alive();
  const auto plans = exec::statistics().plans_made;
  for (int k = 0; k < 10; ++k) step();
  CHECK(Node::alive() == alive);
  CHECK(exec::statistics().plans_made == plans);
}

TEST_CASE("parameters of one element have one plan, from the first step on") {
  Scale model;
  auto sgd = optim::SGD{model, {.learning_rate = 0.1, .momentum = 0.9}};
  const Tensor x = Tensor::from({1.0F, 2.0F, 3.0F});
  const auto plans = exec::statistics().plans_made;
  for (int k = 0; k < 4; ++k) sgd.step(sum(square(model(x))));
  CHECK(exec::statistics().plans_made == plans + 1);
}

TEST_CASE("threads share a value that none of them has computed yet") {
  for (int round = 0; round < 20; ++round) {
    Scale model;
    const nn::Parameter other(Tensor::from({static_cast<float>(round)}));
    model.weight.set(other * 0.01 + model.weight * 0.5);
    std::vector<std::thread> threads;
    std::vector<float> results(4);
    for (auto& result : results) threads.emplace_back([&] { result = number(sum(model(Tensor::from({1.0F})))); });
    for (auto& thread : threads) thread.join();
    for (const auto result : results) CHECK(result == Approx(std::exp(0.01 * round + 0.5)));
    CHECK(node_of(model.weight.value())->inputs.empty());
  }
}

TEST_CASE("assign() computes all values together, from those before, or changes none") {
  nn::Parameter p(Tensor::from({1.0F})), q(Tensor::from({3.0F}));
  const auto evaluations = exec::statistics().evaluations;
  nn::assign({{p, q * 2.0}, {q, p + 10.0}});
  CHECK(exec::statistics().evaluations == evaluations + 1);
  CHECK(number(p) == 6);
  CHECK(number(q) == 11);
  nn::assign({{p, q}, {q, p}});
  CHECK(number(p) == 11);
  CHECK(number(q) == 6);
  CHECK_THROWS_AS(nn::assign({{p, Tensor::from({1.0F})}, {q, ones({2})}}), ShapeError);
  CHECK(number(p) == 11);
  CHECK_THROWS_AS(p.set(ones({1}, Dtype::f16)), DtypeError);
}

TEST_CASE("a value takes the place of one that waits and cannot be computed") {
  const Kernel broken("broken", "kernel void broken(IN(x), OUT(y)) { this is no C }");
  nn::Parameter p(Tensor::from({1.0F})), q(Tensor::from({2.0F}));
  const auto breaks = [&] { q.set(broken.range({1}, {1})(q.value())); };
  optim::Optimizer optimizer(optim::Parameters(nn::NamedParameters{{"p", p}, {"q", q}}), std::make_shared<Blind>(), 0.1);
  const auto loss = sum(square(p.value()) + square(q.value()));
  breaks();
  CHECK_THROWS_AS(number(q), Error);
  // The rule looks at gradients only, those of the loss as it was built.
  optimizer.step(loss).eval();
  CHECK(number(p) == -2);
  CHECK(number(q) == -4);
  breaks();
  nn::assign({{p, Tensor::from({10.0F})}, {q, Tensor::from({20.0F})}});
  CHECK(number(p) == 10);
  CHECK(number(q) == 20);
  // What is made of it fails, and changes nothing.
  breaks();
  CHECK_THROWS_AS(nn::assign({{p, Tensor::from({3.0F})}, {q, q.value() * 2.0}}), Error);
  CHECK(number(p) == 10);
}

namespace {

/// An encoder and a decoder that share a weight, and a child under two names.
struct Tied : nn::Module {
  nn::Linear first{3, 2, {.bias = false}}, shared{2, 2};
  nn::Parameter encode, decode;
  Tied() : encode(first.parameters()[0].second), decode(add_parameter("decode", encode)) {
    add("first", first);
    add("middle", shared);
    add("again", shared);
  }
  Tensor forward(const Tensor& x) override { return matmul(shared(shared(first(x))), decode); }
};

std::vector<std::string> names(const nn::NamedParameters& parameters) {
  std::vector<std::string> result;
  for (const auto& [name, parameter] : parameters) result.push_back(name);
  return result;
}

std::vector<std::string> names(const io::StateDict& state) {
  std::vector<std::string> result;
  for (const auto& [name, tensor] : state) result.push_back(name);
  return result;
}

}  // namespace

TEST_CASE("a parameter with several names is one parameter") {
  Tied model;
  CHECK(names(model.parameters()) == std::vector<std::string>{"decode", "middle.weight", "middle.bias"});
  CHECK(names(model.state_dict()) ==
        std::vector<std::string>{"decode", "first.weight", "middle.weight", "middle.bias", "again.weight", "again.bias"});
  CHECK(model.parameter_count() == 6 + 4 + 2);
  CHECK(model.encode.same(model.decode));

  const Tensor x = Tensor::from({1.0F, -2.0F, 0.5F}, {1, 3});
  const auto loss = [&] { return mean(square(model(x) - x)); };
  const auto before = model.decode.value().to_vector<float>();
  const auto slope = gradients(loss(), {model.decode})[0].to_vector<float>();
  double norm = 0;
  for (const auto& [name, parameter] : model.parameters())
    for (const auto g : gradients(loss(), {parameter.value()})[0].to_vector<float>()) norm += double{g} * g;
  const double scale = std::min(1.0, 0.01 / std::sqrt(norm));
  optim::SGD optimizer(model, {.learning_rate = 1, .clip_norm = 0.01});
  optimizer.step(loss());
  const auto after = model.encode.value().to_vector<float>();
  for (std::size_t i = 0; i < after.size(); ++i) CHECK(after[i] == Approx(before[i] - scale * slope[i]).margin(1e-6));
  CHECK(optimizer.state_dict().size() == 3);  // steps and rates
  CHECK(optimizer.made_for(model));
}

TEST_CASE("load_state_dict wants one value for all names of a parameter, and each name once") {
  Tied model, other;
  model.load_state_dict(other.state_dict());
  CHECK(model.decode.value().to_vector<float>() == other.encode.value().to_vector<float>());

  auto state = other.state_dict();
  state[1].second = state[1].second + 1.0;
  CHECK_THROWS_WITH(model.load_state_dict(state), Catch::Contains("decode and first.weight are one in the model, but differ"));
  state = other.state_dict();
  state[1].second = (state[1].second * 1.0).detach();
  CHECK_NOTHROW(model.load_state_dict(state));
  state.push_back(state[0]);
  CHECK_THROWS_WITH(model.load_state_dict(state), Catch::Contains("decode is given twice"));
}

TEST_CASE("an optimizer's load_state_dict wants each name once, and changes nothing otherwise") {
  Scale model;
  optim::SGD optimizer(model, {.learning_rate = 0.1, .momentum = 0.9});
  optimizer.step(sum(model(ones({2}))));
  auto state = optimizer.state_dict();
  auto twice = state;
  twice.push_back(state[1]);
  CHECK_THROWS_WITH(optimizer.load_state_dict(twice), Catch::Contains("weight.momentum_buffer is given twice"));
  auto none = state;
  none[1].second = {};
  CHECK_THROWS_WITH(optimizer.load_state_dict(none), Catch::Contains("weight.momentum_buffer is undefined"));
  CHECK(optimizer.steps() == 1);
  CHECK_NOTHROW(optimizer.load_state_dict(state));
}

TEST_CASE("a module cannot contain itself") {
  struct Holder : nn::Module {
    Tensor forward(const Tensor& x) override { return x; }
    using nn::Module::add;
  };
  Holder outer, inner;
  CHECK_THROWS_WITH(outer.add("me", outer), Catch::Contains("'me'"));
  outer.add("inner", inner);
  CHECK_THROWS_WITH(inner.add("outer", outer), Catch::Contains("'outer'"));
  Holder copy = outer;
  CHECK_THROWS_AS(copy.add("copy", outer), Error);
  nn::Sequential sequential;
  CHECK_THROWS_AS(sequential.append(sequential), Error);
  CHECK(outer.parameters().empty());
}

TEST_CASE("copies of a Sequential are one module") {
  nn::Sequential a{nn::Linear{2, 3}, relu};
  nn::Sequential b = a;
  a.append(nn::Linear{3, 1});
  b.append(relu6);
  const Tensor x = Tensor::from({1.0F, 2.0F}, {1, 2});
  CHECK(a(x).shape() == Shape{1, 1});
  CHECK(a(x).to_vector<float>() == b(x).to_vector<float>());
  CHECK(names(a.parameters()) == names(b.parameters()));
  const nn::Sequential c = std::move(a);
  CHECK(a(x).to_vector<float>() == b(x).to_vector<float>());
}

TEST_CASE("what was moved from is still what it was") {
  nn::Linear layer(2, 2);
  const auto other = std::move(layer);
  CHECK(layer(ones({1, 2})).shape() == Shape{1, 2});  // NOLINT(bugprone-use-after-move)
  nn::Parameter p(ones({2}));
  const auto q = std::move(p);
  CHECK(p.same(q));  // NOLINT(bugprone-use-after-move)
  Device device = Device::current();
  const auto same = std::move(device);
  CHECK(device == same);  // NOLINT(bugprone-use-after-move)
}

TEST_CASE("names of parameters are not empty and have no dots") {
  struct Named : nn::Module {
    explicit Named(const std::string& name) { add_parameter(name, zeros({1})); }
    Tensor forward(const Tensor& x) override { return x; }
  };
  CHECK_THROWS_WITH(Named("a.b"), "module: 'a.b' is no name of a parameter: it has a dot in it");
  CHECK_THROWS_AS(Named(""), Error);
}
