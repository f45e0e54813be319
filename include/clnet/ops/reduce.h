// Reductions over dimensions (none given: all). keepdim leaves extents of 1.
#pragma once

#include <vector>

#include "clnet/export.h"
#include "clnet/ops/options.h"
#include "clnet/tensor.h"

namespace clnet {

// Sums and products of integers and bool are i64. Over no elements: sum 0, prod 1, mean NaN.

CLNET_API Tensor sum(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
CLNET_API Tensor mean(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
/// Derivatives beyond the second are right where at most one of the elements is 0.
CLNET_API Tensor prod(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
/// Ties share the gradient equally. Throws ShapeError over no elements.
CLNET_API Tensor max(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
CLNET_API Tensor min(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
/// The i64 index of the first largest (smallest) element along one dimension. No gradient.
CLNET_API Tensor argmax(const Tensor& x, int dim, bool keepdim = false);
CLNET_API Tensor argmin(const Tensor& x, int dim, bool keepdim = false);
/// Whether any (all) of the elements are not 0: bool. Of none: false (true).
CLNET_API Tensor any(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
CLNET_API Tensor all(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
/// Whether two tensors have the same shape and the same values, which are computed and waited for. NaN equals nothing. eq() and
/// == compare each element. Tensors of one shape need dtypes that eq() takes: DtypeError.
CLNET_API bool equal(const Tensor& a, const Tensor& b);
/// The variance over dimensions: divided by n - correction.
CLNET_API Tensor var(const Tensor& x, const Dims& dims = {}, int correction = 1, bool keepdim = false);
/// sqrt(var()). The gradient is 0 where it is 0, as for norm().
CLNET_API Tensor stddev(const Tensor& x, const Dims& dims = {}, int correction = 1, bool keepdim = false);
/// log(sum(exp(x))), without overflow.
CLNET_API Tensor logsumexp(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
/// (sum of |x|^p)^(1/p); p infinity (-infinity): the largest (smallest) |x|, 0: how many are not 0. The gradient of a norm of 0
/// is 0.
CLNET_API Tensor norm(const Tensor& x, double p = 2, const Dims& dims = {}, bool keepdim = false);
/// Sums x over the dimensions along which `shape` was broadcast to x's shape: the gradient of broadcasting.
CLNET_API Tensor sum_to(const Tensor& x, const Shape& shape);

/// Running sums along a dimension: y[..., i, ...] = x[..., 0, ...] + ... + x[..., i, ...]. Floating dtypes, whose
/// sums are in float; those of integers and bool are i64. Throws ShapeError when there is no such dimension.
CLNET_API Tensor cumsum(const Tensor& x, int dim);
/// Running products, dtypes as of cumsum(). Derivatives of any order are right with any number of zeros.
CLNET_API Tensor cumprod(const Tensor& x, int dim);

/// The norm of all tensors' elements together, which gradient clipping uses; p as of norm().
CLNET_API Tensor global_norm(const std::vector<Tensor>& tensors, double p = 2);

}  // namespace clnet
