// The extents of a tensor, outermost first (NCHW for images), and a tensor's shape with its storage type.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "clnet/dtype.h"
#include "clnet/export.h"

namespace clnet {

/// A list of extents, each at least 0. The empty shape is a scalar (one element). Copies share it.
class CLNET_API Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<std::int64_t> extents) : Shape(std::vector<std::int64_t>(extents)) {}
  /// Throws ShapeError for a negative extent and for more than 2^31 - 1 elements, which no kernel can index.
  explicit Shape(std::vector<std::int64_t> extents);

  int rank() const { return static_cast<int>(extents().size()); }
  /// The extent of a dimension; negative counts from the end. Throws ShapeError when out of range.
  std::int64_t operator[](int dim) const { return extents()[static_cast<std::size_t>(normalize(dim))]; }
  /// The number of elements.
  std::int64_t numel() const { return numel_; }
  const std::vector<std::int64_t>& extents() const { return extents_ ? *extents_ : none(); }
  std::vector<std::int64_t>::const_iterator begin() const { return extents().begin(); }
  std::vector<std::int64_t>::const_iterator end() const { return extents().end(); }

  /// A dimension from -rank..rank-1 as 0..rank-1. Throws ShapeError when out of range.
  int normalize(int dim) const;
  /// The same shape with one extent replaced.
  Shape with(int dim, std::int64_t extent) const;

  bool operator==(const Shape& other) const { return extents_ == other.extents_ || extents() == other.extents(); }

 private:
  static const std::vector<std::int64_t>& none();

  std::shared_ptr<const std::vector<std::int64_t>> extents_;  ///< null: there are none
  std::int64_t numel_ = 1;
};

/// Dimensions of a tensor; negative ones count from the end. One number is one dimension: sum(x, 1).
struct Dims : std::vector<int> {
  using std::vector<int>::vector;
  Dims(std::vector<int> dims) : std::vector<int>(std::move(dims)) {}  // NOLINT(google-explicit-constructor)
  // No double: max(x, 0.5) is a mistake.
  Dims(std::same_as<int> auto dim) : std::vector<int>{dim} {}  // NOLINT(google-explicit-constructor)
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

// As to_string() has them: std::cout << x.shape().
CLNET_API std::ostream& operator<<(std::ostream& out, const Shape& shape);
CLNET_API std::ostream& operator<<(std::ostream& out, const Spec& spec);
CLNET_API std::ostream& operator<<(std::ostream& out, Dtype dtype);

}  // namespace clnet
