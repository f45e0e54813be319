#include "lib/exec/plan/arena.h"

#include <catch2/catch.hpp>
#include <random>

namespace clnet::exec {
namespace {

bool alive_together(const Lifetime& a, const Lifetime& b) { return a.first <= b.last && b.first <= a.last; }

TEST_CASE("values that are alive together never overlap, and stay within the segments") {
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    std::vector<Lifetime> values;
    std::size_t sum = 0;
    for (int i = 0; i < 60; ++i) {
      const std::size_t first = random() % 100, bytes = random() % 5000;
      values.push_back({bytes, first, first + random() % 20});
      sum += bytes + Layout::alignment;
    }
    const std::size_t most = round % 2 ? 8192 : 1 << 30;
    const auto layout = lay_out(values, most);
    REQUIRE(layout.places.size() == values.size());
    CHECK(layout.bytes() <= sum);
    for (auto bytes : layout.segments) CHECK(bytes <= most);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto& place = layout.places[i];
      CHECK(place.offset % Layout::alignment == 0);
      REQUIRE(place.offset + values[i].bytes <= layout.segments.at(place.segment));
      for (std::size_t k = 0; k < i; ++k) {
        const auto& other = layout.places[k];
        if (!alive_together(values[i], values[k]) || place.segment != other.segment) continue;
        REQUIRE((place.offset + values[i].bytes <= other.offset || other.offset + values[k].bytes <= place.offset));
      }
    }
  }
}

TEST_CASE("a chain of equal values needs room for two") {
  std::vector<Lifetime> values;
  for (std::size_t i = 0; i < 10; ++i) values.push_back({1024, i, i + 1});
  CHECK(lay_out(values, 1 << 20).bytes() == 2048);
}

TEST_CASE("values of no bytes have a place, and no values need no memory") {
  CHECK(lay_out({}, 1024).bytes() == 0);
  const auto layout = lay_out({{0, 0, 1}, {0, 0, 1}}, 1024);
  CHECK(layout.places[0].offset != layout.places[1].offset);
}

}  // namespace
}  // namespace clnet::exec
