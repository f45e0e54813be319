// Children that are called by their names: of all kinds, replaced, cloned, put into other modules; and names with dots.
#include <atomic>
#include <catch2/catch.hpp>
#include <memory>
#include <optional>
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

struct BodyAndFc : nn::Module {
  nn::Sequential body{nn::Linear{3, 4}, tanh};
  nn::Linear fc{4, 2};
  BodyAndFc() {
    add("body", body);
    add("fc", fc);
  }
  Tensor forward(const Tensor& x) override { return fc(body(x)); }
};

/// What is called by operators of its own.
struct OwnOperators : nn::Module {
  nn::Linear left{2, 2};
  OwnOperators() { add("left", left); }
  Tensor operator()(const Tensor& a, const std::optional<Tensor>& b = {}) const {
    return called(*this, [&](auto& self) { return b ? self.left(a) + *b : self.left(a); });
  }
};
struct NeedsTwo : nn::Module {
  Tensor operator()(const Tensor& a, const Tensor& b) const {
    return called(*this, [&](auto&) { return a + b; });
  }
};

/// Counts the objects that there are.
struct Counted : nn::Module {
  static inline int alive = 0;
  nn::Linear inner{2, 2};
  std::shared_ptr<int> token = std::make_shared<int>(0);
  Counted() {
    ++alive;
    add("inner", inner);
  }
  Counted(const Counted& other) : Module(other), inner(other.inner), token(other.token) { ++alive; }
  Counted& operator=(const Counted&) = default;
  ~Counted() override { --alive; }
  Tensor forward(const Tensor& x) override { return inner(x); }
};

template <class L>
struct HolderOf : nn::Module {
  L part;
  explicit HolderOf(const L& layer) : part(layer) { add("part", part); }
  Tensor forward(const Tensor& x) override { return part(x); }
};

/// Layers of any kind by pointer, with their classes lost.
struct ByBase : nn::Module {
  std::shared_ptr<nn::Module> layer = std::make_shared<nn::Linear>(2, 3), shared = layer;
  explicit ByBase(bool by_pointer) {
    if (by_pointer)
      add("layer", layer);
    else
      add("layer", *layer);
  }
  Tensor forward(const Tensor& x) override { return (*layer)(x); }
};
struct NoCopies : nn::Module {
  nn::Linear inner{2, 2};
  NoCopies() { add("inner", inner); }
  NoCopies(const NoCopies&) = delete;
  Tensor forward(const Tensor& x) override { return inner(x); }
};

/// Has a copy constructor that looks at the module.
struct LooksAtItself : nn::Module {
  nn::Linear inner{2, 2};
  nn::Parameter weight;
  LooksAtItself() : weight(inner.parameter("weight")) { add("inner", inner); }
  LooksAtItself(const LooksAtItself& other) : Module(other), inner(other.inner), weight(parameter("inner.weight")) {}
  Tensor forward(const Tensor& x) override { return matmul(x, weight); }
};

/// Has a destructor that looks at the module.
struct CountsAtItsEnd : nn::Module {
  nn::Linear inner{2, 2};
  std::shared_ptr<std::vector<std::int64_t>> counts;
  explicit CountsAtItsEnd(std::shared_ptr<std::vector<std::int64_t>> of) : counts(std::move(of)) { add("inner", inner); }
  CountsAtItsEnd(const CountsAtItsEnd&) = default;
  ~CountsAtItsEnd() override { counts->push_back(parameter_count()); }
  Tensor forward(const Tensor& x) override { return inner(x); }
};

/// Has a copy constructor that clones.
struct ClonesItself : nn::Module {
  nn::Linear inner{2, 2}, own;
  ClonesItself() : own(nn::clone(inner)) { add("inner", inner); }
  ClonesItself(const ClonesItself& other) : Module(other), inner(other.inner), own(nn::clone(HolderOf(other.own)).part) {}
  Tensor forward(const Tensor& x) override { return own(x); }
};

/// Layers that it calls by their names alone.
struct OnlyNames : nn::Module {
  OnlyNames() {
    add("first", nn::Linear{2, 2});
    add("whole", HolderOf<nn::Sequential>(nn::Sequential{nn::Linear{2, 2}, tanh}));
  }
  Tensor forward(const Tensor& x) override { return child("whole")(child("first")(x)); }
};

template <class M>
concept HasChildOfZero = requires(const M& model) {
  model.child(0);
};
static_assert(!HasChildOfZero<nn::Sequential>, "0 would be a null pointer");

}  // namespace

