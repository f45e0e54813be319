// Which launches become one command, and which wait for which.
#include "lib/exec/batch/launch_batches.h"

#include <catch2/catch.hpp>
#include <numeric>
#include <vector>

#include "tests/unit/launches.h"

using namespace clnet;
using namespace clnet::exec;

namespace {

struct Program : RecordedLaunches {
  Program() {
    device.compute_units = 2;
    device.native_float_width = 8;
    device.local_memory = 1 << 16;
  }
  Ref leaf(bool scalar = false) { return {recording.add_leaf({scalar ? Shape{} : Shape{8}, Dtype::f32}, scalar), 0}; }
  Launch& launch(const char* function = "f") {
    static const std::string source = "kernel void f(global float *x) {}\nkernel void g(global float *x) {}\n";
    return recorder.generated("p", source, function).range({4}, {1});
  }
  Placement placement(Ref result, const PlacementOptions& options = {}) const {
    return place(recording, {result.value}, options);
  }
  LaunchBatches batches(Ref result, std::size_t fewest = 2) const {
    return find_launch_batches(recording, placement(result), device, fewest);
  }
};

std::vector<bool> waits(const LaunchBatch& batch) {
  std::vector<bool> result;
  for (const auto& entry : batch.entries) result.push_back(entry.waits);
  return result;
}

}  // namespace

TEST_CASE("launches wait for what they read, and for readers and writers of what they write") {
  Program p;
  const Ref x = p.leaf(), a = p.value(), b = p.value(), c = p.value(), d = p.value();
  p.launch().in("x", x).out("y", a);
  p.launch().in("x", x).out("y", b);  // beside the first
  p.launch().in("x", a).out("y", c);  // reads what the first writes
  p.launch().in("x", b).out("y", d);  // beside that
  p.launch().in("x", c).inout("y", d);
  const auto batches = p.batches(d).batches;
  REQUIRE(batches.size() == 1);
  CHECK(waits(batches[0]) == std::vector<bool>{false, false, true, false, true});
  CHECK(batches[0].side_by_side);
}

TEST_CASE("launches whose values share memory wait, though their values have nothing to do with each other") {
  Program p;
  const Ref x = p.leaf(), a = p.value(), b = p.value(), c = p.value(), d = p.value();
  p.launch().in("x", x).out("y", a);
  p.launch().in("x", a).out("y", b);
  p.launch().in("x", x).out("y", c);  // a is over: c lies there
  p.launch().in("x", b).in("z", c).out("y", d);
  const auto placement = p.placement(d);
  const auto spot = [&](Ref ref) {
    const auto& place = placement.places[static_cast<std::size_t>(ref.value)];
    return std::pair(place.segment, place.offset);
  };
  const auto batches = find_launch_batches(p.recording, placement, p.device, 2).batches;
  REQUIRE(batches.size() == 1);
  REQUIRE(spot(a) == spot(c));
  CHECK(waits(batches[0]) == std::vector<bool>{false, true, true, true});
}

TEST_CASE("parts of a value are apart") {
  Program p;
  const Ref x = p.leaf(), y = p.value();
  p.launch().in("x", x).out("y", y).touches(4);
  p.launch().in("x", x).out("y", y.at(4)).touches(4);
  p.launch().in("x", x).inout("y", y.at(3)).touches(1);
  const auto batches = p.batches(y).batches;
  REQUIRE(batches.size() == 1);
  CHECK(waits(batches[0]) == std::vector<bool>{false, false, true});
}

TEST_CASE("a launch is as long as what it moves") {
  Program p;
  const Ref x{p.recording.add_leaf({Shape{1 << 24}, Dtype::f32}, false), 0}, a = p.value(), b = p.value();
  auto& first = p.launch().in("x", x).out("y", a);
  SECTION("all of its buffers") {
    p.launch().in("x", a).out("y", b);
    CHECK(p.batches(b).batches.empty());
  }
  SECTION("or what it says") {
    first.moves(64);
    p.launch().in("x", a).out("y", b);
    CHECK(p.batches(b).batches.size() == 1);
  }
}

TEST_CASE("a launch is shorter where vectors have more lanes") {
  Program p;
  const Ref x = p.leaf(), a = p.value(), b = p.value();
  p.launch().in("x", x).out("y", a).flops(90e6);  // 0.75 ms of two units with eight lanes
  p.launch().in("x", a).out("y", b);
  CHECK(p.batches(b).batches.empty());
  p.device.native_float_width = 16;
  CHECK(p.batches(b).batches.size() == 1);
}

