// The verifier over small runs that no device sees: who writes a value how often.
#include "lib/exec/place/verify.h"

#include <catch2/catch.hpp>

#include "tests/unit/launches.h"

using namespace clnet;
using namespace clnet::exec;
using Catch::Contains;

namespace {

/// The last value is returned.
struct Run : RecordedLaunches {
  void check(Ref result) const {
    const std::vector<ValueId> keep{result.value};
    const auto placement = place(recording, keep, {});
    std::vector<RunPlace> places(placement.homes.size());
    for (std::size_t id = 0; id < places.size(); ++id) places[id] = {id + 1, 0, 32};
    verify(view(recording, placement, keep, places, {}));
  }
};

}  // namespace

TEST_CASE("a value that is written again before anything has read it is named") {
  Run run;
  const Ref a = run.value(), b = run.value();
  run.launch().out("y", a);
  SECTION("once is right") {
    run.launch().in("x", a).out("y", b);
    CHECK_NOTHROW(run.check(b));
  }
  SECTION("all of it") {
    run.launch().out("y", a);
    run.launch().in("x", a).out("y", b);
    CHECK_THROWS_WITH(run.check(b), Contains("writes bytes 0 to 32 of value 0") && Contains("which command 0 (f) wrote") &&
                                        Contains("nothing has read"));
  }
  SECTION("after it was read") {
    run.launch().in("x", a).out("y", b);
    run.launch().out("y", a);
    CHECK_THROWS_WITH(run.check(b), Contains("which command 1 (f) has read before"));
  }
  SECTION("by a launch that reads it, too") {
    run.launch().inout("y", a);
    run.launch().inout("y", a);
    run.launch().in("x", a).out("y", b);
    CHECK_NOTHROW(run.check(b));
  }
  SECTION("though it is returned") {
    run.launch().out("y", a);
    CHECK_THROWS_WITH(run.check(a), Contains("nothing has read"));
  }
}

TEST_CASE("parts of a value are written one after the other and among each other") {
  Run run;
  const Ref a = run.value(), b = run.value();
  run.launch().out("y", a).touches(6);  // every other row, say
  SECTION("the rest") {
    run.launch().out("y", a.at(6)).touches(2);
    run.launch().in("x", a).out("y", b);
    CHECK_NOTHROW(run.check(b));
  }
  SECTION("the rows between") {
    run.launch().out("y", a.at(2)).touches(6);
    run.launch().in("x", a).out("y", b);
    CHECK_NOTHROW(run.check(b));
  }
  SECTION("some of all, as it says") {
    run.launch().out("y", a).scattered();
    run.launch().in("x", a).out("y", b);
    CHECK_NOTHROW(run.check(b));
  }
  SECTION("by a call that adds to it") {
    run.recorder.host({"call", {a}, {a}, {}, 0});
    CHECK_NOTHROW(run.check(a));
  }
  SECTION("by a call that does not") {
    run.recorder.host({"call", {}, {a}, {}, 0});
    CHECK_THROWS_WITH(run.check(a), Contains("command 1 (call) writes bytes 0 to 24"));
  }
  SECTION("all of it") {
    run.launch().out("y", a);
    run.launch().in("x", a).out("y", b);
    CHECK_THROWS_WITH(run.check(b), Contains("writes bytes 0 to 24 of value 0"));
  }
}
