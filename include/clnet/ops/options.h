// Options that operations of several families share.
#pragma once

#include <concepts>
#include <cstdint>
#include <utility>
#include <vector>

namespace clnet {

/// A pair {height, width}; one number stands for both.
struct Pair {
  std::int64_t height = 1, width = 1;
  constexpr Pair(std::int64_t both) : height(both), width(both) {}  // NOLINT(google-explicit-constructor)
  constexpr Pair(std::int64_t h, std::int64_t w) : height(h), width(w) {}
  bool operator==(const Pair&) const = default;
};

/// Padding of images: one number for all sides, {vertical, horizontal}, or {top, left, bottom, right}.
struct Padding {
  std::int64_t top = 0, left = 0, bottom = 0, right = 0;
  constexpr Padding(std::int64_t all = 0) : Padding(all, all) {}  // NOLINT(google-explicit-constructor)
  constexpr Padding(std::int64_t vertical, std::int64_t horizontal) : Padding(vertical, horizontal, vertical, horizontal) {}
  constexpr Padding(std::int64_t t, std::int64_t l, std::int64_t b, std::int64_t r) : top(t), left(l), bottom(b), right(r) {}
  bool operator==(const Padding&) const = default;
};

enum class Reduction : std::uint8_t { none, mean, sum };

/// Dimensions of a tensor; negative ones count from the end. One number is one dimension: sum(x, 1).
struct Dims : std::vector<int> {
  using std::vector<int>::vector;
  Dims(std::vector<int> dims) : std::vector<int>(std::move(dims)) {}  // NOLINT(google-explicit-constructor)
  // No double: max(x, 0.5) is a mistake.
  Dims(std::same_as<int> auto dim) : std::vector<int>{dim} {}  // NOLINT(google-explicit-constructor)
};

}  // namespace clnet