TEST_CASE("children are called by their names") {
  BodyAndFc net;
  const Tensor x = drawn_input({5, 3}), y = drawn_input({5, 4});
  CHECK(values_of(net.child("fc")(y)) == values_of(net.fc(y)));
  CHECK(values_of(net.child("body")(x)) == values_of(net.body(x)));
  CHECK(values_of(net.child("body.0")(x)) == values_of(net.body[0](x)));
  CHECK(net.child("fc").kind() == "Linear(4, 2)");
  CHECK_THROWS_WITH(net.child("body")(y), Catch::StartsWith("in body.0: linear: "));
  // One that is known as any module is called, too.
  const auto fc = net.child("fc");
  const nn::Module& any = fc;
  CHECK(values_of(any(y)) == values_of(net.fc(y)));
  CHECK(net.child("fc").summary({4}).find("10 parameters") != std::string::npos);
  // It sees the parameters that there are.
  net.fc.parameter("weight").set(zeros({2, 4}));
  net.fc.parameter("bias").set(ones({2}));
  CHECK(values_of(fc(y)) == Floats(10, 1));
  const auto outlives = [] { return BodyAndFc().child("body"); }();
  CHECK(outlives(x).shape() == Shape{5, 4});
  CHECK(models::make("resnet20", {3, 8, 8}, 10)->child("fc")(ones({1, 64})).shape() == Shape{1, 10});
}

TEST_CASE("layers and functions of a Sequential by position") {
  nn::Sequential net{nn::Linear{3, 4}, relu, [](const Tensor& x) { return x * 2.0; }, nn::Linear{4, 2}};
  const Tensor x = drawn_input({5, 3});
  CHECK(net.size() == 4);
  CHECK(values_of(net[3](net[2](net[1](net[0](x))))) == values_of(net(x)));
  CHECK(values_of(net[-1](net[-2](net[-3](net[-4](x))))) == values_of(net(x)));
  CHECK(net[std::size_t{1}].kind() == "function");
  CHECK(net[0].parameter("weight").same(net.parameter("0.weight")));
  CHECK_THROWS_WITH(net[4], "Sequential: there is no layer 4; it has 4");
  CHECK_THROWS_WITH(net[-5], "Sequential: there is no layer -5; it has 4");
  CHECK_THROWS_WITH(nn::Sequential()[0], "Sequential: there is no layer 0; it has 0");

  net.replace("3", nn::Linear{4, 7});
  CHECK(net[-1](ones({1, 4})).shape() == Shape{1, 7});
  nn::Sequential outer{net, relu};
  outer.replace("0", nn::Sequential{nn::Linear{3, 5}});
  CHECK(net.size() == 1);
  CHECK(net[0](x).shape() == Shape{5, 5});
  outer.replace("0", nn::Linear{3, 6});
  CHECK_THROWS_WITH(net[0], Catch::Contains("Sequential was replaced by Linear(3, 6)"));
  // A copy that was taken before is the same list.
  nn::Sequential late, holder;
  holder.append(late);
  late.append(nn::Linear{3, 3});
  CHECK(holder.child("0")(x).shape() == Shape{5, 3});
  CHECK(holder[0].child("0")(x).shape() == Shape{5, 3});
}

TEST_CASE("a child is called by its own operator where that takes one tensor") {
  nn::Sequential net{OwnOperators(), NeedsTwo(), nn::LSTM{2, 3}};
  const Tensor x = drawn_input({4, 2});
  CHECK(values_of(net[0](x)) == values_of(net.child("0.left")(x)));
  CHECK_THROWS_AS(net[1](x), Unsupported);
  CHECK_THROWS_WITH(net.child("1")(x),
                    Catch::Contains("NeedsTwo: has no forward() of one tensor (Tensor forward(const Tensor& x) override)"));
  CHECK(net[2](x).shape() == Shape{4, 3});
}

TEST_CASE("what replaces a child is what child() calls") {
  BodyAndFc net;
  const Tensor y = drawn_input({5, 4});
  const auto before = net.child("fc");
  nn::Linear head{4, 3};
  net.replace("fc", head);
  CHECK(values_of(before(y)) == values_of(head(y)));
  CHECK(values_of(net.child("fc")(y)) == values_of(head(y)));
  CHECK(before.kind() == "Linear(4, 3)");
  net.replace("fc", nn::Sequential{relu, nn::Linear{4, 6}});
  CHECK(net.child("fc")(y).shape() == Shape{5, 6});
  CHECK(net.child("fc.1")(y).shape() == Shape{5, 6});
  net.replace("fc", relu);
  CHECK(values_of(net.child("fc")(y)) == values_of(relu(y)));
  BodyAndFc other;
  net.replace("fc", other.child("fc"));
  CHECK(values_of(before(y)) == values_of(other.fc(y)));
  CHECK(net.parameter("fc.weight").same(other.parameter("fc.weight")));
}

