// Models as users take them apart: parts by name, heads replaced, deep copies, weights that fit in part.
#include <catch2/catch.hpp>

#include "clnet/clnet.h"

using namespace clnet;

namespace {

using Floats = std::vector<float>;
using Names = std::vector<std::string>;

struct Net : nn::Module {
  nn::Sequential body{nn::Linear{3, 4}, tanh, nn::BatchNorm1d{4}};
  nn::Linear fc{4, 2};
  Net() {
    add("body", body);
    add("fc", fc);
  }
  Tensor forward(const Tensor& x) override { return fc(body(x)); }
};

struct TwoInputs : nn::Module {
  nn::Linear left{2, 2}, right{2, 2};
  TwoInputs() {
    add("left", left);
    add("right", right);
  }
  Tensor operator()(const Tensor& a, const Tensor& b) { return left(a) + right(b); }
  std::string kind() const override { return "TwoInputs"; }
  /// eval() of values is not hidden by that of the mode.
  void compute(const Tensor& x) { eval({x}); }
};

Floats values(const Tensor& x) { return x.to_vector<float>(); }
Floats weight(const nn::Module& m, const std::string& name) { return values(m.parameter(name)); }

}  // namespace

TEST_CASE("a Sequential takes layers, functions by name, lambdas and whole models") {
  auto net = nn::Sequential{nn::Linear{3, 3}, tanh, gelu, leaky_relu, [](const Tensor& x) { return x * 2.0; }};
  const Tensor x = ones({1, 3});
  CHECK(net(x).shape() == Shape{1, 3});
  CHECK(net.children() == Names{"0"});

  auto whole = nn::Sequential{models::make("mlp", {1, 4, 4}, 5), nn::Linear{5, 2}, relu};
  CHECK(whole(zeros({2, 1, 4, 4})).shape() == Shape{2, 2});
  CHECK(whole.children() == Names{"0", "1"});
  auto nested = nn::Sequential{net, net};
  CHECK(nested.children() == Names{"0", "1"});
  CHECK(nested.parameters().size() == 2);
  const auto same = nn::Sequential{net};
  CHECK(same.children() == Names{"0"});
  CHECK(same.parameter("0.weight").same(net.parameter("0.weight")));
}

TEST_CASE("a module of several inputs needs no forward of one") {
  TwoInputs module;
  const Tensor x = ones({1, 2});
  module.compute(module(x, x));
  nn::Module& base = module;
  CHECK_THROWS_WITH(base(x), "TwoInputs: has no forward() of one tensor");
  const auto by_parameter = gradients(sum(module(x, x)), module.parameters());
  REQUIRE(by_parameter.size() == 4);
  CHECK(values(by_parameter[1]) == Floats{1, 1});
}

TEST_CASE("parts of a model by name") {
  Net net;
  CHECK(net.children() == Names{"body", "fc"});
  CHECK(net.child("body").children() == Names{"0", "2"});
  CHECK(net.child("body.0").parameter("weight").same(net.parameter("body.0.weight")));
  CHECK(net.parameter("body.2.running_mean").value().shape() == Shape{4});
  net.child("body").eval();
  CHECK_FALSE(net.body.training());
  CHECK(net.training());
  CHECK_THROWS_WITH(net.parameter("body.1.weight"), "module: there is no parameter or buffer 'body.1.weight'");
  CHECK_THROWS_WITH(net.child("head"), "module: there is no child 'head'");
  CHECK_THROWS_AS(net.child("body")(ones({2, 3})), Unsupported);
}

