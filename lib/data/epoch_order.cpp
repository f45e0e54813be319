#include "lib/data/epoch_order.h"

#include <numeric>
#include <utility>

namespace clnet::data {
namespace {

/// SplitMix64's output function (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014).
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

constexpr std::uint64_t step = 0x9e3779b97f4a7c15ULL;

/// 0..count-1, each equally likely: numbers from the last, incomplete run of `count` are thrown away.
template <class Next>
std::uint64_t number_below(std::uint64_t count, const Next& next) {
  const std::uint64_t surplus = (0 - count) % count;
  for (;;) {
    const auto x = next();
    if (x >= surplus) return x % count;
  }
}

class Random {
 public:
  Random(std::uint64_t seed, std::uint64_t epoch) : state_(mix(mix(seed + step) + epoch * step)) {}
  std::uint64_t next() { return mix(state_ += step); }
  std::uint64_t below(std::uint64_t count) {
    return number_below(count, [this] { return next(); });
  }

 private:
  std::uint64_t state_;
};

}  // namespace

std::vector<std::int64_t> epoch_order(std::int64_t count, bool shuffle, std::uint64_t seed, std::uint64_t epoch) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  if (!shuffle) return order;
  Random random(seed, epoch);
  for (std::size_t left = order.size(); left > 1; --left) std::swap(order[left - 1], order[random.below(left)]);
  return order;
}

std::int64_t epoch_shift(std::int64_t length, bool shuffle, std::uint64_t seed, std::uint64_t epoch) {
  // Another seed than the order's, so that they do not depend on each other.
  return shuffle ? static_cast<std::int64_t>(Random(~seed, epoch).below(static_cast<std::uint64_t>(length))) : 0;
}

// Another seed than the order's here, too.
SampleRandom::SampleRandom(std::uint64_t seed, std::uint64_t epoch, std::int64_t index)
    : state_(mix(mix(mix(~seed + step) + epoch * step) + static_cast<std::uint64_t>(index) * step)) {}
std::uint64_t SampleRandom::next() { return mix(state_ += step); }
std::uint64_t SampleRandom::below(std::uint64_t count) {
  return number_below(count, [this] { return next(); });
}

}  // namespace clnet::data
