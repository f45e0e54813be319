// Layers that are replaced: whose call, parameters and modes stand behind a name and behind handles afterwards.
#include <algorithm>
#include <catch2/catch.hpp>
#include <concepts>
#include <memory>

#include "clnet/clnet.h"
#include "tests/ops/values.h"

using namespace clnet;
using testing::Floats;
using testing::values_of;

namespace {

struct TwoLinears : nn::Module {
  nn::Linear body{4, 8}, fc{8, 3};
  TwoLinears() {
    add("body", body);
    add("fc", fc);
  }
  Tensor forward(const Tensor& x) override { return fc(relu(body(x))); }
};

struct Recurrent : nn::Module {
  nn::LSTM lstm{4, 8};
  nn::GRU gru{8, 8};
  nn::GRUCell cell{8, 8};
  Recurrent() {
    add("lstm", lstm);
    add("gru", gru);
    add("cell", cell);
  }
  Tensor forward(const Tensor& x) override {
    const auto output = gru(lstm(x, {Tensor{}, Tensor{}}).output, Tensor{}).output;
    return cell(output[-1], Tensor{});
  }
};

/// A user's own layer of two inputs.
struct Both : nn::Module {
  nn::Linear left{2, 2};
  Both() { add("left", left); }
  Tensor operator()(const Tensor& a, const Tensor& b) {
    return called(*this, [&](auto& self) { return self.left(a) + b; });
  }
};
struct OfBoth : nn::Module {
  Both pair;
  OfBoth() { add("pair", pair); }
  Tensor forward(const Tensor& x) override { return pair(x, x); }
};

Tensor input(const Shape& shape) {
  const auto x = randn(shape);
  x.eval();
  return x;
}

template <class M, class L>
concept Replaces = requires(M& model, const L& layer) {
  model.replace("fc", layer);
};
static_assert(Replaces<nn::Module, nn::Linear>);
static_assert(!Replaces<nn::Module, nn::Module>, "the layer's class would be lost");

}  // namespace

TEST_CASE("heads are switched, and each stays what it is") {
  TwoLinears net;
  const Tensor x = input({5, 4}), features = input({2, 8});
  nn::Linear a{8, 3}, b{8, 3};
  const auto original = net.fc.parameter("weight");
  const auto of_a = values_of(a(features)), of_b = values_of(b(features));
  net.replace("fc", a);
  CHECK(values_of(net.fc(features)) == of_a);
  net.replace("fc", b);
  CHECK(values_of(a(features)) == of_a);
  CHECK(values_of(net.fc(features)) == of_b);
  CHECK(net.parameter("fc.weight").same(b.parameter("weight")));
  net.replace("fc", a);
  CHECK(values_of(net.fc(features)) == of_a);
  CHECK(values_of(b(features)) == of_b);
  CHECK(net.parameter("fc.weight").same(a.parameter("weight")));

  SECTION("also by what was there first") {
    TwoLinears other;
    nn::Linear old = other.fc;
    const auto before = values_of(other(x));
    other.replace("fc", a);
    CHECK(values_of(other(x)) != before);
    other.replace("fc", old);
    CHECK(values_of(other(x)) == before);
    CHECK_FALSE(other.parameter("fc.weight").same(a.parameter("weight")));
  }
  SECTION("in one model, whatever another does with the layer") {
    TwoLinears other;
    other.replace("fc", a);
    const auto before = values_of(other(x));
    net.replace("fc", nn::Linear{8, 7});
    CHECK(values_of(other(x)) == before);
    CHECK(net(x).shape() == Shape{5, 7});
  }
  SECTION("a replacement that is replaced itself is followed") {
    nn::Sequential outer{nn::Linear{8, 3}};
    net.replace("fc", outer);
    outer.replace("0", a);
    CHECK(values_of(net.fc(features)) == of_a);
    CHECK(net.parameter("fc.0.weight").same(a.parameter("weight")));
    net.replace("fc.0", b);
    CHECK(values_of(outer(features)) == of_b);
    CHECK(values_of(a(features)) == of_a);
  }
  CHECK_FALSE(original.same(a.parameter("weight")));
}

