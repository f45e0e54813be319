// The extents of a tensor, outermost first (NCHW for images), and a tensor's shape with its storage type.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "clnet/dtype.h"
#include "clnet/export.h"

namespace clnet {

/// A list of extents, each at least 0. The empty shape is a scalar (one element).
class CLNET_API Shape {
 public:
  Shape() = default;
  /// Throws ShapeError for a negative extent and for more than 2^31 - 1 elements, which no kernel can index.
  Shape(std::initializer_list<std::int64_t> extents) : Shape(std::span(extents.begin(), extents.size())) {}
  explicit Shape(const std::vector<std::int64_t>& extents) : Shape(std::span(extents)) {}
  explicit Shape(std::span<const std::int64_t> extents);

  int rank() const { return rank_; }
  /// The extent of a dimension; negative counts from the end. Throws ShapeError when out of range.
  std::int64_t operator[](int dim) const { return begin()[normalize(dim)]; }
  /// The number of elements.
  std::int64_t numel() const { return numel_; }
  std::vector<std::int64_t> extents() const { return {begin(), end()}; }
  const std::int64_t* begin() const { return rank_ <= few ? few_.data() : many_.data(); }
  const std::int64_t* end() const { return begin() + rank_; }

  /// A dimension from -rank..rank-1 as 0..rank-1. Throws ShapeError when out of range.
  int normalize(int dim) const;
  /// The same shape with one extent replaced.
  Shape with(int dim, std::int64_t extent) const;

  bool operator==(const Shape& other) const { return std::equal(begin(), end(), other.begin(), other.end()); }

 private:
  /// Graphs copy shapes all the time: the usual ones need no memory of their own.
  static constexpr int few = 6;
  int rank_ = 0;
  std::int64_t numel_ = 1;
  std::array<std::int64_t, few> few_{};
  std::vector<std::int64_t> many_;  ///< all extents, where there are more than `few`
};

/// "[2, 3, 4]"; "[]" for a scalar.
CLNET_API std::string to_string(const Shape& shape);

/// The shape that NumPy's broadcasting rule gives. Throws ShapeError, naming `what`, when they do not match.
CLNET_API Shape broadcast(const Shape& a, const Shape& b, std::string_view what);

/// What is known of a value before it is computed.
struct Spec {
  Shape shape;
  Dtype dtype = Dtype::f32;

  std::int64_t bytes() const { return shape.numel() * static_cast<std::int64_t>(size_of(dtype)); }
  bool operator==(const Spec& other) const = default;
};

/// "f32[2, 3]".
CLNET_API std::string to_string(const Spec& spec);

}  // namespace clnet