TEST_CASE("a head is replaced, also of a network that is only known by name") {
  auto net = models::make("resnet20", {3, 8, 8}, 10);
  net->replace("fc", nn::Linear{64, 7});
  net->eval();
  CHECK((*net)(zeros({2, 3, 8, 8})).shape() == Shape{2, 7});
  CHECK(net->parameter("fc.weight").value().shape() == Shape{7, 64});
  CHECK(net->parameters().back().second.value().shape() == Shape{7});
  CHECK(net->summary({2, 3, 8, 8}).find("Linear(64, 7)") != std::string::npos);
  net->replace("fc", nn::Sequential{nn::Dropout{}, nn::Linear{64, 3}});
  CHECK((*net)(zeros({2, 3, 8, 8})).shape() == Shape{2, 3});
  CHECK(net->parameter("fc.1.weight").value().shape() == Shape{3, 64});
  CHECK_THROWS_WITH(net->replace("head", nn::Linear{1, 1}), "module: there is no child 'head' to replace");

  // It trains: the optimizer sees the new head's parameters.
  net->train();
  auto sgd = optim::SGD{*net, {.learning_rate = 0.1}};
  const auto before = weight(*net, "fc.1.weight");
  sgd.step(cross_entropy((*net)(ones({2, 3, 8, 8})), Tensor::from({0, 1})));
  CHECK(weight(*net, "fc.1.weight") != before);
}

TEST_CASE("a replacement may not contain what it replaces") {
  Net net;
  CHECK_THROWS_WITH(net.replace("body", nn::Sequential{net.body, relu}),
                    "module: what is to replace 'body' is the module itself or contains it");
}

TEST_CASE("a clone has parameters of its own") {
  Net net;
  auto copy = nn::clone(net);
  CHECK(weight(copy, "fc.weight") == weight(net, "fc.weight"));
  CHECK_FALSE(copy.parameter("fc.weight").same(net.parameter("fc.weight")));
  CHECK(copy.fc.parameter("weight").same(copy.parameter("fc.weight")));
  CHECK(copy.body.parameter("0.weight").same(copy.parameter("body.0.weight")));

  const Tensor x = Tensor::from({1.0, 2.0, 3.0, -1.0, 0.5, 2.0}, {2, 3});
  net.eval();
  copy.eval();
  const auto expected = values(net(x));
  CHECK(values(copy(x)) == expected);
  for (auto& [name, parameter] : copy.parameters()) parameter.set(zeros_like(parameter));
  CHECK(values(net(x)) == expected);
  CHECK(values(copy(x)) == Floats(4, 0));
  // A copy that is no clone still shares.
  const Net shared = net;
  CHECK(shared.parameter("fc.weight").same(net.parameter("fc.weight")));
  CHECK_THROWS_WITH(nn::clone(nn::Sequential{models::make("mlp", {1, 2, 2}, 2), relu}), Catch::Contains("is held by pointer"));
}

TEST_CASE("weights that fit in part") {
  Net net;
  auto state = Net().state();
  const auto first = state.front().second.to_vector<float>();
  std::erase_if(state, [](const auto& entry) { return entry.first.starts_with("fc."); });
  state.emplace_back("head.weight", zeros({1}));
  CHECK_THROWS_WITH(net.load_state(state),
                    Catch::Contains("fc.weight is missing") && Catch::Contains("head.weight is not in the model"));
  const auto kept = weight(net, "fc.weight");
  const auto left_out = net.load_state(state, {.strict = false});
  CHECK(left_out.missing == Names{"fc.weight", "fc.bias"});
  CHECK(left_out.unknown == Names{"head.weight"});
  CHECK(weight(net, "fc.weight") == kept);
  CHECK(weight(net, "body.0.weight") == first);
  state.front().second = zeros({9});
  CHECK_THROWS_WITH(net.load_state(state, {.strict = false}), Catch::Contains("body.0.weight is f32[9]"));
}

TEST_CASE("an error on the way says in which layer") {
  Net net;
  CHECK_THROWS_WITH(net(zeros({2, 5})), Catch::StartsWith("in body.0: linear: "));
  auto outer = nn::Sequential{relu, net};
  CHECK_THROWS_AS(outer(zeros({2, 5})), ShapeError);
  CHECK_THROWS_WITH(outer(zeros({2, 5})), Catch::StartsWith("in 1.body.0: linear: "));
  CHECK_THROWS_WITH(nn::Linear(2, 3)(zeros({2, 5})), Catch::StartsWith("linear: "));
}

TEST_CASE("a model moves to a device") {
  Net net;
  const auto before = weight(net, "fc.weight");
  net.to(Device::current());
  CHECK(weight(net, "fc.weight") == before);
}
