// Models as users take them apart: parts by name, heads replaced, deep copies, weights that fit in part.
#include <catch2/catch.hpp>
#include <cmath>
#include <concepts>
#include <memory>

#include "clnet/clnet.h"
#include "tests/ops/values.h"

using namespace clnet;
using testing::Floats;
using testing::values_of;

namespace {

using Names = std::vector<std::string>;

struct BodyAndHead : nn::Module {
  nn::Sequential body{nn::Linear{3, 4}, tanh, nn::BatchNorm1d{4}};
  nn::Linear fc{4, 2};
  BodyAndHead() {
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
  /// No function of Module hides clnet::eval().
  void compute(const Tensor& x) { eval({x}); }
};

Floats weight(const nn::Module& m, const std::string& name) { return values_of(m.parameter(name)); }

}  // namespace

TEST_CASE("a Sequential takes layers, functions by name, lambdas and whole models") {
  auto net = nn::Sequential{nn::Linear{3, 3}, tanh, gelu, leaky_relu, [](const Tensor& x) { return x * 2.0; }};
  const Tensor x = ones({1, 3});
  CHECK(net(x).shape() == Shape{1, 3});
  CHECK(net.children() == Names{"0"});

  auto whole = nn::Sequential{models::make("mlp", {1, 4, 4}, 5), nn::Linear{5, 2}, relu};
  CHECK(whole(zeros({2, 1, 4, 4})).shape() == Shape{2, 2});
  CHECK(whole.children() == Names{"0", "1"});
  auto nested = nn::Sequential{net, nn::tied(net)};
  CHECK(nested.children() == Names{"0", "1"});
  CHECK(nested.parameters().size() == 2);
  const auto same = nn::Sequential{net};
  CHECK(same.children() == Names{"0"});
  CHECK(same.parameter("0.weight").same(net.parameter("0.weight")));
}

TEST_CASE("pointers to models of any class are layers of a Sequential") {
  const Tensor x = Tensor::from({1.0, 2.0, 3.0, -1.0, 0.5, 2.0}, {2, 3});
  const auto shared = std::make_shared<BodyAndHead>();
  nn::Sequential one{shared}, other{std::make_unique<BodyAndHead>()};
  CHECK(values_of(one(x)) == values_of((*shared)(x)));
  CHECK(one.children() == Names{"0"});
  CHECK(other(x).shape() == Shape{2, 2});
  one.append(std::make_shared<nn::Linear>(2, 5));
  CHECK(one(x).shape() == Shape{2, 5});
  std::vector<std::shared_ptr<nn::Module>> list{std::make_shared<nn::Linear>(3, 4), std::make_shared<BodyAndHead>()};
  nn::Sequential of_list;
  for (const auto& layer : list) of_list.append(layer);
  CHECK(of_list.children() == Names{"0", "1"});
  static_assert(!std::constructible_from<nn::Step, nn::Module&>, "the layer's class would be lost");
}

TEST_CASE("one Sequential in a Sequential is it, and one by pointer its child") {
  nn::Sequential backbone{nn::Linear{3, 4}, relu};
  nn::Sequential same{backbone}, nested;
  nested.append(backbone);
  nested.append(nn::Linear{4, 2});
  CHECK(backbone(ones({1, 3})).shape() == Shape{1, 4});
  CHECK(nested.parameters()[0].first == "0.0.weight");
  same.append(nn::Linear{4, 2});
  CHECK(backbone(ones({1, 3})).shape() == Shape{1, 2});

  CHECK(nn::Sequential{models::make("mlp", {1, 2, 2}, 2)}.parameters()[0].first == "0.1.weight");
  CHECK(nn::Sequential{models::make("resnet20", {3, 8, 8}, 2)}.parameters()[0].first == "0.conv1.weight");
  CHECK(nn::Sequential{std::make_shared<nn::Sequential>(backbone)}.parameters()[0].first == "0.0.weight");
  struct Own : nn::Sequential {
    Own() { append(nn::Linear{3, 3}); }
    Tensor forward(const Tensor& x) override { return nn::Sequential::forward(x) * 0.0; }
  };
  std::vector<nn::Sequential> blocks;
  blocks.emplace_back(nn::Linear{3, 2}, relu);
  blocks.push_back({nn::Linear{3, 2}, relu});
  CHECK(blocks[1](ones({1, 3})).shape() == Shape{1, 2});
  CHECK(values_of(nn::Sequential{Own(), relu}(ones({1, 3}))) == Floats(3, 0));
}

TEST_CASE("a const module can be called, as the handle that it is") {
  const nn::Linear layer{2, 3};
  const nn::Sequential net{layer, relu};
  const nn::MultiheadAttention attention{2, 1};
  const Tensor x = ones({1, 2});
  CHECK(values_of(net(x)) == values_of(relu(layer(x))));
  CHECK(attention(x, x, x).shape() == x.shape());
}

TEST_CASE("a module of several inputs needs no forward of one") {
  TwoInputs module;
  const Tensor x = ones({1, 2});
  module.compute(module(x, x));
  nn::Module& base = module;
  CHECK_THROWS_WITH(base(x), "TwoInputs: has no forward() of one tensor (Tensor forward(const Tensor& x) override)");
  const auto by_parameter = gradients(sum(module(x, x)), module.parameters());
  REQUIRE(by_parameter.size() == 4);
  CHECK(values_of(by_parameter[1]) == Floats{1, 1});
}

TEST_CASE("parts of a model by name") {
  BodyAndHead net;
  CHECK(net.children() == Names{"body", "fc"});
  CHECK(net.child("body").children() == Names{"0", "2"});
  CHECK(net.child("body.0").parameter("weight").same(net.parameter("body.0.weight")));
  CHECK(net.parameter("body.2.running_mean").value().shape() == Shape{4});
  net.child("body").inference();
  CHECK_FALSE(net.body.training());
  CHECK(net.training());
  CHECK_THROWS_WITH(net.parameter("body.1.weight"),
                    "module: there is no parameter or buffer 'body.1.weight'; there are body.0.weight, body.0.bias, "
                    "body.2.weight, body.2.bias, "
                    "body.2.running_mean, body.2.running_var, body.2.num_batches_tracked, fc.weight and 1 more");
  CHECK_THROWS_WITH(net.child("head"), "module: there is no child 'head'; there are body, fc");
  CHECK(net.child("body")(ones({2, 3})).shape() == Shape{2, 4});
}

TEST_CASE("a head is replaced, also of a network that is only known by name") {
  auto net = models::make("resnet20", {3, 8, 8}, 10);
  net->replace("fc", nn::Linear{64, 7});
  net->inference();
  CHECK((*net)(zeros({2, 3, 8, 8})).shape() == Shape{2, 7});
  CHECK(net->parameter("fc.weight").value().shape() == Shape{7, 64});
  CHECK(net->parameters().back().second.value().shape() == Shape{7});
  CHECK(net->summary({3, 8, 8}).find("Linear(64, 7)") != std::string::npos);
  net->replace("fc", nn::Sequential{nn::Dropout{}, nn::Linear{64, 3}});
  CHECK((*net)(zeros({2, 3, 8, 8})).shape() == Shape{2, 3});
  CHECK(net->parameter("fc.1.weight").value().shape() == Shape{3, 64});
  CHECK_THROWS_WITH(net->replace("head", nn::Linear{1, 1}),
                    "module: there is no child 'head' to replace; there are conv1, bn1, layer1, layer2, layer3, fc");

  // It trains: the optimizer sees the new head's parameters.
  net->train();
  auto sgd = optim::SGD{*net, {.learning_rate = 0.1}};
  const auto before = weight(*net, "fc.1.weight");
  sgd.step(cross_entropy((*net)(ones({2, 3, 8, 8})), Tensor::from({0, 1})));
  CHECK(weight(*net, "fc.1.weight") != before);
}

TEST_CASE("a replacement may not contain what it replaces") {
  BodyAndHead net;
  CHECK_THROWS_WITH(net.replace("body", nn::Sequential{net.body, relu}),
                    "module: what is to replace 'body' is the module itself or contains it");
}

TEST_CASE("a clone has parameters of its own") {
  BodyAndHead net;
  auto copy = nn::clone(net);
  CHECK(weight(copy, "fc.weight") == weight(net, "fc.weight"));
  CHECK_FALSE(copy.parameter("fc.weight").same(net.parameter("fc.weight")));
  CHECK(copy.fc.parameter("weight").same(copy.parameter("fc.weight")));
  CHECK(copy.body.parameter("0.weight").same(copy.parameter("body.0.weight")));

  const Tensor x = Tensor::from({1.0, 2.0, 3.0, -1.0, 0.5, 2.0}, {2, 3});
  net.inference();
  copy.inference();
  const auto expected = values_of(net(x));
  CHECK(values_of(copy(x)) == expected);
  for (auto& [name, parameter] : copy.parameters()) parameter.set(zeros_like(parameter));
  CHECK(values_of(net(x)) == expected);
  CHECK(values_of(copy(x)) == Floats(4, 0));
  // A copy that is no clone still shares.
  const BodyAndHead shared = net;
  CHECK(shared.parameter("fc.weight").same(net.parameter("fc.weight")));
  CHECK_THROWS_WITH(nn::clone(nn::Sequential{models::make("mlp", {1, 2, 2}, 2), relu}), Catch::Contains("is held by pointer"));
}

namespace {

/// Layers of any kind, held by pointer.
struct List : nn::Module {
  std::vector<std::shared_ptr<nn::Module>> layers{std::make_shared<nn::Linear>(3, 4), std::make_shared<nn::Linear>(4, 2)};
  List() {
    for (std::size_t i = 0; i < layers.size(); ++i) add(std::to_string(i), *layers[i]);
  }
  Tensor forward(const Tensor& x) override { return (*layers[1])((*layers[0])(x)); }
};

/// A layer that is there for its parameters only, and one of which a parameter is used.
struct Spare : nn::Module {
  nn::Parameter used;
  Spare()
      : used([this] {
          const nn::Linear layer{3, 3};
          add("layer", layer);
          add("spare", nn::Linear{2, 2});
          return layer.parameter("weight");
        }()) {}
  Tensor forward(const Tensor& x) override { return matmul(x, used) + parameter("layer.bias").value(); }
};

}  // namespace

TEST_CASE("there is no clone that would go on with the parameters of the model") {
  CHECK_THROWS_WITH(nn::clone(List()), Catch::StartsWith("clone: child '") && Catch::Contains("is held by pointer"));
  // Nothing of it stays behind.
  const BodyAndHead net;
  const BodyAndHead shared = net;
  CHECK(shared.parameter("fc.weight").same(net.parameter("fc.weight")));

  Spare spare;
  auto copy = nn::clone(spare);
  const Tensor x = ones({1, 3});
  CHECK(values_of(copy(x)) == values_of(spare(x)));
  copy.parameter("layer.weight").set(zeros({3, 3}));
  copy.parameter("layer.bias").set(zeros({3}));
  CHECK(values_of(copy(x)) == Floats(3, 0));
  CHECK(values_of(spare(x)) != Floats(3, 0));
  nn::TransformerEncoder encoder{4, 2, 2, {.dim_feedforward = 8}, true};
  CHECK_NOTHROW(nn::clone(nn::Sequential{encoder, [encoder](const Tensor& y) mutable { return encoder(y); }}));
}

template <class M>
concept Clonable = requires(const M& module) {
  { nn::clone(module) } -> std::same_as<M>;
};

TEST_CASE("a model that is only known by pointer has no clone, and is made once more") {
  static_assert(!Clonable<nn::Module> && !Clonable<models::LanguageModel> && Clonable<models::CharGpt>);
  const auto check = [](nn::Module& net, nn::Module& other, const Tensor& x) {
    net.inference();
    other.inference();
    const auto expected = values_of(net(x));
    CHECK(values_of(other(x)) == expected);
    const auto own = net.parameters(), its = other.parameters();
    REQUIRE(own.size() == its.size());
    for (std::size_t i = 0; i < own.size(); ++i) {
      CHECK(own[i].first == its[i].first);
      CHECK_FALSE(own[i].second.same(its[i].second));
      nn::Parameter(its[i].second).set(zeros_like(its[i].second.value()));
    }
    CHECK(values_of(net(x)) == expected);
    CHECK(values_of(other(x)) != expected);
  };
  const Tensor characters = Tensor::from(std::vector<std::int32_t>{1, 2, 0, 3}, Shape{1, 4});
  for (const auto& [name, sample, x] :
       {std::tuple("mlp", Shape{1, 8, 8}, rand({2, 1, 8, 8})), std::tuple("resnet20", Shape{3, 8, 8}, rand({2, 3, 8, 8})),
        std::tuple("char-lstm", Shape{4}, characters)}) {
    INFO(name);
    const auto net = models::make(name, sample, 5), other = models::make(name, sample, 5);
    other->load_state_dict(net->state_dict());
    check(*net, *other, x);
  }
  models::CharGpt gpt{5, {.context = 4}};
  auto copy = nn::clone(gpt);
  check(gpt, copy, characters);
}

TEST_CASE("what a module can make anew moves with it, and is not saved") {
  nn::Sequential net{nn::PositionalEncoding{4, {.dropout = 0}}};
  CHECK(net.state_dict().empty());
  CHECK(net.parameters().empty());
  CHECK(net.buffers().size() == 1);
  CHECK(net.parameter("0.pe").value().shape() == Shape{5000, 4});
  CHECK_NOTHROW(net.load_state_dict({}));
  const Tensor x = zeros({1, 2, 4});
  const auto before = values_of(net(x));
  auto copy = nn::clone(net);
  copy.parameter("0.pe").set(zeros({5000, 4}));
  CHECK(values_of(copy(x)) == Floats(8, 0));
  CHECK(values_of(net(x)) == before);
  for (const auto& info : Device::list()) {
    const auto device = Device::find(std::to_string(info.platform_index) + ":" + std::to_string(info.device_index));
    net.to(device);
    CHECK(values_of(net(copy_to(x, device))) == before);
  }
}

TEST_CASE("modes are kept one by one") {
  BodyAndHead net;
  net.child("body").inference();
  {
    const nn::KeptModes kept(net);
    net.train();
    CHECK(net.body.training());
    net.inference();
  }
  CHECK(net.training());
  CHECK(net.fc.training());
  CHECK_FALSE(net.body.training());
}

TEST_CASE("small layers") {
  const Tensor x = reshape(arange(12, 0, 1, Dtype::f32), {2, 6});
  CHECK(values_of(nn::Identity()(x)) == values_of(x));
  CHECK(nn::Unflatten{1, {2, 3}}(x).shape() == Shape{2, 2, 3});
  CHECK(nn::Unflatten{-2, {2, 1}}(x).shape() == Shape{2, 1, 6});
  CHECK_THROWS_WITH((nn::Unflatten{1, {2, 2}}(x)), "Unflatten: dimension 1 of f32[2, 6] is not [2, 2]");

  nn::Embedding words{4, 3, {.padding_idx = -1}};
  CHECK(words.kind() == "Embedding(4, 3, padding_idx=-1)");
  const auto ids = Tensor::from({3, 0, 3});
  CHECK(values_of(words(ids)[0]) == Floats(3, 0));
  CHECK(values_of(nn::gradients(sum(words(ids)), words.parameters())[0]) == Floats{1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  CHECK_THROWS_WITH((nn::Embedding{4, 3, {.padding_idx = 4}}), "Embedding: padding_idx 4 is none of 4 rows");
  CHECK(nn::Sequential{words, nn::Linear{3, 2}}.summary({5}, Dtype::i64).find("[1, 5, 2]") != std::string::npos);
  CHECK_THROWS_WITH(nn::InstanceNorm1d{3}(zeros({3, 1})),
                    "InstanceNorm1d(3): expected more than 1 value per channel when training, got f32[3, 1]");
  CHECK_THROWS_WITH(nn::InstanceNorm2d{3}(zeros({4, 4})), "InstanceNorm2d(3): expected {batch, 3, height, width}, got f32[4, 4]");
}

TEST_CASE("initial values") {
  manual_seed(1);
  const auto deviation = [](const Tensor& w) { return stddev(w).item<double>(); };
  CHECK(deviation(nn::init::xavier_normal({200, 100})) == Approx(std::sqrt(2.0 / 300)).epsilon(0.02));
  CHECK(deviation(nn::init::xavier_uniform({200, 100}, 2)) == Approx(2 * std::sqrt(2.0 / 300)).epsilon(0.02));
  CHECK(values_of(nn::init::constant({2}, 0.5)) == Floats{0.5F, 0.5F});
  const auto cut = nn::init::trunc_normal({100, 100}, 1, 2, 0, 2);
  CHECK(min(cut).item() >= 0);
  CHECK(max(cut).item() <= 2);
  CHECK(mean(cut).item() == Approx(1).epsilon(0.03));
  CHECK(deviation(cut) == Approx(2 * 0.2839).epsilon(0.03));  // of a normal cut at half a deviation on each side
  CHECK(deviation(nn::init::trunc_normal({100, 100})) == Approx(0.8796).epsilon(0.02));
  CHECK_THROWS_AS(nn::init::trunc_normal({2}, 0, 0), Error);
  for (const Shape& shape : {Shape{3, 5}, Shape{5, 3}, Shape{4, 2, 2}}) {
    const auto w = flatten(nn::init::orthogonal(shape, 2), 1, -1);
    const auto product = w.size(0) <= w.size(1) ? matmul(w, transpose(w, 0, 1)) : matmul(transpose(w, 0, 1), w);
    for (std::int64_t i = 0; i < product.size(0); ++i)
      for (std::int64_t j = 0; j < product.size(0); ++j) CHECK(product[{i, j}].item() == Approx(i == j ? 4 : 0).margin(1e-5));
  }
}

TEST_CASE("names that fit no line, and very many of them, are told in one line") {
  BodyAndHead net;
  auto state = net.state_dict();
  for (int i = 0; i < 1000; ++i) state.emplace_back("\n" + std::to_string(i) + std::string(1000, 'a'), zeros({1}));
  std::string text;
  try {
    net.load_state_dict(state);
  } catch (const Error& error) {
    text = error.what();
  }
  CHECK_THAT(text, Catch::Contains("\"?0aaa") && Catch::Contains("and 981 more") && !Catch::Contains("\n"));
  CHECK(text.size() < 4000);
}

TEST_CASE("weights that fit in part") {
  BodyAndHead net;
  auto state = BodyAndHead().state_dict();
  const auto first = state.front().second.to_vector<float>();
  std::erase_if(state, [](const auto& entry) { return entry.first.starts_with("fc."); });
  state.emplace_back("head.weight", zeros({1}));
  CHECK_THROWS_WITH(net.load_state_dict(state),
                    Catch::Contains("fc.weight is missing") && Catch::Contains("head.weight is not in the model"));
  const auto kept = weight(net, "fc.weight");
  const auto left_out = net.load_state_dict(state, {.strict = false});
  CHECK(left_out.missing == Names{"fc.weight", "fc.bias"});
  CHECK(left_out.unknown == Names{"head.weight"});
  CHECK(weight(net, "fc.weight") == kept);
  CHECK(weight(net, "body.0.weight") == first);
  state.front().second = zeros({9});
  CHECK_THROWS_WITH(net.load_state_dict(state, {.strict = false}), Catch::Contains("body.0.weight is f32[9]"));
  const auto body = weight(net, "body.0.weight");
  const auto rest = net.load_state_dict(state, {.strict = false, .skip_unfitting = true});
  CHECK(rest.unfitting == Names{"body.0.weight"});
  CHECK(rest.missing == Names{"fc.weight", "fc.bias"});
  CHECK(weight(net, "body.0.weight") == body);
}

TEST_CASE("an error on the way says in which layer") {
  BodyAndHead net;
  CHECK_THROWS_WITH(net(zeros({2, 5})), Catch::StartsWith("in body.0: linear: "));
  auto outer = nn::Sequential{relu, net};
  CHECK_THROWS_AS(outer(zeros({2, 5})), ShapeError);
  CHECK_THROWS_WITH(outer(zeros({2, 5})), Catch::StartsWith("in 1.body.0: linear: "));
  CHECK_THROWS_WITH(nn::Linear(2, 3)(zeros({2, 5})), Catch::StartsWith("linear: "));
}

TEST_CASE("a model moves to a device") {
  BodyAndHead net;
  const auto before = weight(net, "fc.weight");
  net.to(Device::current());
  CHECK(weight(net, "fc.weight") == before);
}
