// Options shared by several families of operations.
#pragma once

#include <concepts>
#include <cstdint>

namespace clnet {

/// A pair {height, width}; one number stands for both.
struct Pair {
  std::int64_t height = 1, width = 1;
  constexpr Pair(std::int64_t both) : height(both), width(both) {}  // NOLINT(google-explicit-constructor)
  constexpr Pair(std::int64_t h, std::int64_t w) : height(h), width(w) {}
  bool operator==(const Pair&) const = default;
};

/// A triple {depth, height, width}; one number stands for all.
struct Triple {
  std::int64_t depth = 1, height = 1, width = 1;
  constexpr Triple(std::int64_t all) : Triple(all, all, all) {}  // NOLINT(google-explicit-constructor)
  constexpr Triple(std::int64_t d, std::int64_t h, std::int64_t w) : depth(d), height(h), width(w) {}
  bool operator==(const Triple&) const = default;
};

/// Padding of a line: one number for both ends, or {begin, end}.
struct Padding1d {
  std::int64_t begin = 0, end = 0;
  constexpr Padding1d(std::int64_t both = 0) : Padding1d(both, both) {}  // NOLINT(google-explicit-constructor)
  constexpr Padding1d(std::int64_t b, std::int64_t e) : begin(b), end(e) {}
  /// PyTorch's padding "same": a convolution of stride 1 keeps the extent. An odd total puts the larger part at `end`.
  static constexpr Padding1d same(std::int64_t kernel_size, std::int64_t dilation = 1) {
    const auto both = dilation * (kernel_size - 1);
    return {both / 2, both - both / 2};
  }
  bool operator==(const Padding1d&) const = default;
};

/// Padding of images: one number for all sides, {vertical, horizontal}, or {top, left, bottom, right}.
struct Padding {
  std::int64_t top = 0, left = 0, bottom = 0, right = 0;
  constexpr Padding(std::int64_t all = 0) : Padding(all, all) {}  // NOLINT(google-explicit-constructor)
  constexpr Padding(std::int64_t vertical, std::int64_t horizontal) : Padding(vertical, horizontal, vertical, horizontal) {}
  constexpr Padding(std::int64_t t, std::int64_t l, std::int64_t b, std::int64_t r) : top(t), left(l), bottom(b), right(r) {}
  static constexpr Padding same(Pair kernel_size, Pair dilation = 1) {
    const auto v = Padding1d::same(kernel_size.height, dilation.height), h = Padding1d::same(kernel_size.width, dilation.width);
    return {v.begin, h.begin, v.end, h.end};
  }
  bool operator==(const Padding&) const = default;
};

/// Padding of volumes: one number for all sides, {depth, vertical, horizontal}, or {front, top, left, back, bottom, right}.
struct Padding3d {
  std::int64_t front = 0, top = 0, left = 0, back = 0, bottom = 0, right = 0;
  constexpr Padding3d(std::int64_t all = 0) : Padding3d(all, all, all) {}  // NOLINT(google-explicit-constructor)
  constexpr Padding3d(std::int64_t d, std::int64_t v, std::int64_t h) : Padding3d(d, v, h, d, v, h) {}
  constexpr Padding3d(std::int64_t f, std::int64_t t, std::int64_t l, std::int64_t ba, std::int64_t bo, std::int64_t r)
      : front(f), top(t), left(l), back(ba), bottom(bo), right(r) {}
  static constexpr Padding3d same(Triple kernel_size, Triple dilation = 1) {
    const auto d = Padding1d::same(kernel_size.depth, dilation.depth);
    const auto image = Padding::same({kernel_size.height, kernel_size.width}, {dilation.height, dilation.width});
    return {d.begin, image.top, image.left, d.end, image.bottom, image.right};
  }
  bool operator==(const Padding3d&) const = default;
};

/// The result of a loss: one value per element or sample, their mean, or their sum.
enum class Reduction : std::uint8_t { none, mean, sum };

}  // namespace clnet
