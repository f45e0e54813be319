// Which outputs may take the memory of an input: each sentence of the rule, for recordings that no device sees.
#include "lib/exec/place/in_place.h"

#include <catch2/catch.hpp>

#include "tests/unit/launches.h"

using namespace clnet;
using namespace clnet::exec;

namespace {

/// Everything may move but leaves.
struct InPlaceGraph : RecordedLaunches {
  Ref view(Ref of, std::int64_t offset, std::int64_t count, Dtype dtype = Dtype::f32) {
    const auto id = recording.add_value({Shape{count}, dtype});
    recording.alias(id, of.at(offset));
    return {id, 0};
  }
  /// `to` is made of `from`, element by element.
  void map(Ref from, Ref to) { launch().in("x", from, Access::same_element).out("y", to); }
  void make(Ref to) { launch().out("y", to); }
  void use(Ref x) { launch().in("x", x).out("y", value()); }

  std::vector<Grant> grants() const {
    std::vector<bool> movable;
    for (std::size_t id = 0; id < recording.value_count(); ++id)
      movable.push_back(!recording.value(static_cast<ValueId>(id)).leaf);
    return grant_in_place(recording, movable);
  }
};

}  // namespace

TEST_CASE("an output takes the memory of an input that ends with the launch") {
  InPlaceGraph g;
  const Ref a = g.value(), b = g.value(), c = g.value();
  g.make(a);
  g.map(a, b);
  g.map(b, c);
  CHECK(g.grants() == std::vector<Grant>{{1, a.value, b.value}, {2, b.value, c.value}});
}

TEST_CASE("what is used later, through whatever view, keeps its memory") {
  for (const bool later : {false, true}) {
    InPlaceGraph g;
    const Ref a = g.value(), b = g.value(), tail = g.view(a, 4, 4);
    g.make(a);
    g.map(a, b);
    if (later) g.use(tail);
    CHECK(g.grants().size() == (later ? 0 : 1));
  }
}

TEST_CASE("only a whole value of the same size and element size hands on its memory") {
  const auto grants = [](const auto& from, const auto& to) {
    InPlaceGraph g;
    const Ref a = g.value({16}, Dtype::f16);
    g.make(a);
    g.launch().in("x", from(g, a), Access::same_element).out("y", to(g));
    return g.grants().size();
  };
  const auto all = [](InPlaceGraph&, Ref a) { return a; };
  CHECK(grants(all, [](InPlaceGraph& g) { return g.value({16}, Dtype::bf16); }) == 1);
  CHECK(grants(all, [](InPlaceGraph& g) { return g.value({4, 4}, Dtype::f16); }) == 1);
  CHECK(grants(all, [](InPlaceGraph& g) { return g.value({8}, Dtype::f32); }) == 0);  // as many bytes, half of the elements
  CHECK(grants(all, [](InPlaceGraph& g) { return g.value({8}, Dtype::f16); }) == 0);
  CHECK(grants([](InPlaceGraph& g, Ref a) { return g.view(a, 0, 8, Dtype::f16); },
               [](InPlaceGraph& g) { return g.value({8}, Dtype::f16); }) == 0);
  CHECK(grants([](InPlaceGraph& g, Ref a) { return g.view(a, 8, 8, Dtype::f16); },
               [](InPlaceGraph& g) { return g.value({8}, Dtype::f16); }) == 0);
  CHECK(grants([](InPlaceGraph& g, Ref a) { return g.view(a, 0, 16, Dtype::f16); },
               [](InPlaceGraph& g) { return g.value({16}, Dtype::f16); }) == 1);
  // A part of an output.
  CHECK(grants(all, [](InPlaceGraph& g) { return g.view(g.value({32}, Dtype::f16), 16, 16, Dtype::f16); }) == 0);
}

TEST_CASE("an argument that names a part of the value is no whole") {
  InPlaceGraph g;
  const Ref a = g.value(), b = g.value();
  g.make(a);
  g.launch().in("x", a, Access::same_element).touches(4).out("y", b);
  CHECK(g.grants().empty());
  InPlaceGraph h;
  const Ref c = h.value(), d = h.value();
  h.make(c);
  h.launch().in("x", c, Access::same_element).out("y", d).touches(4);
  CHECK(h.grants().empty());
}

TEST_CASE("nothing else in the launch touches the memory that is handed on") {
  for (const bool same : {false, true}) {
    InPlaceGraph g;
    const Ref a = g.value(), b = g.value(), other = g.value();
    g.make(a);
    g.make(other);
    g.launch().in("x", a, Access::same_element).in("first", g.view(same ? a : other, 0, 1)).out("y", b);
    CHECK(g.grants().size() == (same ? 0 : 1));
  }
}

TEST_CASE("the kernel reads the element that it writes, and says so") {
  InPlaceGraph g;
  const Ref a = g.value(), b = g.value();
  g.make(a);
  g.launch().in("x", a).out("y", b);
  CHECK(g.grants().empty());
  InPlaceGraph h;
  const Ref c = h.value(), d = h.value();
  h.make(c);
  h.launch().in("x", c, Access::same_element).out("y", d);
  CHECK(h.grants().size() == 1);
}

TEST_CASE("memory is handed on once per launch") {
  InPlaceGraph g;
  const Ref a = g.value(), b = g.value(), c = g.value();
  g.make(a);
  g.launch().in("x", a, Access::same_element).out("y", b).out("z", c);  // both end here
  CHECK(g.grants() == std::vector<Grant>{{1, a.value, b.value}});
}

TEST_CASE("leaves keep their memory, and a value that exists moves no more") {
  InPlaceGraph g;
  const Ref x = g.leaf(), a = g.value(), b = g.value();
  g.map(x, a);
  CHECK(g.grants().empty());
  g.launch().out("y", b).touches(4);
  g.map(a, b);
  CHECK(g.grants().empty());
}
