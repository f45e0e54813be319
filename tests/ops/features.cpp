// Hooks, and outputs of layers by name.
#include <catch2/catch.hpp>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "clnet/clnet.h"
#include "tests/ops/values.h"

using namespace clnet;
using testing::drawn_input;
using testing::Floats;
using testing::values_of;

namespace {

struct Featured : nn::Module {
  nn::Sequential body{nn::Linear{3, 4}, tanh, nn::Linear{4, 4}};
  nn::Linear fc{4, 2}, unused{1, 1}, twice{2, 2};
  Featured() {
    add("body", body);
    add("fc", fc);
    add("unused", unused);
    add("twice", twice);
  }
  Tensor forward(const Tensor& x) override {
    const auto y = fc(body(x));
    return twice(twice(y));
  }
};

struct OfStates : nn::Module {
  nn::LSTM lstm{3, 4};
  nn::MultiheadAttention attention{4, 2};
  OfStates() {
    add("lstm", lstm);
    add("attention", attention);
  }
  Tensor forward(const Tensor& x) override {
    const auto [y, h, c] = lstm(x, {Tensor{}, Tensor{}});
    return attention(y, y, y);
  }
};

/// Counts its copies.
struct Copied : nn::Module {
  static inline int copies = 0;
  nn::Linear inner{3, 3};
  Copied() { add("inner", inner); }
  Copied(const Copied& other) : Module(other), inner(other.inner) { ++copies; }
  Tensor forward(const Tensor& x) override { return inner(x); }
};

/// Has a hook of its own that refers to it.
struct Watched : nn::Module {
  nn::Linear inner{2, 2};
  std::shared_ptr<int> calls = std::make_shared<int>(0);
  nn::Hook hook;
  Watched() {
    add("inner", inner);
    hook = inner.on_forward([this](const Tensor&, const Tensor&) { ++*calls; });
  }
  Tensor forward(const Tensor& x) override { return inner(x); }
};

}  // namespace

TEST_CASE("hooks see what layers get and give") {
  Featured net;
  const Tensor x = drawn_input({5, 3});
  std::vector<std::string> seen;
  {
    const auto hook = net.on_forward("body.0", [&](const Tensor& in, const Tensor& out) {
      CHECK(in.same(x));
      seen.push_back(to_string(out.shape()));
    });
    auto other = net.child("twice").on_forward([&](const Tensor&, const Tensor&) { seen.emplace_back("twice"); });
    const auto whole = net.on_forward([&](const Tensor&, const Tensor&) { seen.emplace_back("net"); });
    net(x);
    CHECK(seen == std::vector<std::string>{"[5, 4]", "twice", "twice", "net"});
    other.remove();
    seen.clear();
    net(x);
    CHECK(seen == std::vector<std::string>{"[5, 4]", "net"});
  }
  seen.clear();
  net(x);
  CHECK(seen.empty());
  CHECK_THROWS_WITH(net.on_forward("head", [](const Tensor&, const Tensor&) {}), Catch::Contains("there is no child 'head'"));
}

TEST_CASE("copies of a layer do not prolong the hook that it holds") {
  const Tensor x = drawn_input({1, 2});
  auto watched = std::make_unique<Watched>();
  const auto calls = watched->calls;
  const nn::Sequential net{*watched, relu};
  net(x);
  CHECK(*calls == 1);
  watched->hook.remove();
  net(x);
  CHECK(*calls == 1);
  watched = std::make_unique<Watched>();
  const nn::Sequential other{*watched, relu};
  const auto of_other = watched->calls;
  const auto child = other.child("0");
  watched.reset();
  other(x);
  child(x);
  CHECK(*of_other == 0);

  // A move hands it on, and a copy has none.
  nn::Linear layer{2, 2};
  int count = 0;
  auto hook = layer.on_forward([&](const Tensor&, const Tensor&) { ++count; });
  std::vector<nn::Hook> hooks;
  hooks.push_back(std::move(hook));
  hooks.emplace_back();
  layer(x);
  CHECK(count == 1);
  auto copy = hooks[0];
  copy.remove();
  layer(x);
  CHECK(count == 2);
  hooks[0] = hooks[1];
  layer(x);
  CHECK(count == 2);
}

TEST_CASE("hooks and features of a layer make no copies of it") {
  const nn::Sequential net{Copied(), relu};
  const auto before = Copied::copies;
  const auto hook = net.on_forward("0", [](const Tensor&, const Tensor&) {});
  nn::features(net, drawn_input({5, 3}), {"0", "0.inner"});
  CHECK(Copied::copies == before);
}

