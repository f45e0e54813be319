// For operations that are built from elementwise ones of other files.
#pragma once

#include <string>
#include <vector>

#include "clnet/tensor.h"
#include "lib/graph/op.h"

namespace clnet::ops {

/// Throws DtypeError, naming the operation, unless the dtype is f32, f16, bf16 or f64.
void require_floating(std::string_view op, const Spec& spec);
/// Throws DtypeError unless both have the same dtype.
void require_same_dtype(std::string_view op, const Spec& a, const Spec& b);
/// Throws DtypeError, with the operation's name, where the dtype does not have the value.
void require_held(std::string_view op, double value, Dtype dtype);
/// `value` as a scalar of the tensor's dtype.
inline Tensor scalar_like(double value, const Tensor& tensor) { return Tensor::scalar(value, tensor.dtype()); }

/// How much of the standard normal distribution lies below x, with an error of 8e-8.
Tensor normal_cdf(const Tensor& x);
/// -(t log x + (1 - t) log(1 - x)), each logarithm at least -100, and PyTorch's gradient where x is 0 or 1.
Tensor cross_entropy_of_bits(const Tensor& x, const Tensor& t);
/// The same with x the logit.
Tensor cross_entropy_of_logits(const Tensor& x, const Tensor& t);
/// (log v + d^2 / v) / 2 with v = max(var, eps); the gradient does not see the bound.
Tensor gaussian_nll(const Tensor& d, const Tensor& var, double eps);

}  // namespace clnet::ops
