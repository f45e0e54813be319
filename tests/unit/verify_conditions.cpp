// Each condition of a plan, broken on purpose in a run that no device sees: the verifier names it.
#include <catch2/catch.hpp>
#include <vector>

#include "lib/exec/place/verify.h"
#include "tests/unit/launches.h"

using namespace clnet;
using namespace clnet::exec;
using Catch::Contains;

namespace {

struct Broken : RecordedLaunches {
  std::vector<ValueId> keep;
  Placement placement;
  std::vector<RunPlace> places;
  std::vector<RunPrepack> prepacks;

  Ref view(Ref of, std::int64_t offset, std::int64_t count) {
    const auto id = recording.add_value({Shape{count}, Dtype::f32});
    recording.alias(id, of.at(offset));
    return {id, 0};
  }
  void make(Ref to) { launch().out("y", to); }
  void use(Ref x) { launch().in("x", x).out("y", value()); }

  /// As the conditions have it, in a buffer for each value but those that are made in place; and that is right.
  void place_all(Ref result) {
    keep = {result.value};
    placement = place(recording, keep, {});
    for (std::size_t id = 0; id < recording.value_count(); ++id) places.push_back({id + 1, 0, 64});
    for (const auto& grant : placement.grants) take(grant.from, grant.to);
    for (const auto& prepack : placement.prepacks) {
      RunPrepack made;
      made.kept = true;
      for (auto leaf : prepack.leaves) made.sources.push_back(static_cast<std::uint64_t>(leaf) + 100);
      made.made_from = made.sources;
      prepacks.push_back(std::move(made));
    }
    REQUIRE_NOTHROW(check());
  }
  /// The command makes `to` in the memory of `from`, whatever the conditions say.
  void grant(std::size_t command, Ref from, Ref to) {
    placement.grants.push_back({command, from.value, to.value});
    take(from.value, to.value);
  }
  void check() const { verify(exec::view(recording, placement, keep, places, prepacks)); }

 private:
  void take(ValueId from, ValueId to) { places[static_cast<std::size_t>(to)] = places[static_cast<std::size_t>(from)]; }
};

/// A small value that is made of a leaf and kept with it, and a result that is made of that.
struct OfLeaf : Broken {
  Ref x = leaf(), small = value(), y = value();

  OfLeaf() {
    launch().in("x", x).out("y", small);
    recording.keep_small(small.value);
    launch().in("x", small).out("y", y);
    place_all(y);
    REQUIRE(prepacks.size() == 1);
  }
};

}  // namespace

TEST_CASE("in place: the memory is read later") {
  Broken run;
  const Ref a = run.value(), b = run.value(), c = run.value();
  run.make(a);
  run.launch().in("x", a, Access::same_element).out("y", b);
  run.use(b);
  run.launch().in("x", a).out("y", c);
  run.place_all(c);
  run.grant(1, a, b);
  CHECK_THROWS_WITH(run.check(), Contains("but finds"));
}

TEST_CASE("in place: half as many elements of another size") {
  Broken run;
  const Ref a = run.value({16}, Dtype::f16), b = run.value();
  run.make(a);
  run.launch().in("x", a, Access::same_element).out("y", b);
  run.place_all(b);
  run.grant(1, a, b);
  CHECK_THROWS_WITH(run.check(), Contains("not the same elements"));
}

TEST_CASE("in place: the kernel also reads the memory through a view") {
  Broken run;
  const Ref a = run.value(), b = run.value();
  run.make(a);
  run.launch().in("x", a, Access::same_element).in("first", run.view(a, 0, 1)).out("y", b);
  run.place_all(b);
  run.grant(1, a, b);
  CHECK_THROWS_WITH(run.check(), Contains("writes value") && Contains("reads"));
}

TEST_CASE("in place: the kernel reads other elements than it writes") {
  Broken run;
  const Ref a = run.value(), b = run.value();
  run.make(a);
  run.launch().in("x", a).out("y", b);
  run.place_all(b);
  run.grant(1, a, b);
  CHECK_THROWS_WITH(run.check(), Contains("other elements than it writes"));
}

TEST_CASE("in place: two results of a launch over the same memory") {
  Broken run;
  const Ref a = run.value(), b = run.value(), c = run.value();
  run.make(a);
  run.launch().in("x", a, Access::same_element).out("y", b).out("z", c);
  run.use(b);
  run.place_all(c);
  REQUIRE(run.placement.grants == std::vector<Grant>{{1, a.value, b.value}});
  run.grant(1, a, c);
  CHECK_THROWS_WITH(run.check(), Contains("which it writes, too"));
}

TEST_CASE("prepacked: the value is returned") {
  OfLeaf run;
  run.keep.push_back(run.small.value);
  CHECK_THROWS_WITH(run.check(), Contains("is returned, but it is a prepacked value"));
}

TEST_CASE("prepacked: a caller may write to what it is made of") {
  OfLeaf run;
  run.prepacks[0].imported = true;
  CHECK_THROWS_WITH(run.check(), Contains("memory that a caller may write to"));
}

TEST_CASE("prepacked: what it is made of changes") {
  OfLeaf run;
  run.recording.expect_change(run.x);
  CHECK_THROWS_WITH(run.check(), Contains("which changes"));
}

TEST_CASE("prepacked: it was made of other values") {
  OfLeaf run;
  run.prepacks[0].there = true;
  REQUIRE_NOTHROW(run.check());
  run.prepacks[0].made_from[0] += 1;
  CHECK_THROWS_WITH(run.check(), Contains("made from other values than this run's"));
}

TEST_CASE("arguments: one was set for where its value was before") {
  CHECK_NOTHROW(verify_set(3, "copy", 1, {7, 16}, {7, 16}));
  CHECK_THROWS_WITH(verify_set(3, "copy", 1, {7, 16}, {9, 16}),
                    Contains("argument 1 of command 3 (copy) is buffer 7 from element 16, but its value is in buffer 9"));
  CHECK_THROWS_WITH(verify_set(3, "copy", 1, {}, {7, 16}), Contains("but its value is in buffer 7 from element 16"));
}
