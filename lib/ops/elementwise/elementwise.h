// For operations that are built from elementwise ones of other files.
#pragma once

#include <string>
#include <vector>

#include "clnet/tensor.h"
#include "lib/graph/op.h"

namespace clnet::ops {

/// Throws DtypeError, naming the operation, unless the dtype is f32, f16 or bf16.
CLNET_API void require_floating(std::string_view op, const Spec& spec);
/// Throws DtypeError unless both have the same dtype.
CLNET_API void require_same_dtype(std::string_view op, const Spec& a, const Spec& b);
/// `value` as a scalar of the tensor's dtype.
inline Tensor scalar_like(double value, const Tensor& tensor) { return Tensor::scalar(value, tensor.dtype()); }

}  // namespace clnet::ops
