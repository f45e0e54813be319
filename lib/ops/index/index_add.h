// Adding at indices, for the operations of other files.
#pragma once

#include <string_view>

#include "clnet/tensor.h"

namespace clnet::ops {

/// Throws DtypeError unless they are i32 or i64.
void require_indices(std::string_view op, const Tensor& indices);
/// Zeros of `shape` with x's elements added where index_select (gather: gather) along `dim` would find them.
Tensor added_at(const Tensor& x, int dim, const Tensor& indices, bool gather, const Shape& shape);

}  // namespace clnet::ops
