#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <string>

#include "tests/unit/launches.h"

namespace clnet::exec {
namespace {

struct EarlyCalls : RecordedLaunches {
  /// A launch that makes a value of others, in a group of its own unless told.
  Ref made(const std::string& name, const std::vector<Ref>& from, bool own_group = true) {
    const auto to = value();
    launched(name, from, to, own_group);
    return to;
  }
  void launched(const std::string& name, const std::vector<Ref>& from, Ref to, bool own_group = true) {
    if (own_group) recording.enter_group(++group_);
    auto& launch = recorder.kernel("p", name);
    for (const auto ref : from) launch.in("x", ref);
    launch.out("y", to);
  }
  void call(const std::string& name, std::vector<Ref> reads, std::vector<Ref> writes, bool early) {
    recording.enter_group(++group_);
    recorder.host({name, std::move(reads), std::move(writes), [](HostContext&) {}, 0, true, early});
  }
  std::string order() const {
    std::string names;
    for (const auto& command : recording.commands()) {
      const auto* launch = std::get_if<Launch>(&command);
      names += (names.empty() ? "" : " ") + (launch ? launch->function() : std::get<HostCall>(command).name);
    }
    return names;
  }

 private:
  std::size_t group_ = 0;
};

TEST_CASE("early calls come as soon as their values are there") {
  EarlyCalls r;
  const auto x = r.leaf();
  const auto d3 = r.made("loss", {x});
  const auto w3 = r.made("w3", {d3}), d2 = r.made("d2", {d3}), w2 = r.made("w2", {d2}), d1 = r.made("d1", {d2}),
             w1 = r.made("w1", {d1});
  const auto s3 = r.value(), s2 = r.value(), s1 = r.value();
  r.call("begin3", {w3}, {}, true);
  r.call("begin21", {w2, w1}, {}, true);
  r.call("end3", {}, {s3}, false);
  r.call("end21", {}, {s2, s1}, false);
  r.recording.move_early_calls();
  CHECK(r.order() == "loss w3 begin3 d2 w2 d1 w1 begin21 end3 end21");
}

TEST_CASE("early calls stay in their order") {
  EarlyCalls r;
  const auto x = r.leaf();
  const auto a = r.made("a", {x}), b = r.made("b", {x}), c = r.made("c", {x});
  r.call("begin_b", {b}, {}, true);
  r.call("begin_a", {a}, {}, true);
  r.call("begin_c", {c}, {}, true);
  r.made("step", {a, b, c});
  r.recording.move_early_calls();
  CHECK(r.order() == "a b begin_b begin_a c begin_c step");
}

TEST_CASE("launches that only serve an early call move with it, all of their group") {
  EarlyCalls r;
  const auto x = r.leaf();
  const auto gradient = r.made("gradient", {x});
  const auto other = r.made("other", {x});
  const auto scratch = r.made("partial", {gradient});
  const auto narrow = r.made("cast", {scratch}, false);
  r.call("begin", {narrow}, {}, true);
  r.made("step", {other, gradient});
  r.recording.move_early_calls();
  CHECK(r.order() == "gradient partial cast begin other step");
}

TEST_CASE("a launch that something else reads stays") {
  EarlyCalls r;
  const auto x = r.leaf();
  const auto gradient = r.made("gradient", {x});
  const auto other = r.made("other", {x});
  const auto narrow = r.made("cast", {gradient});
  r.call("begin", {narrow}, {}, true);
  r.made("step", {other, narrow});
  r.recording.move_early_calls();
  CHECK(r.order() == "gradient other cast begin step");
}

TEST_CASE("nothing moves where no call is early") {
  EarlyCalls r;
  const auto x = r.leaf();
  const auto a = r.made("a", {x});
  r.made("b", {x});
  r.call("call", {a}, {}, false);
  r.recording.move_early_calls();
  CHECK(r.order() == "a b call");
}

TEST_CASE("commands of random programs keep the order in which they need each other") {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    EarlyCalls r;
    std::vector<Ref> values{r.leaf()};
    const auto any = [&] { return values[random() % values.size()]; };
    for (int i = 0; i < 40; ++i) {
      const auto name = std::to_string(i);
      if (random() % 5 == 0) {
        r.call(name, {any(), any()}, {}, random() % 4 != 0);
      } else {
        // Some launches write into a value that is there, as each of several that write a part.
        const auto to = values.size() > 2 && random() % 6 == 0 ? values[1 + random() % (values.size() - 1)] : r.value();
        r.launched(name, {any()}, to, random() % 3 != 0);
        values.push_back(to);
      }
    }
    const auto before = r.recording.commands();
    r.recording.move_early_calls();
    const auto name_of = [](const Command& command) {
      const auto* launch = std::get_if<Launch>(&command);
      return std::stoul(launch ? launch->function() : std::get<HostCall>(command).name);
    };
    std::vector<std::size_t> place(before.size(), before.size());
    for (std::size_t i = 0; i < before.size(); ++i) place[name_of(r.recording.commands()[i])] = i;
    CHECK(std::count(place.begin(), place.end(), before.size()) == 0);
    const auto needs = [&](std::size_t later, std::size_t earlier) {
      bool found = false;
      for_each_ref(before[later], [&](Ref a, bool a_writes) {
        for_each_ref(before[earlier],
                     [&](Ref b, bool b_writes) { found = found || (a.value == b.value && (a_writes || b_writes)); });
      });
      const auto is_early = [&](std::size_t i) {
        const auto* call = std::get_if<HostCall>(&before[i]);
        return call && call->early;
      };
      return found || (is_early(later) && is_early(earlier));
    };
    for (std::size_t later = 0; later < before.size(); ++later)
      for (std::size_t earlier = 0; earlier < later; ++earlier)
        if (needs(later, earlier)) CHECK(place[earlier] < place[later]);
  }
}

}  // namespace
}  // namespace clnet::exec