TEST_CASE("a layer cannot stand in for what contains it") {
  TwoLinears net;
  CHECK_THROWS_WITH(net.replace("fc", nn::Sequential{nn::Dropout{}, net.fc}), Catch::Contains("contains it"));
  nn::Sequential a{nn::Linear{4, 4}}, b{nn::Linear{4, 4}};
  nn::Linear inner{4, 4};
  a.replace("0", inner);
  CHECK_THROWS_WITH(a.replace("0", a), Catch::Contains("contains it"));
  b.append(inner);
  const auto original = a.child("0");
  b.replace("1", nn::Linear{4, 4});
  CHECK(a(ones({1, 4})).shape() == Shape{1, 4});
}

TEST_CASE("a replacement brings no second layer of one name") {
  struct Open : nn::Module {
    using Module::add;
  };
  Open net, other;
  net.add("a", nn::Sequential{relu});
  net.add("a.b", nn::Linear{4, 4});
  other.add("b", nn::Linear{4, 4});
  nn::Sequential outer{net};
  const auto count = net.parameter_count();
  const auto* said = "module: the name 'a.b' is ambiguous: there are 'b' of 'a' and 'a.b'";
  CHECK_THROWS_WITH(net.replace("a", other), said);
  CHECK_THROWS_WITH(outer.replace("0.a", other), said);
  CHECK(net.child("a").kind() == "Sequential");
  CHECK(net.child("a.b").kind() == "Linear(4, 4)");
  CHECK(net.parameter_count() == count);
  CHECK_NOTHROW(other.add("c", nn::Linear{4, 4}));
  // The replacement that was there before stays.
  nn::Linear first{4, 2};
  net.replace("a", first);
  CHECK_THROWS_WITH(net.replace("a", other), said);
  CHECK(net.child("a").same(first));
  CHECK(net.parameter("a.weight").same(first.parameter("weight")));
  // A name with a dot comes with the replacement.
  Open whole, dotted;
  whole.add("x", nn::Sequential{relu});
  whole.add("x.q", nn::Sequential{nn::Linear{4, 4}});
  dotted.add("q.0", nn::Linear{4, 4});
  CHECK_THROWS_WITH(whole.replace("x", dotted), Catch::Contains("the name 'x.q.0' is ambiguous"));
}

TEST_CASE("handles of a replaced layer stand for the new one") {
  TwoLinears net;
  const auto part = net.child("fc");
  auto handle = net.fc;
  nn::Linear head{8, 3};
  net.replace("fc", head);
  const auto weight = net.parameter("fc.weight");
  CHECK(weight.same(head.parameter("weight")));
  CHECK(net.fc.parameter("weight").same(weight));
  CHECK(part.parameters()[0].second.same(weight));
  CHECK(values_of(net.fc.state_dict()[0].second) == values_of(head.state_dict()[0].second));
  CHECK(net.fc.parameter_count() == 27);
  handle.freeze();
  CHECK(weight.frozen());
  handle.freeze(false);
  net.child("fc").inference();
  CHECK_FALSE(net.fc.training());
  CHECK_FALSE(head.training());
  net.fc.train();
  CHECK(head.training());
  net.fc.load_state_dict({{"weight", zeros({3, 8})}, {"bias", zeros({3})}});
  CHECK(values_of(head.parameter("weight")) == Floats(24, 0));
  net.fc.to(Device::current());
  CHECK(net.fc.summary({8}).find("27 parameters") != std::string::npos);
  // An optimizer of the member moves what is called.
  optim::SGD sgd{net.fc, {.learning_rate = 0.1}};
  sgd.step(cross_entropy(net(input({5, 4})), Tensor::from({0, 1, 2, 0, 0})));
  CHECK(values_of(head.parameter("bias")) != Floats(3, 0));

  nn::Sequential body{nn::Linear{2, 2}};
  nn::Sequential whole{body, relu};
  whole.replace("0", nn::Linear{2, 2});
  CHECK_THROWS_WITH(body.append(nn::Linear{2, 2}), "module: '0' has been replaced, and cannot get a '1'");
}

