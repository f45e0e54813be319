#include "lib/graph/require.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "clnet/error.h"

namespace clnet {

void require_defined(std::string_view op, std::initializer_list<Argument> arguments) {
  for (const auto& [name, tensor] : arguments)
    if (!tensor.defined()) throw Error(fmt::format("{}: argument '{}' is undefined", op, name));
}

namespace {

int normalized(std::string_view op, const Shape& shape, int dim, int rank) {
  if (dim < -rank || dim >= rank)
    throw ShapeError(fmt::format("{}: dimension {} is out of range for shape {}", op, dim, to_string(shape)));
  return dim < 0 ? dim + rank : dim;
}

}  // namespace

int require_dim(std::string_view op, const Tensor& x, int dim) { return normalized(op, x.shape(), dim, x.rank()); }

int require_line(std::string_view op, const Shape& shape, int dim) {
  return normalized(op, shape, dim, std::max(shape.rank(), 1));
}

void require_start(std::string_view op, const Tensor& start) {
  if ((start.dtype() != Dtype::i32 && start.dtype() != Dtype::i64) || start.numel() != 1)
    throw DtypeError(fmt::format("{}: start must be one i32 or i64, got {}", op, to_string(start.spec())));
}

Shape shape_of(std::string_view op, std::vector<std::int64_t> extents) {
  try {
    return Shape(std::move(extents));
  } catch (const ShapeError& error) {
    throw ShapeError(fmt::format("{}: {}", op, error.what()));
  }
}

void require_defined(std::string_view op, std::string_view name, const std::vector<Tensor>& tensors) {
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (!tensors[i].defined()) throw Error(fmt::format("{}: argument '{}[{}]' is undefined", op, name, i));
}

void refuse_f64(std::string_view who, std::string_view name, const Spec& spec) {
  if (spec.dtype == Dtype::f64)
    throw DtypeError(fmt::format("{}: {} is {}; it computes in f32 and does not take f64", who, name, to_string(spec)));
}

}  // namespace clnet
