// The extents of a tensor, outermost first (NCHW for images), and the spec of a tensor: shape and dtype.
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

/// A list of extents, each at least 0. The empty shape is a scalar (one element). Copies share the list.
class CLNET_API Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<std::int64_t> extents) : Shape(std::vector<std::int64_t>(extents)) {}
  /// Throws ShapeError for a negative extent and for more than 2^31 - 1 elements, the limit of kernels' indices.
  explicit Shape(std::vector<std::int64_t> extents);

  int rank() const { return static_cast<int>(extents().size()); }
  /// The extent of a dimension; negative `dim` counts from the end. Throws ShapeError where `dim` is out of range.
  std::int64_t operator[](int dim) const { return extents()[static_cast<std::size_t>(normalize(dim))]; }
  /// The number of elements.
  std::int64_t numel() const { return numel_; }
  const std::vector<std::int64_t>& extents() const { return extents_ ? *extents_ : none(); }
  std::vector<std::int64_t>::const_iterator begin() const { return extents().begin(); }
  std::vector<std::int64_t>::const_iterator end() const { return extents().end(); }

  /// Converts a dimension in -rank..rank-1 to 0..rank-1. Throws ShapeError where it is out of range.
  int normalize(int dim) const;
  /// The shape with one extent replaced. Throws ShapeError as normalize() and the constructor.
  Shape with(int dim, std::int64_t extent) const;

  bool operator==(const Shape& other) const { return extents_ == other.extents_ || extents() == other.extents(); }

 private:
  static const std::vector<std::int64_t>& none();

  std::shared_ptr<const std::vector<std::int64_t>> extents_;  ///< null for a scalar
  std::int64_t numel_ = 1;
};

/// Dimensions of a tensor; negative ones count from the end. An int converts to a list of one: sum(x, 1).
struct Dims : std::vector<int> {
  using std::vector<int>::vector;
  Dims(std::vector<int> dims) : std::vector<int>(std::move(dims)) {}  // NOLINT(google-explicit-constructor)
  // No conversion from double: max(x, 0.5) is a mistake.
  Dims(std::same_as<int> auto dim) : std::vector<int>{dim} {}  // NOLINT(google-explicit-constructor)
};

/// "[2, 3, 4]"; "[]" for a scalar.
CLNET_API std::string to_string(const Shape& shape);

/// The shape by NumPy's broadcasting rule. Throws ShapeError, which begins with `what`, where the shapes do not match.
CLNET_API Shape broadcast(const Shape& a, const Shape& b, std::string_view what);

/// Shape and dtype of a value, known before it is computed.
struct Spec {
  Shape shape;
  Dtype dtype = Dtype::f32;

  std::int64_t bytes() const { return shape.numel() * static_cast<std::int64_t>(size_of(dtype)); }
  bool operator==(const Spec& other) const = default;
};

/// "f32[2, 3]".
CLNET_API std::string to_string(const Spec& spec);

// Print to_string() of the value: std::cout << x.shape().
CLNET_API std::ostream& operator<<(std::ostream& out, const Shape& shape);
CLNET_API std::ostream& operator<<(std::ostream& out, const Spec& spec);
CLNET_API std::ostream& operator<<(std::ostream& out, Dtype dtype);

}  // namespace clnet