TEST_CASE("a layer that is called with states is replaced by one of its class") {
  Recurrent net;
  const Tensor x = input({2, 3, 4});
  nn::LSTM lstm{4, 8};
  auto before = values_of(net(x));
  const auto changes = [&](const std::string& name, const nn::Step& layer) {
    net.replace(name, layer);
    const auto after = values_of(net(x));
    CHECK(after != before);
    before = after;
  };
  changes("lstm", lstm);
  changes("gru", nn::GRU{8, 8});
  changes("cell", nn::GRUCell{8, 8});
  CHECK(net.parameter("lstm.weight_ih_l0").same(lstm.parameter("weight_ih_l0")));
  optim::SGD sgd{net, {.learning_rate = 0.1}};
  const auto weight = values_of(lstm.parameter("weight_ih_l0"));
  sgd.step(mean(net(x)));
  CHECK(values_of(lstm.parameter("weight_ih_l0")) != weight);

  net.replace("lstm", nn::GRU{4, 8});
  CHECK_THROWS_WITH(net(x),
                    "in lstm: LSTM(4, 8) was replaced by GRU(4, 8), but is called with several inputs or asked for its layers; "
                    "that needs one of its class");
  net.replace("lstm", relu);
  CHECK_THROWS_WITH(net(x), Catch::StartsWith("in lstm: LSTM(4, 8) was replaced by function,"));
}

TEST_CASE("an encoder's layers and what is in them are replaced") {
  const nn::TransformerLayerOptions options{.dim_feedforward = 16, .dropout = 0};
  nn::TransformerEncoder encoder{8, 2, 2, options};
  const Tensor x = input({3, 2, 8});
  auto before = values_of(encoder(x, {.is_causal = true}));
  const auto changes = [&](const std::string& name, const nn::Step& layer) {
    encoder.replace(name, layer);
    const auto after = values_of(encoder(x, {.is_causal = true}));
    CHECK(after != before);
    before = after;
  };
  changes("layers.0", nn::TransformerEncoderLayer{8, 2, options});
  changes("layers.1.self_attn", nn::MultiheadAttention{8, 2});
  changes("layers.1.linear1", nn::Linear{8, 16});
  changes("layers.0.self_attn", nn::MultiheadAttention{8, 4});
  optim::SGD sgd{encoder, {.learning_rate = 0.1}};
  const auto weight = values_of(encoder.parameter("layers.0.self_attn.in_proj_weight"));
  sgd.step(mean(square(encoder(x))));
  CHECK(values_of(encoder.parameter("layers.0.self_attn.in_proj_weight")) != weight);

  auto copy = nn::clone(encoder);
  CHECK(values_of(copy(x)) == values_of(encoder(x)));
  copy.parameter("layers.0.linear1.weight").set(zeros({16, 8}));
  CHECK(values_of(copy(x)) != values_of(encoder(x)));

  encoder.replace("layers.0", nn::Linear{8, 8});
  CHECK_THROWS_WITH(
      encoder(x), Catch::StartsWith("in layers.0: TransformerEncoderLayer(") && Catch::Contains("was replaced by Linear(8, 8)"));
}

TEST_CASE("attention step by step is that of the replacement") {
  nn::Sequential net{nn::MultiheadAttention{4, 2, {.batch_first = true}}};
  nn::MultiheadAttention first{4, 2, {.batch_first = true}}, second{4, 2, {.batch_first = true}};
  net.append(first);
  net.replace("1", second);
  auto cache = first.cache(1, 4), other = second.cache(1, 4);
  const Tensor x = input({1, 2, 4});
  CHECK(values_of(first.step(x, cache)) == values_of(second.step(x, other)));
  CHECK(values_of(first.forward_with_weights(x, x, x).weights) == values_of(second.forward_with_weights(x, x, x).weights));
}

