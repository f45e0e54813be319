// Which results may be made in the memory of a leaf: each sentence of the rule, for recordings that no device sees.
#include <catch2/catch.hpp>

#include "lib/exec/place/in_place.h"
#include "lib/exec/place/verify.h"
#include "tests/unit/launches.h"

using namespace clnet;
using namespace clnet::exec;
using Catch::Contains;

namespace {

/// `keep` is returned.
struct DonationGraph : RecordedLaunches {
  std::vector<ValueId> keep;

  Ref result() {
    const auto ref = value();
    keep.push_back(ref.value);
    return ref;
  }
  /// What slice_update records.
  void update(Ref x, Ref slice, Ref y) {
    launch().in("x", x, Access::same_element).in("value", slice).out("y", y).unless_in_place(y);
    launch().in("value", slice).inout("y", y).if_in_place(y);
  }

  std::vector<Donation> donations() const { return place(recording, keep, {}).donations; }

  /// Verifies a run that grants `granted`, and lets other values lie alone.
  void check(const std::vector<Donation>& granted) const {
    const auto placement = place(recording, keep, {});
    std::vector<RunPlace> places(placement.homes.size());
    for (std::size_t id = 0; id < places.size(); ++id) places[id] = {id + 1, 0, 32};
    for (const auto& grants : {placement.grants})
      for (const auto& grant : grants) places[static_cast<std::size_t>(grant.to)] = places[static_cast<std::size_t>(grant.from)];
    for (const auto& given : granted) places[static_cast<std::size_t>(given.to)] = places[static_cast<std::size_t>(given.from)];
    verify(view(recording, placement, keep, places, {}, granted));
  }
};

}  // namespace

TEST_CASE("a result may take the memory of a leaf that ends with its launch") {
  DonationGraph g;
  const Ref state = g.leaf(), gradient = g.leaf(), next = g.result();
  g.launch().in("m", state, Access::same_element).in("g", gradient).out("y", next);
  const std::vector<Donation> expected{{0, state.value, next.value, false}};
  CHECK(g.donations() == expected);
  CHECK_NOTHROW(g.check(expected));
  CHECK_NOTHROW(g.check({}));
}

TEST_CASE("no leaf is given that is read later, or returned") {
  DonationGraph g;
  const Ref state = g.leaf(), next = g.result(), other = g.result();
  g.launch().in("m", state, Access::same_element).out("y", next);
  SECTION("read") {
    g.launch().in("m", state).out("y", other);
    CHECK(g.donations().empty());
    CHECK_THROWS_WITH(g.check({{0, state.value, next.value, false}}), Contains("reads bytes 0 to 32 of value 0"));
  }
  SECTION("returned") {
    g.launch().out("y", other);
    g.keep.push_back(state.value);
    CHECK(g.donations().empty());
    CHECK_THROWS_WITH(g.check({{0, state.value, next.value, false}}), Contains("the caller gets bytes 0 to 32 of value 0"));
  }
}

TEST_CASE("a result that is not the whole value of its launch, or only lives for the run, takes no leaf's memory") {
  DonationGraph g;
  const Ref state = g.leaf(), next = g.result(), between = g.value();
  g.launch().in("m", state, Access::same_element).out("y", between);
  g.launch().in("x", between).out("y", next).touches(4);
  g.launch().in("x", between).out("y", next.at(4)).touches(4);
  CHECK(g.donations().empty());
}

TEST_CASE("behind the first launch that overwrites a leaf for good there is no call on the host") {
  DonationGraph g;
  const Ref state = g.leaf(), other = g.leaf(), next = g.result(), product = g.result(), last = g.result();
  g.launch().in("m", state, Access::same_element).out("y", next);
  g.recorder.host({"call", {next}, {product}, {}, 0});
  g.launch().in("m", other, Access::same_element).out("y", last);
  CHECK(g.donations() == std::vector<Donation>{{2, other.value, last.value, false}});
}

TEST_CASE("an input that one output reads by elements is given to no other output of the launch") {
  DonationGraph g;
  const Ref m0 = g.leaf(), m1 = g.leaf(), new0 = g.result(), new1 = g.result();
  g.launch()
      .out("p", new1)
      .in("m0", m0, Access::same_element)
      .only_for(new0)
      .out("new_m0", new0)
      .in("m1", m1, Access::same_element)
      .only_for(new1);
  CHECK(g.donations() == std::vector<Donation>{{0, m1.value, new1.value, false}, {0, m0.value, new0.value, false}});
  CHECK_THROWS_WITH(g.check({{0, m0.value, new1.value, false}}), Contains("other elements than it writes"));
}

TEST_CASE("a slice is written where its input lies: the launch that makes all of it is left out") {
  DonationGraph g;
  const Ref cache = g.leaf(), slice = g.leaf(), next = g.result(), read = g.result();
  SECTION("as the leaf's only reader") {
    g.update(cache, slice, next);
    g.launch().in("x", next).out("y", read);
    const std::vector<Donation> expected{{0, cache.value, next.value, true}};
    CHECK(g.donations() == expected);
    CHECK_NOTHROW(g.check(expected));
    CHECK_NOTHROW(g.check({}));
  }
  SECTION("beside others, which a run that is made again would show what it wrote") {
    g.launch().in("x", cache).out("y", read);
    g.update(cache, slice, next);
    CHECK(g.donations().empty());
  }
  SECTION("of a value that the plan makes: always") {
    const Ref made = g.value(), middle = g.value();
    g.launch().out("y", made);
    g.update(made, slice, middle);
    g.launch().in("x", middle).out("y", next);
    g.launch().in("x", cache).out("y", read);
    const auto placement = place(g.recording, g.keep, {});
    CHECK(placement.grants == std::vector<Grant>{{1, made.value, middle.value}});
    CHECK_NOTHROW(g.check({}));
    const auto is_made = [&](std::size_t command) {
      const auto& launch = std::get<Launch>(g.recording.commands()[command]);
      return (launch.when() == Launch::When::in_place) == lies_in_place(g.recording, placement, {}, launch);
    };
    CHECK_FALSE(is_made(1));
    CHECK(is_made(2));
  }
}

TEST_CASE("the verifier names a slice whose rest is not there") {
  DonationGraph g;
  const Ref slice = g.leaf(), made = g.value(), middle = g.value(), next = g.result();
  g.launch().out("y", made).touches(4);  // the other half is never written
  g.update(made, slice, middle);
  g.launch().in("x", middle).out("y", next);
  CHECK_THROWS_WITH(g.check({}), Contains("hands on bytes 16 to 32 of value 1") && Contains("nothing written there"));
}
