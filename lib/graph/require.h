// Checks of operations' arguments, with the operation's and the argument's name in the error.
#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

#include "clnet/tensor.h"

namespace clnet {

struct Argument {
  std::string_view name;
  const Tensor& tensor;
};

/// Throws Error naming the operation and the first argument that is undefined.
void require_defined(std::string_view op, std::initializer_list<Argument> arguments);
/// A shape. Throws ShapeError, with the operation's name, where extents are negative or too many for a tensor.
Shape shape_of(std::string_view op, std::vector<std::int64_t> extents);
/// `dim` as 0 .. rank - 1 of the tensor; negative ones count from the end. Throws ShapeError, with the operation's name, where it
/// is out of range.
int require_dim(std::string_view op, const Tensor& x, int dim);
/// The same for operations along a line. A scalar counts as a line of one element with the dimensions 0 and -1, as in PyTorch.
int require_line(std::string_view op, const Shape& shape, int dim);
/// Throws DtypeError, with the operation's name, unless `start` is one i32 or i64.
void require_start(std::string_view op, const Tensor& start);
/// Throws DtypeError, with both names, where the argument or parameter is f64.
void refuse_f64(std::string_view who, std::string_view name, const Spec& spec);
/// require_defined() for each of several, as "tensors[2]".
void require_defined(std::string_view op, std::string_view name, const std::vector<Tensor>& tensors);

}  // namespace clnet