TEST_CASE("the children of a clone are its own") {
  const Tensor y = drawn_input({5, 4}), x = drawn_input({5, 3});
  BodyAndFc net;
  nn::Sequential outer{net, relu};
  auto copy = nn::clone(outer);
  CHECK(values_of(copy.child("0.fc")(y)) == values_of(net.fc(y)));
  copy.parameter("0.fc.weight").set(zeros({2, 4}));
  copy.parameter("0.fc.bias").set(zeros({2}));
  CHECK(values_of(copy.child("0.fc")(y)) == Floats(10, 0));
  CHECK(values_of(copy.child("0")(x)) == Floats(10, 0));
  CHECK(values_of(copy[0](x)) == Floats(10, 0));
  CHECK(values_of(outer.child("0.fc")(y)) != Floats(10, 0));
  copy.child("0.body").inference();
  CHECK(net.body.training());
  // What is put into a part of the clone is called there, and not in the model.
  auto whole = nn::clone(net);
  whole.body.append(nn::Linear{4, 4});
  CHECK(values_of(whole.child("body")(x)) == values_of(whole.body(x)));
  CHECK(net.body.size() == 2);

  SECTION("also where some were replaced") {
    net.replace("fc", nn::Linear{4, 6});
    auto replaced = nn::clone(net);
    CHECK(values_of(replaced.child("fc")(y)) == values_of(net.fc(y)));
    for (auto& [name, parameter] : replaced.parameters()) parameter.set(zeros_like(parameter));
    CHECK(values_of(replaced.child("fc")(y)) == Floats(30, 0));
    CHECK(values_of(net.child("fc")(y)) != Floats(30, 0));
  }
  SECTION("and a handle's clone is one of layers of its own") {
    auto part = nn::clone(net.child("fc"));
    CHECK(values_of(part(y)) == values_of(net.fc(y)));
    part.parameter("weight").set(zeros({2, 4}));
    part.parameter("bias").set(zeros({2}));
    CHECK(values_of(part(y)) == Floats(10, 0));
    CHECK(values_of(net.fc(y)) != Floats(10, 0));
  }
  SECTION("what only child() would call is held by pointer all the same") {
    CHECK_THROWS_WITH(nn::clone(ByBase(true)), Catch::Contains("is held by pointer"));
    CHECK_THROWS_WITH(nn::clone(HolderOf<ByBase>(ByBase(true))), Catch::Contains("is held by pointer"));
  }
  SECTION("layers that nobody holds, as a temporary, are cloned") {
    struct Parts : nn::Module {
      nn::Parameter weight;
      Parts()
          : weight([this] {
              add("block", nn::Sequential{nn::Linear{3, 3}, nn::Linear{3, 3}});
              return parameter("block.0.weight");
            }()) {}
      Tensor forward(const Tensor& t) override { return matmul(t, weight); }
    };
    HolderOf<Parts> parts{Parts()};
    auto own = nn::clone(parts);
    own.parameter("part.block.0.weight").set(zeros({3, 3}));
    CHECK(values_of(own(x)) == Floats(15, 0));
    CHECK(values_of(parts(x)) != Floats(15, 0));
    own.parameter("part.block.1.weight").set(zeros({3, 3}));
    own.parameter("part.block.1.bias").set(ones({3}));
    CHECK(values_of(own.child("part.block.1")(x)) == Floats(15, 1));
  }
}

TEST_CASE("a child's copy may look at itself while it is made") {
  const Tensor x = drawn_input({5, 2});
  HolderOf<LooksAtItself> net{LooksAtItself()};
  CHECK(values_of(net.child("part")(x)) == values_of(net.part(x)));
  auto copy = nn::clone(net);
  copy.parameter("part.inner.weight").set(zeros({2, 2}));
  CHECK(values_of(copy.child("part")(x)) == Floats(10, 0));
  CHECK(values_of(net.child("part")(x)) != Floats(10, 0));
}

TEST_CASE("a child's copy may look at itself when it ends") {
  const auto counts = std::make_shared<std::vector<std::int64_t>>();
  {
    nn::Sequential net{CountsAtItsEnd(counts), relu};
    net[0](drawn_input({5, 2}));
    auto copy = nn::clone(net);
    copy.child("0")(drawn_input({5, 2}));
  }
  CHECK_FALSE(counts->empty());
  for (const auto count : *counts) CHECK((count == 0 || count == 6));
}