TEST_CASE("functions have no hooks") {
  nn::Sequential net{nn::Linear{3, 4}, relu};
  CHECK_THROWS_WITH(net[1].on_forward([](const Tensor&, const Tensor&) {}),
                    Catch::StartsWith("on_forward: functions of a Sequential have no hooks"));
  const nn::ModuleList<> list{relu};
  int calls = 0;
  const auto hook = list[0].on_forward([&](const Tensor&, const Tensor&) { ++calls; });
  list[0](drawn_input({1, 2}));
  CHECK(calls == 1);
  CHECK_THROWS_WITH(nn::features(net, std::function<void()>(), {"0"}), "features: the forward pass is no function");
}

TEST_CASE("a hook may append to the Sequential that runs") {
  nn::Sequential net{nn::Linear{3, 4}, relu};
  const auto hook = net.on_forward("0", [&](const Tensor&, const Tensor&) {
    for (int i = 0; i < 40; ++i) net.append(nn::Linear{4, 4});
  });
  const Tensor x = drawn_input({5, 3});
  const auto y = values_of(net(x));
  CHECK(net.size() == 42);
  CHECK(y == values_of(relu(net[0](x))));
}

TEST_CASE("what a hook returns is the output") {
  Featured net;
  const Tensor x = drawn_input({5, 3});
  const auto before = values_of(net(x));
  {
    const auto zero = net.fc.on_forward([](const Tensor&, const Tensor& y) { return y * 0.0; });
    // The next one sees what the one before returned; an undefined tensor leaves it.
    const auto one = net.fc.on_forward([](const Tensor&, const Tensor& y) { return y + 1.0; });
    const auto none = net.fc.on_forward([](const Tensor&, const Tensor&) { return Tensor{}; });
    CHECK(values_of(net.fc(ones({1, 4}))) == Floats{1, 1});
    CHECK(values_of(net(x)) == values_of(net.twice(net.twice(ones({5, 2})))));
    CHECK(values_of(nn::features(net, x, {"fc"})[0]) == Floats(10, 1));
    // A clone has none.
    CHECK(values_of(nn::clone(net)(x)) == before);
  }
  CHECK(values_of(net(x)) == before);
}

TEST_CASE("hooks stay where a layer is replaced, and see the replacement") {
  Featured net;
  const Tensor x = drawn_input({5, 3});
  int calls = 0;
  const auto hook = net.on_forward("body", [&](const Tensor&, const Tensor& y) {
    ++calls;
    CHECK(y.shape() == Shape{5, 4});
  });
  net.replace("body", nn::Linear{3, 4});
  net(x);
  CHECK(calls == 1);
  net.replace("body", [](const Tensor& t) { return concat({t, slice(t, 1, 0, 1)}, 1); });
  net(x);
  CHECK(calls == 2);
  nn::Sequential inner{nn::Linear{3, 4}};
  net.replace("body", inner);
  const auto deeper = net.on_forward("body.0", [&](const Tensor&, const Tensor&) { calls += 10; });
  net(x);
  CHECK(calls == 13);
}

TEST_CASE("hooks of layers of several inputs see the first result") {
  OfStates net;
  const Tensor x = drawn_input({2, 1, 3});
  std::vector<Tensor> seen;
  const auto lstm = net.on_forward("lstm", [&](const Tensor& in, const Tensor& y) {
    CHECK_FALSE(in.defined());
    seen.push_back(y);
    return y * 0.0;
  });
  const auto attention = net.on_forward("attention", [&](const Tensor&, const Tensor& y) { seen.push_back(y); });
  const auto y = net(x);
  REQUIRE(seen.size() == 2);
  CHECK(seen[0].shape() == Shape{2, 1, 4});
  CHECK(values_of(seen[1]) == values_of(y));
  const auto zeros_in = zeros({2, 1, 4});
  CHECK(values_of(y) == values_of(net.attention(zeros_in, zeros_in, zeros_in)));
  const auto found = nn::features(net, x, {"attention", "lstm"});
  CHECK(values_of(found[1]) == Floats(8, 0));
  net.replace("lstm", nn::LSTM{3, 4});
  CHECK(values_of(nn::features(net, x, {"lstm"})[0]) == Floats(8, 0));
  CHECK(net.summary({1, 3}).find("lstm") != std::string::npos);
}