TEST_CASE("a user's layer of several inputs is replaced, too") {
  OfBoth net;
  Both pair;
  net.replace("pair", pair);
  const Tensor x = ones({1, 2});
  CHECK(values_of(net(x)) == values_of(pair(x, x)));
  net.replace("pair", relu);
  CHECK_THROWS_WITH(net(x), Catch::StartsWith("in pair: Module was replaced by function"));
}

TEST_CASE("functions and models by pointer replace layers") {
  TwoLinears net;
  const Tensor x = input({5, 4});
  net.replace("fc", relu);
  CHECK(net(x).shape() == Shape{5, 8});
  CHECK(net.parameters().size() == 2);
  CHECK(net.summary({4}).find("function") != std::string::npos);
  net.replace("fc", [](const Tensor& y) { return y * 2.0; });
  CHECK(values_of(net(x)) == values_of(relu(net.body(x)) * 2.0));
  net.replace("fc", models::make("mlp", {8, 1, 1}, 7));
  CHECK(net(x).shape() == Shape{5, 7});
  CHECK(net.parameters()[2].first == "fc.1.weight");
  const auto head = std::make_shared<nn::Linear>(8, 2);
  net.replace("fc", head);
  CHECK(net(x).shape() == Shape{5, 2});
  CHECK(net.parameter("fc.weight").same(head->parameter("weight")));
  CHECK_THROWS_WITH(net(ones({5, 5})), Catch::StartsWith("in body: "));
  CHECK_THROWS_WITH(net.replace("fc", std::shared_ptr<nn::Linear>{}), Catch::Contains("null"));
}

TEST_CASE("a part of a module is not assigned to") {
  TwoLinears net;
  CHECK_THROWS_WITH((net.fc = nn::Linear{8, 7}),
                    "module: 'fc' is part of a module, which would go on with the old one; use replace()");
  CHECK_THROWS_WITH((net.fc = net.body), Catch::Contains("'fc' is part of a module"));
  const nn::Linear same = net.fc;
  net.fc = same;
  nn::Linear free{2, 2};
  free = nn::Linear{3, 3};
  CHECK(free.parameter_count() == 12);

  SECTION("whole modules are") {
    const Tensor x = ones({1, 4});
    TwoLinears other;
    const auto of_net = values_of(net(x)), of_other = values_of(other(x));
    std::swap(net, other);
    CHECK(values_of(net(x)) == of_other);
    CHECK(values_of(other(x)) == of_net);
    TwoLinears best = net;
    best = nn::clone(other);
    CHECK(values_of(best(x)) == of_net);
    CHECK(values_of(net(x)) == of_other);
    std::vector<TwoLinears> population(3);
    std::sort(population.begin(), population.end(),
              [&](TwoLinears& a, TwoLinears& b) { return sum(a(x)).item() < sum(b(x)).item(); });
    CHECK(sum(population[0](x)).item() <= sum(population[2](x)).item());
    population.erase(population.begin());
    population.resize(4);
    const auto make = [] {
      TwoLinears made;
      return made;
    };
    net = make();
    CHECK(net.parameter("fc.weight").same(net.fc.parameter("weight")));
  }
  SECTION("and what was part of a module that is gone") {
    std::vector<nn::Linear> kept;
    kept.push_back(TwoLinears().fc);
    kept[0] = nn::Linear{2, 2};
    CHECK(kept[0].parameter_count() == 6);
    nn::Linear head{8, 3};
    net.replace("fc", head);
    CHECK_THROWS_WITH((head = nn::Linear{8, 3}), Catch::Contains("'fc' is part"));
    net.replace("fc", nn::Linear{8, 3});
    head = nn::Linear{2, 2};
    CHECK(head.parameter_count() == 6);
  }
}
