// Random decisions that stay the same for the same seed, everywhere.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

namespace clnet::fuzz {

/// The finaliser of SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
inline std::uint64_t mix(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}
inline std::uint64_t mix(std::uint64_t a, std::uint64_t b) { return mix(a ^ mix(b)); }

/// From the high 53 bits, in [0, 1).
inline double as_fraction(std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

class Rng {
 public:
  explicit Rng(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() { return mix(state_++); }
  double fraction() { return as_fraction(next()); }
  double between(double low, double high) { return low + (high - low) * fraction(); }
  bool chance(double probability) { return fraction() < probability; }
  /// In 0..count - 1.
  std::int64_t below(std::int64_t count) { return static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(count)); }
  /// In low..high.
  std::int64_t integer(std::int64_t low, std::int64_t high) { return low + below(high - low + 1); }
  template <class T>
  T of(std::initializer_list<T> choices) {
    return *(choices.begin() + below(static_cast<std::int64_t>(choices.size())));
  }
  template <class T>
  const T& of(const std::vector<T>& choices) {
    return choices[static_cast<std::size_t>(below(static_cast<std::int64_t>(choices.size())))];
  }

 private:
  std::uint64_t state_;
};

}  // namespace clnet::fuzz