TEST_CASE("what is no launch batch") {
  Program p;
  const Ref x = p.leaf(), a = p.value(), b = p.value(), c = p.value();
  p.launch().in("x", x).out("y", a);
  SECTION("too few") {
    p.launch().in("x", a).out("y", c);
    CHECK(p.batches(c, 3).batches.empty());
    CHECK(p.batches(c, 2).batches.size() == 1);
  }
  SECTION("groups of several work-items") {
    p.launch().in("x", a).out("y", b).range({4}, {2});
    p.launch().in("x", b).out("y", c);
    CHECK(p.batches(c).batches.empty());
  }
  SECTION("a group of the driver's choice") {
    p.launch().in("x", a).out("y", b).range({4});
    p.launch().in("x", b).out("y", c);
    CHECK(p.batches(c).batches.empty());
  }
  SECTION("long ones") {
    p.launch().in("x", a).out("y", b).flops(1e9);
    p.launch().in("x", b).out("y", c);
    CHECK(p.batches(c).batches.empty());
  }
  SECTION("a user's kernel") {
    p.recorder.custom("p", "kernel void f(global float *x) {}", "f").in("x", a).out("y", b).range({4}, {1});
    p.launch().in("x", b).out("y", c);
    CHECK(p.batches(c).batches.empty());
  }
  SECTION("a call of the host between them") {
    p.recorder.host({"call", {a}, {b}, {}, 0});
    p.launch().in("x", b).out("y", c);
    CHECK(p.batches(c).batches.empty());
  }
  SECTION("the tail of a run") {
    p.launch().in("x", a).out("y", b);
    p.launch().in("x", b).out("y", c);
    const auto entries = [&](std::size_t end) {
      const auto batches = find_launch_batches(p.recording, p.placement(c), p.device, 2, end).batches;
      return batches.empty() ? 0 : batches[0].entries.size();
    };
    CHECK(entries(1) == 0);
    CHECK(entries(2) == 2);
    CHECK(entries(9) == 3);
  }
}

TEST_CASE("a result that may lie where a leaf lies waits for the leaf's readers") {
  Program p;
  const Ref x = p.leaf(), a = p.value(), y = p.value();
  p.launch().in("x", x).out("y", a);
  p.launch().in("x", x).out("y", y);
  auto placement = p.placement(y);
  CHECK(waits(find_launch_batches(p.recording, placement, p.device, 2).batches.at(0)) == std::vector<bool>{false, false});
  placement.donations.push_back({1, x.value, y.value, true});
  CHECK(waits(find_launch_batches(p.recording, placement, p.device, 2).batches.at(0)) == std::vector<bool>{false, true});
}

TEST_CASE("a launch batch without room for a launch ends before it") {
  Program p;
  std::vector<Ref> leaves;
  for (int k = 0; k < 140; ++k) leaves.push_back(p.leaf());
  const Ref s = p.leaf(true), y = p.value(), z = p.value();
  const auto each_once = [](const LaunchBatches& found, std::size_t commands) {
    std::vector<std::size_t> seen;
    for (const auto& batch : found.batches) {
      CHECK(batch.first == batch.entries.front().command);
      for (const auto& entry : batch.entries) seen.push_back(entry.command);
    }
    std::vector<std::size_t> all(commands);
    std::iota(all.begin(), all.end(), std::size_t{0});
    CHECK(seen == all);
  };
  SECTION("nor one in the last program, whose parameters are many") {
    for (const auto& leaf : leaves) p.launch().in("x", leaf).inout("y", y);
    p.launch("g").in("x", y).scalar("s", s).out("z", z);
    p.launch("g").in("x", y).scalar("s", s).out("z", z);
    const auto found = p.batches(z);
    CHECK(found.programs.size() == 2);
    each_once(found, leaves.size() + 2);
  }
  SECTION("whatever its program is: such a launch is no part of one") {
    auto& launch = p.launch();
    for (const auto& leaf : leaves) launch.in("x", leaf);
    launch.out("y", y);
    for (int k = 0; k < 3; ++k) p.launch("g").in("x", y).out("z", z);
    const auto found = p.batches(z);
    REQUIRE(found.batches.size() == 1);
    CHECK(found.batches[0].first == 1);
    CHECK(found.batches[0].entries.size() == 3);
  }
  SECTION("as its tasks are too many to count") {
    for (int k = 0; k < (1 << 14) + 2; ++k) p.launch().in("x", leaves[0]).out("y", y).range({65536}, {1});
    const auto found = p.batches(y);
    REQUIRE(found.batches.size() == 2);
    CHECK(found.batches[0].entries.size() == 1 << 14);
    each_once(found, (1 << 14) + 2);
  }
}

