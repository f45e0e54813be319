// Lists and dictionaries of layers.
#include <catch2/catch.hpp>
#include <concepts>
#include <memory>

#include "clnet/clnet.h"
#include "tests/ops/values.h"

using namespace clnet;
using testing::Floats;
using testing::values_of;

namespace {

using ListNames = std::vector<std::string>;

/// A layer with functions of its own.
struct Block : nn::Module {
  nn::Linear linear{3, 3};
  Block() { add("linear", linear); }
  Tensor forward(const Tensor& x) override { return linear(x); }
  Tensor operator()(const Tensor& x, const Tensor& skipped) const {
    return called(*this, [&](auto& self) { return self.linear(x) + skipped; });
  }
  using Module::operator();
};

struct OfLists : nn::Module {
  nn::ModuleList<Block> blocks;
  nn::ModuleList<> heads;
  nn::ModuleDict<nn::Linear> by_task;
  OfLists() {
    add("blocks", blocks);
    for (int i = 0; i < 2; ++i) blocks.append(Block());
    heads.append(nn::Linear{3, 4});
    heads.append(nn::Sequential{nn::Linear{3, 3}, relu, nn::BatchNorm1d{3}});
    heads.append(relu);
    add("heads", heads);
    by_task.insert("classes", nn::Linear{3, 5});
    by_task.insert("boxes", nn::Linear{3, 2});
    add("by_task", by_task);
  }
  Tensor forward(const Tensor& x) override {
    Tensor y = x;
    for (const auto& block : blocks) y = block(y, x);
    return by_task["classes"](heads[-1](heads[1](y)));
  }
};

Tensor list_input() {
  const auto x = randn({4, 3});
  x.eval();
  return x;
}

}  // namespace

TEST_CASE("lists and dictionaries name their layers as PyTorch does") {
  OfLists net;
  ListNames names;
  for (const auto& [name, value] : net.state_dict()) names.push_back(name);
  CHECK(names == ListNames{"blocks.0.linear.weight", "blocks.0.linear.bias", "blocks.1.linear.weight", "blocks.1.linear.bias",
                           "heads.0.weight", "heads.0.bias", "heads.1.0.weight", "heads.1.0.bias", "heads.1.2.weight",
                           "heads.1.2.bias", "heads.1.2.running_mean", "heads.1.2.running_var", "heads.1.2.num_batches_tracked",
                           "by_task.classes.weight", "by_task.classes.bias", "by_task.boxes.weight", "by_task.boxes.bias"});
  const Tensor x = list_input();
  CHECK(net(x).shape() == Shape{4, 5});
  CHECK(values_of(net.child("heads.0")(x)) == values_of(net.heads[0](x)));
  CHECK(values_of(net.child("blocks.1")(x)) == values_of(net.blocks[1](x)));
  CHECK(net.summary({3}).find("by_task.classes") != std::string::npos);
  CHECK(net.summary({3}).find("heads.1.0") != std::string::npos);
}

TEST_CASE("lists are indexed, grow and are gone through") {
  nn::ModuleList<Block> blocks;
  CHECK(blocks.empty());
  auto same = blocks;
  blocks.append(Block());
  same.extend(std::vector<Block>(1));
  CHECK(blocks.size() == 2);
  CHECK(blocks[-1].parameter("linear.weight").same(same[1].linear.parameter("weight")));
  CHECK_THROWS_WITH(blocks[2], "ModuleList: there is no layer 2; it has 2");
  CHECK_THROWS_WITH(blocks[-3], "ModuleList: there is no layer -3; it has 2");
  for (auto& block : blocks) block.freeze();
  CHECK(blocks.parameter("1.linear.bias").frozen());
  CHECK_THROWS_AS(blocks(list_input()), Unsupported);
  CHECK(blocks.kind() == "ModuleList");

  nn::ModuleList of_class{nn::Linear{3, 3}, nn::Linear{3, 2}};
  static_assert(std::same_as<decltype(of_class), nn::ModuleList<nn::Linear>>);
  nn::ModuleList of_any{nn::Linear{3, 3}, relu, nn::Dropout{0.1}, models::make("mlp", {3, 1, 1}, 2)};
  static_assert(std::same_as<decltype(of_any), nn::ModuleList<>>);
  CHECK(of_any.size() == 4);
  CHECK(of_any[3](list_input()).shape() == Shape{4, 2});
  nn::ModuleList copied{of_class};
  static_assert(std::same_as<decltype(copied), nn::ModuleList<nn::Linear>>);
  CHECK(copied.size() == 2);
  nn::ModuleList<> nested{of_any, of_class};
  CHECK(nested.child("1.0").kind() == "Linear(3, 3)");
}