TEST_CASE("a child's copy may clone while it is made") {
  const nn::Sequential net{ClonesItself(), relu};
  const Tensor x = drawn_input({5, 2});
  CHECK(values_of(net.child("0")(x)) == values_of(net[0](x)));
}

TEST_CASE("handles that somebody has of its children do not hinder a clone") {
  const Tensor x = drawn_input({5, 2});
  const OnlyNames net;
  const auto first = net.child("first"), whole = net.child("whole"), deep = net.child("whole.part.0");
  const std::vector<nn::Child> more(3, whole);
  auto copy = nn::clone(net);
  CHECK(values_of(copy(x)) == values_of(net(x)));
  for (auto& [name, parameter] : copy.parameters()) parameter.set(zeros_like(parameter));
  CHECK(values_of(copy(x)) == Floats(10, 0));
  CHECK(values_of(net(x)) != Floats(10, 0));
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int round = 0; round < 40; ++round) try {
          const auto handle = net.child(round % 2 == 0 ? "first" : "whole");
          nn::clone(net);
        } catch (const Error&) {
          ++failed;
        }
    });
  for (auto& thread : threads) thread.join();
  CHECK(failed == 0);
  // What is held by pointer is found all the same.
  const ByBase by_base(false);
  const auto layer = by_base.child("layer");
  CHECK_THROWS_WITH(nn::clone(by_base), Catch::Contains("is held by pointer"));
  nn::ModuleList<> list{nn::Linear{2, 2}, HolderOf<nn::Linear>(nn::Linear{2, 2})};
  const auto element = list[1];
  CHECK(values_of(nn::clone(list)[1](x)) == values_of(element(x)));
}

TEST_CASE("handles are assigned, and refer to the other layer") {
  nn::Sequential net{nn::Linear{2, 2}, relu, nn::Linear{2, 3}};
  const Tensor x = drawn_input({5, 2});
  auto child = net[0];
  child = net[2];
  CHECK(values_of(child(x)) == values_of(net[2](x)));
  CHECK(child.same(net.child("2")));
  child = net[1];
  CHECK(values_of(child(x)) == values_of(relu(x)));
  std::vector<nn::Child> children{net[0], net[1], net[2]};
  children.erase(children.begin());
  std::swap(children[0], children[1]);
  CHECK(children[0].same(net[2]));
  CHECK(children[1].kind() == "function");
  CHECK(net.child("0").kind() == "Linear(2, 2)");
}

TEST_CASE("two handles may be of one layer") {
  BodyAndFc net;
  const BodyAndFc copy = net;
  CHECK(copy.same(net));
  CHECK(net.child("fc").same(net.fc));
  CHECK_FALSE(net.same(nn::clone(net)));
  CHECK_FALSE(net.child("fc").same(net.body));
  nn::Linear head{4, 3};
  CHECK_FALSE(net.fc.same(head));
  net.replace("fc", head);
  CHECK(net.fc.same(head));
}

TEST_CASE("handles are layers of other modules") {
  BodyAndFc net;
  const Tensor x = drawn_input({5, 3});
  nn::Sequential backbone{net.child("body"), net.child("fc"), relu};
  CHECK(values_of(backbone(x)) == values_of(relu(net(x))));
  CHECK(backbone.parameter("1.weight").same(net.parameter("fc.weight")));
  CHECK(values_of(backbone.child("0.0")(x)) == values_of(net.body[0](x)));
  auto copy = nn::clone(backbone);
  for (auto& [name, parameter] : copy.parameters()) parameter.set(zeros_like(parameter));
  CHECK(values_of(copy(x)) == Floats(10, 0));
  CHECK(values_of(copy[1](ones({1, 4}))) == Floats(2, 0));
  CHECK(values_of(net(x)) != Floats(10, 0));
}

TEST_CASE("children by pointer are called while the pointer lives") {
  const Tensor x = drawn_input({5, 2});
  const ByBase by_pointer(true), by_base(false);
  CHECK(values_of(by_pointer.child("layer")(x)) == values_of((*by_pointer.layer)(x)));
  CHECK_THROWS_WITH(by_base.child("layer")(x), Catch::Contains("'layer' cannot be called by its name"));
  nn::Sequential net{models::make("mlp", {1, 2, 1}, 3), relu};
  CHECK(values_of(net.child("0")(reshape(x, {5, 1, 2, 1}))) == values_of(net[0](reshape(x, {5, 1, 2, 1}))));
  CHECK(net.child("0.1")(x).shape() == Shape{5, 128});
  struct OfUncopied : nn::Module {
    NoCopies part;
    OfUncopied() { add("part", part); }
  };
  const OfUncopied uncopied;
  CHECK_THROWS_AS(uncopied.child("part")(x), Unsupported);
  CHECK(uncopied.child("part.inner")(x).shape() == Shape{5, 2});
  struct OfNull : nn::Module {
    OfNull() { add("part", std::shared_ptr<nn::Linear>()); }
  };
  CHECK_THROWS_WITH(OfNull(), "module: the pointer to 'part' is null");
}