TEST_CASE("a launch batch ends after a while, so that whoever left it comes back") {
  Program p;
  constexpr std::size_t launches = 60;
  constexpr double flops = 18e6;  // 150 microseconds on two units
  Ref last = p.leaf();
  for (std::size_t i = 0; i < launches; ++i) {
    const Ref next = p.value();
    p.launch().in("x", last).out("y", next).flops(flops);
    last = next;
  }
  const auto [batches, programs, microseconds] = p.batches(last);
  CHECK(microseconds > 8500);
  REQUIRE(batches.size() == 3);
  CHECK(programs.size() == 1);
  std::size_t entries = 0;
  for (const auto& batch : batches) {
    CHECK(batch.first == entries);
    CHECK(batch.microseconds < 4500);
    entries += batch.entries.size();
  }
  CHECK(entries == launches);
}

TEST_CASE("equal kernels are one, and empty launches none") {
  Program p;
  const Ref x = p.leaf(), s = p.leaf(true), a = p.value(), b = p.value(), c = p.value();
  p.launch().in("x", x).scalar("s", s).out("y", a).args({-1});
  p.launch("g").in("x", a).out("y", b);
  p.launch().in("x", b).out("y", c).range({0}, {1});
  p.launch().in("x", b.at(2)).scalar("s", s).out("y", c).args({7});
  const auto found = p.batches(c);
  REQUIRE(found.batches.size() == 1);
  REQUIRE(found.programs.size() == 1);
  const auto& batch = found.batches[0];
  CHECK(found.programs[0].commands == std::vector<std::size_t>{0, 1});
  REQUIRE(batch.entries.size() == 3);
  CHECK(batch.entries[2].kernel == 0);
  CHECK(batch.scalars == std::vector<ValueId>{s.value});
  // x, its first element's value, s, a from its place in the arena, and the integer.
  const auto& words = batch.entries[0].words;
  REQUIRE(words.size() == 6);
  CHECK(words[0] >> 32 == 1);
  CHECK(batch.values == std::vector<LaunchBatch::Value>{{false, x.value}});
  CHECK(static_cast<std::int32_t>(words[5]) == -1);
  CHECK(batch.entries[2].words[1] == batch.entries[1].words[3] + 2);
}

TEST_CASE("a list says how many tasks come before each that waits") {
  Program p;
  const Ref x = p.leaf(), a = p.value(), b = p.value(), c = p.value();
  p.launch().in("x", x).out("y", a).range({2, 3}, {1, 1});
  p.launch().in("x", a).out("y", b);
  p.launch().in("x", b).out("y", c).range({5}, {1});
  const auto batch = p.batches(c).batches.at(0);
  const auto entry = [&](const std::vector<std::uint64_t>& list, std::size_t index) {
    auto at = BatchList::first_value + list[BatchList::values];
    while (index-- > 0) at += list[at + BatchList::words];
    return std::vector(list.begin() + static_cast<std::ptrdiff_t>(at), list.begin() + static_cast<std::ptrdiff_t>(at) + 7);
  };
  auto list = batch_list(p.recording, batch, {0}, {false, false, false}, 8);
  CHECK(list[BatchList::tasks] == 15);
  CHECK(list[BatchList::groups] == 8);
  CHECK(entry(list, 0) == std::vector<std::uint64_t>{0, 11, 6, 0, 2, 3, 1});
  CHECK(entry(list, 1)[BatchList::after] == 6);
  CHECK(entry(list, 2)[BatchList::after] == 10);
  list = batch_list(p.recording, batch, {0}, {false, true, false}, 8);
  CHECK(list[BatchList::tasks] == 11);
  CHECK(entry(list, 1)[BatchList::its_tasks] == 0);
  CHECK(entry(list, 2)[BatchList::after] == 6);
}