TEST_CASE("dictionaries find layers by key") {
  nn::ModuleDict<> heads{{"a", nn::Linear{3, 4}}, {"b", relu}};
  heads.insert("c.d", nn::Sequential{nn::Linear{3, 2}});
  CHECK(heads.size() == 3);
  CHECK(heads.keys() == ListNames{"a", "b", "c.d"});
  CHECK(heads.contains("c.d"));
  CHECK_FALSE(heads.contains("c"));
  const Tensor x = list_input();
  CHECK(values_of(heads["b"](x)) == values_of(relu(x)));
  CHECK_THROWS_WITH(heads["e"], "ModuleDict: there is no layer 'e'; there are a, b, c.d");
  CHECK_THROWS_WITH(nn::ModuleDict<>()["e"], "ModuleDict: there is no layer 'e'; there are none");
  CHECK_THROWS_WITH(heads.insert("a", relu), "ModuleDict: there is a layer 'a' already; replace() changes it");
  CHECK_THROWS_WITH(heads.insert("", relu), Catch::Contains("is no name"));
  CHECK(heads.size() == 3);
  ListNames seen;
  for (const auto& [key, head] : heads) seen.push_back(key + to_string(head(x).shape()));
  CHECK(seen == ListNames{"a[4, 4]", "b[4, 3]", "c.d[4, 2]"});
  CHECK(heads.parameters().back().first == "c.d.0.bias");
}

TEST_CASE("what is done to a model reaches the layers of its lists") {
  OfLists net;
  const Tensor x = list_input();
  net.inference();
  CHECK_FALSE(net.heads[1].training());
  CHECK_FALSE(net.blocks[0].training());
  net.train();
  CHECK(net.by_task["boxes"].training());
  net.child("blocks").freeze();
  CHECK(net.blocks[1].linear.parameter("weight").frozen());
  net.freeze(false);
  net.to(Device::current());
  net.inference();

  SECTION("clone()") {
    auto copy = nn::clone(net);
    CHECK(values_of(copy(x)) == values_of(net(x)));
    for (auto& [name, parameter] : copy.parameters()) parameter.set(zeros_like(parameter));
    CHECK(values_of(copy(x)) == Floats(20, 0));
    CHECK(values_of(copy.heads[0](x)) == Floats(16, 0));
    CHECK(values_of(copy.child("heads.0")(x)) == Floats(16, 0));
    CHECK(values_of(copy.blocks[0](x)) == Floats(12, 0));
    CHECK(values_of(net.heads[0](x)) != Floats(16, 0));
    copy.blocks.append(Block());
    CHECK(copy.blocks.size() == 3);
    CHECK(copy.child("blocks.2")(x).shape() == Shape{4, 3});
    CHECK(net.blocks.size() == 2);
    CHECK_THROWS_WITH(nn::clone(nn::ModuleList<>{models::make("mlp", {3, 1, 1}, 2)}), Catch::Contains("is held by pointer"));
  }
  SECTION("replace()") {
    nn::Linear head{3, 6};
    net.replace("by_task.classes", head);
    CHECK(values_of(net.by_task["classes"](x)) == values_of(head(x)));
    net.replace("heads.1", relu);
    CHECK(values_of(net.heads[1](x)) == values_of(relu(x)));
    Block block;
    net.replace("blocks.0", block);
    CHECK(values_of(net.blocks[0](x, x)) == values_of(block(x, x)));
    nn::ModuleList<Block> other;
    other.append(block);
    net.replace("blocks", other);
    CHECK(net.blocks.size() == 1);
    CHECK(net(x).shape() == Shape{4, 6});
    net.replace("blocks", relu);
    CHECK_THROWS_WITH(net(x), Catch::Contains("in blocks: ModuleList was replaced by function"));
  }
  SECTION("training") {
    net.train();
    optim::SGD sgd{net, {.learning_rate = 0.1}};
    const auto before = values_of(net.blocks[0].linear.parameter("weight"));
    sgd.step(cross_entropy(net(x), Tensor::from({0, 1, 2, 0})));
    CHECK(values_of(net.blocks[0].linear.parameter("weight")) != before);
  }
}