TEST_CASE("nothing stays behind of models whose children were called, cloned and replaced") {
  std::weak_ptr<int> token;
  {
    const Tensor x = drawn_input({1, 2});
    HolderOf<Counted> inner{Counted()};
    HolderOf<HolderOf<Counted>> net{inner};
    token = net.part.part.token;
    net.child("part")(x);
    net.child("part.part.inner")(x);
    nn::Sequential list{net, net.child("part"), net.child("part.part")};
    list[1](x);
    auto copy = nn::clone(list);
    copy[1](x);
    nn::ModuleList<> any{net.child("part"), Counted(), relu};
    HolderOf<nn::ModuleList<>> of_any{any};
    of_any.child("part.1")(x);
    nn::clone(of_any).child("part.0")(x);
    net.replace("part.part", Counted());
    net.child("part.part")(x);
    const auto hook = net.on_forward("part", [](const Tensor&, const Tensor&) {});
    nn::features(net, x, {"part"});
    CHECK(Counted::alive > 0);
  }
  CHECK(Counted::alive == 0);
  CHECK(token.expired());
}

namespace {

/// The parts of a list without the list.
struct Dotted : nn::Module {
  nn::Linear first{2, 2}, second{2, 2};
  Dotted() {
    add("layers.0", first);
    add("layers.1", second);
  }
  Tensor forward(const Tensor& x) override { return second(first(x)); }
  using Module::add;
  using Module::add_parameter;
};

}  // namespace

TEST_CASE("names of children may have dots") {
  Dotted net;
  const Tensor x = drawn_input({5, 2});
  CHECK(net.children() == std::vector<std::string>{"layers.0", "layers.1"});
  CHECK(net.parameters()[0].first == "layers.0.weight");
  CHECK(values_of(net.child("layers.0")(x)) == values_of(net.first(x)));
  CHECK(net.parameter("layers.1.bias").same(net.second.parameter("bias")));
  net.replace("layers.1", nn::Linear{2, 7});
  CHECK(net(x).shape() == Shape{5, 7});
  CHECK_THROWS_WITH(net(ones({2, 3})), Catch::StartsWith("in layers.0: linear: "));
  Dotted other;
  other.load_state_dict(nn::clone(other).state_dict());
  CHECK(nn::Sequential{net}.child("0.layers.0").kind() == "Linear(2, 2)");
  for (const auto* name : {"", ".", "a.", ".a", "a..b"})
    CHECK_THROWS_WITH(net.add(name, nn::Linear{2, 2}), Catch::Contains("is no name"));
  CHECK_THROWS_WITH(net.add_parameter("a.b", zeros({1})), "module: 'a.b' is no name of a parameter: it has a dot in it");
}

TEST_CASE("a name that two children would have is an error") {
  const auto* said = "module: the name 'layers.0' is ambiguous: there are 'layers.0' and '0' of 'layers'";
  Dotted net;
  CHECK_THROWS_WITH(net.add("layers", nn::Sequential{nn::Linear{2, 2}}), said);
  CHECK(net.children().size() == 2);
  nn::Sequential layers{relu, relu, nn::Linear{2, 2}, nn::Linear{2, 2}};
  net.add("layers", layers);
  CHECK(net.child("layers.2").kind() == "Linear(2, 2)");
  CHECK_THROWS_WITH(net.add("layers.3", nn::Linear{2, 2}),
                    "module: the name 'layers.3' is ambiguous: there are '3' of 'layers' and 'layers.3'");
  // What comes later, deeper, is told where it comes.
  nn::Sequential empty;
  Dotted late;
  late.add("layers", empty);
  nn::Sequential outer{late};
  CHECK_THROWS_WITH(empty.append(nn::Linear{2, 2}), said);
  CHECK(empty.children().empty());
  CHECK_THROWS_WITH(late.replace("layers", nn::Sequential{nn::Linear{2, 2}}), said);
  CHECK(outer.child("0.layers.0").kind() == "Linear(2, 2)");
}