TEST_CASE("features are outputs of layers by name") {
  Featured net;
  const Tensor x = drawn_input({5, 3});
  const auto found = nn::features(net, x, {"twice", "body.2", "body", "body.0", "body"});
  REQUIRE(found.size() == 5);
  CHECK(values_of(found[0]) == values_of(net(x)));
  CHECK(values_of(found[1]) == values_of(net.body(x)));
  CHECK(values_of(found[2]) == values_of(net.body(x)));
  CHECK(values_of(found[3]) == values_of(net.body[0](x)));
  CHECK(values_of(found[4]) == values_of(net.body(x)));
  CHECK(nn::features(net, x, {}).empty());
  CHECK_THROWS_WITH(nn::features(net, x, {"body", "layer9"}), Catch::Contains("there is no child 'layer9'"));
  CHECK_THROWS_WITH(nn::features(net, x, {"body", "unused"}), "features: the forward pass does not call the layer 'unused'");
  CHECK_THROWS_WITH(nn::features(net, ones({1, 2}), {"body"}), Catch::StartsWith("in body.0: "));

  const auto by_parameter = gradients(sum(found[3]), net.parameters());
  CHECK(values_of(by_parameter[1]) == Floats(4, 5));
  const auto again = nn::features(net, [&] { net.body(x); }, {"body.2"});
  CHECK(values_of(again[0]) == values_of(net.body(x)));
  net.replace("body", nn::Sequential{nn::Linear{3, 4}, tanh});
  CHECK(values_of(nn::features(net, x, {"body"})[0]) == values_of(net.body(x)));
  CHECK(values_of(nn::features(net, x, {"body.0"})[0]) == values_of(net.body[0](x)));

  auto resnet = models::make("resnet20", {3, 8, 8}, 10);
  resnet->inference();
  const auto maps = nn::features(*resnet, zeros({2, 3, 8, 8}), {"layer1", "layer3.2"});
  CHECK(maps[0].shape() == Shape{2, 16, 8, 8});
  CHECK(maps[1].shape() == Shape{2, 64, 2, 2});
}

TEST_CASE("several threads ask one model for features") {
  const Featured net;
  std::vector<Floats> found(4), wanted;
  std::vector<Tensor> inputs;
  for (int i = 0; i < 4; ++i) {
    inputs.push_back(drawn_input({5, 3}));
    wanted.push_back(values_of(net.body(inputs.back())));
  }
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      for (int round = 0; round < 5; ++round) found[i] = values_of(nn::features(net, inputs[i], {"body"})[0]);
    });
  for (auto& thread : threads) thread.join();
  CHECK(found == wanted);
}

TEST_CASE("hooks and features are part of compiled graphs") {
  Featured net;
  const Tensor x = drawn_input({5, 3}), z = drawn_input({5, 3});
  const auto ask = compile([&](const Tensor& t) { return nn::features(net, t, {"body", "fc"}); });
  for (const auto& each : {x, z, x}) {
    const auto found = ask(each);
    CHECK(values_of(found[0]) == values_of(net.body(each)));
    CHECK(values_of(found[1]) == values_of(net.fc(net.body(each))));
  }
  CHECK(ask.graphs() == 1);

  int calls = 0;
  const auto infer = compile([&](const Tensor& t) { return net(t); });
  const auto before = values_of(infer(x));
  {
    const auto hook = net.on_forward("fc", [&](const Tensor&, const Tensor& y) {
      ++calls;
      return y * 0.0;
    });
    const auto changed = values_of(infer(x));
    CHECK(changed != before);
    CHECK(values_of(infer(x)) == changed);
    CHECK(values_of(infer(z)) == changed);
    CHECK(calls == 1);
    CHECK(changed == values_of(net(x)));
  }
  CHECK(values_of(infer(x)) == before);
  CHECK(infer.graphs() == 2);
  // Within a pass that is asked, a compiled function shows nothing.
  CHECK_THROWS_WITH(nn::features(net,
                                 [&] {
                                   infer(drawn_input({2, 3}));
                                 },
                                 {"fc"}),
                    Catch::Contains("does not call the layer 'fc'"));
  // One that is made in the function comes with each graph, and is none of the conditions.
  const auto own = compile([&](const Tensor& t) {
    const auto hook = net.on_forward("fc", [](const Tensor&, const Tensor& y) { return y * 0.0; });
    return net(t);
  });
  CHECK(values_of(own(x)) == values_of(own(z)));
  CHECK(own.graphs() == 1);
  // Others do not have it within, and build another graph when it ends.
  nn::Hook lasting;
  const auto maker = compile([&](const Tensor& t) {
    lasting = net.on_forward("fc", [](const Tensor&, const Tensor& y) { return y * 0.0; });
    return net(t);
  });
  const auto reader = compile([&](const Tensor& t) { return net(t); });
  const auto with_hook = values_of(maker(x));
  CHECK(values_of(maker(z)) == values_of(maker(x)));
  CHECK(maker.graphs() == 1);
  CHECK(values_of(reader(x)) == with_hook);
  CHECK(values_of(net(x)) == with_hook);
  lasting.remove();
  CHECK(values_of(reader(x)) == before);
  CHECK(values_of(net(x)) == before);
}
