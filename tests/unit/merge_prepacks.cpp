// Prepacks that several operations ask for: made once where they are the same, for recordings that no device sees.
#include <catch2/catch.hpp>
#include <functional>

#include "tests/unit/launches.h"

using namespace clnet;
using namespace clnet::exec;

namespace {

struct PrepackGraph : RecordedLaunches {
  void make(Ref to) { launch().out("y", to); }
  void change(Ref of) { launch().inout("y", of); }
  /// The value prepacked, which something reads.
  Ref prepack(Ref of, const std::function<void(Launch&)>& as = {}) {
    const auto result = recorder.prepack_once({Shape{8}, Dtype::f32});
    auto& pack = launch().in("x", of).out("y", result).arg(7);
    if (as) as(pack);
    launch().in("x", result).out("y", value());
    return result;
  }
  /// How many launches are left out.
  std::size_t shared() {
    const auto before = recording.commands().size();
    recording.merge_prepacks();
    return before - recording.commands().size();
  }
};

}  // namespace

TEST_CASE("what packs the same value alike is made once, and all read that") {
  PrepackGraph g;
  const Ref a = g.value();
  g.make(a);
  const Ref first = g.prepack(a);
  const Ref second = g.prepack(a), third = g.prepack(a);
  CHECK(g.shared() == 2);
  CHECK(g.recording.value(second.value).root == first.value);
  CHECK(g.recording.value(third.value).root == first.value);
  std::size_t reads = 0;
  for (const auto& command : g.recording.commands())
    for_each_ref(command, [&](Ref ref, bool writes) { reads += !writes && g.recording.value(ref.value).root == first.value; });
  CHECK(reads == 3);
}

TEST_CASE("prepacks of other values, parts, arguments, defines or ranges are others") {
  PrepackGraph g;
  const Ref a = g.leaf(), b = g.leaf();
  g.prepack(a);
  g.prepack(b);
  g.prepack(a.at(4));
  g.prepack(a, [](Launch& pack) { pack.arg(8); });
  g.prepack(a, [](Launch& pack) { pack.arg_float(1); });
  g.prepack(a, [](Launch& pack) { pack.define("TRANSPOSED", 1); });
  g.prepack(a, [](Launch& pack) { pack.range({8}, {1}); });
  CHECK(g.shared() == 0);
}

TEST_CASE("a prepack of what changes in between is made again") {
  PrepackGraph g;
  const Ref a = g.value();
  g.make(a);
  g.prepack(a);
  g.change(a);
  g.prepack(a);
  CHECK(g.shared() == 0);
  g.prepack(a);
  CHECK(g.shared() == 1);
}

TEST_CASE("temporary memory, and prepacks that several launches make, are their own") {
  PrepackGraph g;
  const Ref a = g.leaf();
  for (int i = 0; i < 2; ++i) {
    const Ref scratch = g.value();
    g.launch().in("x", a).out("y", scratch);
    g.launch().in("x", scratch).out("y", g.value());
  }
  for (int i = 0; i < 2; ++i) {
    const Ref halves = g.recorder.prepack_once({Shape{8}, Dtype::f32});
    g.launch().in("x", a).out("y", halves).touches(4);
    g.launch().in("x", a).out("y", halves.at(4)).touches(4);
    g.launch().in("x", halves).out("y", g.value());
  }
  CHECK(g.shared() == 0);
}
