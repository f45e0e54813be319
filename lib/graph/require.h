// A check of operations' arguments that tells an operation's user which one was forgotten.
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
/// A shape; where extents are negative or too many for a tensor, the ShapeError names the operation.
Shape shape_of(std::string_view op, std::vector<std::int64_t> extents);
/// `dim`, negative from the end, as 0 .. rank - 1 of the tensor. Throws ShapeError naming the operation where there is none.
int require_dim(std::string_view op, const Tensor& x, int dim);
/// The same for operations along a line, to which a scalar is a line of one element: dimensions 0 and -1 are 0 of it, as in
/// PyTorch.
int require_line(std::string_view op, const Shape& shape, int dim);
/// Throws DtypeError naming the operation where a position given as a tensor is not one i32 or i64.
void require_start(std::string_view op, const Tensor& start);
/// require_defined() for each of several, "tensors[2]".
void require_defined(std::string_view op, std::string_view name, const std::vector<Tensor>& tensors);

}  // namespace clnet
