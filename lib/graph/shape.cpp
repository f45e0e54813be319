#include "clnet/shape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <ostream>

#include "clnet/error.h"

namespace clnet {

const std::vector<std::int64_t>& Shape::none() {
  static const std::vector<std::int64_t> empty;
  return empty;
}

Shape::Shape(std::vector<std::int64_t> list) {
  if (list.empty()) return;
  extents_ = std::make_shared<const std::vector<std::int64_t>>(std::move(list));
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  bool empty = false;
  for (auto extent : extents()) {
    if (extent < 0) throw ShapeError(fmt::format("shape {}: extents must not be negative", to_string(*this)));
    empty = empty || extent == 0;
  }
  for (auto extent : extents()) {
    if (empty) break;
    if (extent > most / numel_)
      throw ShapeError(fmt::format("shape {}: more than {} elements in one tensor", to_string(*this), most));
    numel_ *= extent;
  }
  if (empty) numel_ = 0;
}

int Shape::normalize(int dim) const {
  if (dim < -rank() || dim >= rank())
    throw ShapeError(fmt::format("dimension {} is out of range for shape {}", dim, to_string(*this)));
  return dim < 0 ? dim + rank() : dim;
}

Shape Shape::with(int dim, std::int64_t extent) const {
  const auto at = static_cast<std::size_t>(normalize(dim));
  if (extents()[at] == extent) return *this;
  auto changed = extents();
  changed[at] = extent;
  return Shape(std::move(changed));
}

std::string to_string(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape.extents(), ", ")); }

Shape broadcast(const Shape& a, const Shape& b, std::string_view what) {
  if (a == b) return a;
  const int rank = std::max(a.rank(), b.rank());
  std::vector<std::int64_t> extents(static_cast<std::size_t>(rank));
  for (int i = 1; i <= rank; ++i) {
    const auto left = i <= a.rank() ? a[-i] : 1, right = i <= b.rank() ? b[-i] : 1;
    if (left != right && left != 1 && right != 1)
      throw ShapeError(fmt::format("{}: shapes {} and {} cannot be broadcast together", what, to_string(a), to_string(b)));
    extents[static_cast<std::size_t>(rank - i)] = left == 1 ? right : left;
  }
  return Shape(std::move(extents));
}

std::string to_string(const Spec& spec) { return fmt::format("{}{}", to_string(spec.dtype), to_string(spec.shape)); }

std::ostream& operator<<(std::ostream& out, const Shape& shape) { return out << to_string(shape); }
std::ostream& operator<<(std::ostream& out, const Spec& spec) { return out << to_string(spec); }
std::ostream& operator<<(std::ostream& out, Dtype dtype) { return out << to_string(dtype); }

}  // namespace clnet
