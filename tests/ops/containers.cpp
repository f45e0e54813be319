// Lists and dictionaries of layers.
#include <catch2/catch.hpp>
#include <concepts>
#include <functional>
#include <memory>
#include <type_traits>
#include <vector>

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

struct Shifted : Block {
  Tensor forward(const Tensor& x) override { return x + 1.0; }
};

/// A list that calls its own layers.
struct Chain : nn::ModuleList<nn::Linear> {
  explicit Chain(int layers) {
    for (int i = 0; i < layers; ++i) append(nn::Linear{3, 3});
  }
  Tensor forward(const Tensor& x) override {
    Tensor y = x;
    for (const auto& layer : *this) y = layer(y);
    return y;
  }
};

template <class C, class L>
concept Takes = requires(C& container, const L& layer) {
  container.append(layer);
};
template <class C, class L>
concept TakesByKey = requires(C& container, const L& layer) {
  container.insert("a", layer);
};
static_assert(Takes<nn::ModuleList<Block>, Block> && Takes<nn::ModuleList<>, Shifted>);
static_assert(!Takes<nn::ModuleList<Block>, Shifted>, "it would be cut down to a Block");
static_assert(TakesByKey<nn::ModuleDict<Block>, Block> && !TakesByKey<nn::ModuleDict<Block>, Shifted>);
static_assert(!std::constructible_from<nn::ModuleList<Block>, Block, Shifted>);
static_assert(!std::constructible_from<nn::ModuleDict<Block>::Entry, const char*, Shifted>);
template <class D>
concept HasZero = requires(D& layers) {
  layers[0];
};
static_assert(!HasZero<nn::ModuleDict<>>, "0 would be a null pointer");
static_assert(!std::is_assignable_v<decltype(nn::ModuleList<>()[0]), nn::Child>, "the list would go on with the old one");

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

TEST_CASE("a layer of a derived class is not cut down to what the list has") {
  const Shifted shifted;
  const Block& block = shifted;
  const auto refused = Catch::Contains("a Shifted that is given as a Block would be cut down to it");
  nn::ModuleList<Block> list;
  CHECK_THROWS_WITH(list.append(block), refused);
  CHECK_THROWS_WITH(list.extend(std::vector<std::reference_wrapper<const Block>>{block}), refused);
  CHECK(list.empty());
  nn::ModuleDict<Block> dict;
  CHECK_THROWS_WITH(dict.insert("a", block), refused);
  CHECK_THROWS_WITH((nn::ModuleDict<Block>{{"a", block}}), refused);
  CHECK_THROWS_WITH(nn::Sequential(block, relu), refused);
  const Tensor x = list_input();
  nn::ModuleList<> any{shifted};
  CHECK(values_of(any[0](x)) == values_of(x + 1.0));
}

TEST_CASE("a list is extended by itself") {
  nn::ModuleList<nn::Linear> list{nn::Linear{3, 3}, nn::Linear{3, 3}};
  auto handle = list;
  list.extend(handle);
  CHECK(list.size() == 4);
  CHECK(list[3].same(list[1]));
  list.append(list[0]);
  nn::ModuleList<> any{nn::Linear{3, 3}, relu};
  any.extend(any);
  any.extend(list);
  CHECK(any.size() == 9);
  const Tensor x = list_input();
  CHECK(values_of(any[3](x)) == values_of(relu(x)));
  CHECK(values_of(any[4](x)) == values_of(list[0](x)));
}

TEST_CASE("errors in layers of lists say which list") {
  OfLists net;
  net.blocks[1].linear.parameter("weight");
  net.replace("heads.1", nn::Linear{5, 5});
  CHECK_THROWS_WITH(net(list_input()), Catch::StartsWith("in heads.1: linear: "));
  CHECK_THROWS_WITH(net.blocks[1](ones({1, 2})), Catch::StartsWith("in blocks.1.linear: linear: "));
  CHECK_THROWS_WITH(net.by_task["boxes"](ones({1, 2})), Catch::StartsWith("in by_task.boxes: linear: "));
  CHECK_THROWS_WITH(nn::ModuleList<>{net.blocks}.child("0.1")(ones({1, 2})), Catch::StartsWith("in blocks.1.linear: "));
  // One that is called has its name already.
  nn::Sequential outer{Chain(2), relu};
  CHECK_THROWS_WITH(outer(ones({1, 2})), Catch::StartsWith("in 0.0: linear: "));
  CHECK_THROWS_WITH(Chain(2)(ones({1, 2})), Catch::StartsWith("in 0: linear: "));
  nn::ModuleDict<> nested{{"lists", nn::ModuleList<>{nn::Linear{3, 3}}}};
  CHECK_THROWS_WITH(nested.child("lists.0")(ones({1, 2})), Catch::StartsWith("in lists.0: linear: "));
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
  static_assert(std::is_const_v<std::remove_reference_t<decltype(heads.begin()->first)>>);
  static_assert(std::is_const_v<std::remove_reference_t<decltype(nn::ModuleDict<Block>().begin()->first)>>);
  for (auto [key, head] : heads) head.inference();
  CHECK_FALSE(heads["a"].training());
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
