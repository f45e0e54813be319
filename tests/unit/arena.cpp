#include "lib/exec/place/arena.h"

#include <algorithm>
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

TEST_CASE("thousands of values are placed in turn, none over another, in little more memory than is alive at once") {
  std::mt19937 random(5);
  constexpr std::size_t count = 6000, most = 1 << 20;
  std::vector<Lifetime> values;
  std::vector<std::size_t> alive(count + 600, 0);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t bytes = 128 * (1 + random() % 40), last = i + (i % 3 ? random() % 20 : random() % 500);
    values.push_back({bytes, i, last});
    for (auto at = i; at <= last; ++at) alive[at] += bytes;
  }
  const auto layout = lay_out(values, most);
  for (std::size_t a = 0; a < count; ++a)
    for (std::size_t b = a + 1; b < count && values[b].first <= values[a].last; ++b) {
      const auto& x = layout.places[a];
      const auto& y = layout.places[b];
      const bool apart =
          x.segment != y.segment || x.offset + values[a].bytes <= y.offset || y.offset + values[b].bytes <= x.offset;
      REQUIRE(apart);
    }
  for (auto bytes : layout.segments) CHECK(bytes <= most);
  CHECK(layout.bytes() < *std::max_element(alive.begin(), alive.end()) * 5 / 4);
}

}  // namespace
}  // namespace clnet::exec
