// Reductions over dimensions; an empty list means all. keepdim keeps them as extents of 1. Throws ShapeError for a dimension that
// is out of range or given twice.
#pragma once

#include <vector>

#include "clnet/export.h"
#include "clnet/ops/options.h"
#include "clnet/tensor.h"

namespace clnet {

// Sums and products of integers and bool are i64. Over no elements: sum 0, prod 1, mean NaN.

/// The sum, and the mean, over dimensions.
CLNET_API Tensor sum(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
CLNET_API Tensor mean(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
/// The product over dimensions. Third and higher derivatives are right where at most one element is 0.
CLNET_API Tensor prod(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
/// The largest (smallest) element over dimensions. Equal elements share the gradient equally. Throws ShapeError over no elements.
CLNET_API Tensor max(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
CLNET_API Tensor min(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
/// The i64 index of the first largest (smallest) element along one dimension. No gradient. Throws ShapeError over no elements.
CLNET_API Tensor argmax(const Tensor& x, int dim, bool keepdim = false);
CLNET_API Tensor argmin(const Tensor& x, int dim, bool keepdim = false);
/// Whether any (all) elements differ from 0, as bool. Of no elements: false (true).
CLNET_API Tensor any(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
CLNET_API Tensor all(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
/// Whether two tensors have the same shape and values, as torch.equal. Computes both and waits. NaN equals nothing. eq() and ==
/// compare each element. Throws DtypeError for tensors of one shape with dtypes that eq() rejects.
CLNET_API bool equal(const Tensor& a, const Tensor& b);
/// Whether two tensors of one shape are close everywhere, as is_close(). Computes both and waits.
CLNET_API bool all_close(const Tensor& a, const Tensor& b, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false);
/// The variance over dimensions, with divisor n - correction.
CLNET_API Tensor var(const Tensor& x, const Dims& dims = {}, int correction = 1, bool keepdim = false);
/// sqrt(var()). The gradient of a deviation of 0 is 0, as in norm().
CLNET_API Tensor stddev(const Tensor& x, const Dims& dims = {}, int correction = 1, bool keepdim = false);
struct VarMean {
  Tensor var, mean;
};
struct StdMean {
  Tensor stddev, mean;
};
struct MinMax {
  Tensor min, max;
};
/// var() or stddev() and mean() together.
CLNET_API VarMean var_mean(const Tensor& x, const Dims& dims = {}, int correction = 1, bool keepdim = false);
CLNET_API StdMean std_mean(const Tensor& x, const Dims& dims = {}, int correction = 1, bool keepdim = false);
/// min() and max() together.
CLNET_API MinMax aminmax(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
/// How many elements are not 0, as i64. No gradient.
CLNET_API Tensor count_nonzero(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
/// The sum, and the mean, of the elements that are not NaN. Floating dtypes.
CLNET_API Tensor nansum(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
CLNET_API Tensor nanmean(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
/// log(sum(exp(x))) without overflow.
CLNET_API Tensor logsumexp(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
/// (sum of |x|^p)^(1/p). p infinity (-infinity): the largest (smallest) |x|; 0: the number of elements other than 0. The gradient
/// of a norm of 0 is 0. Throws Error for p NaN, ShapeError over no elements where p is negative or infinite.
CLNET_API Tensor norm(const Tensor& x, double p = 2, const Dims& dims = {}, bool keepdim = false);
/// Sums x over the dimensions along which `shape` was broadcast to x's shape: the gradient of broadcasting. Throws ShapeError
/// where `shape` does not broadcast to x's.
CLNET_API Tensor sum_to(const Tensor& x, const Shape& shape);

/// Running sums along a dimension: y[..., i, ...] = x[..., 0, ...] + ... + x[..., i, ...]. Floating dtypes are summed in float;
/// sums of integers and bool are i64. Throws ShapeError for a dimension out of range.
CLNET_API Tensor cumsum(const Tensor& x, int dim);
/// Running products; dtypes as in cumsum(). Derivatives of any order are right with any number of zeros.
CLNET_API Tensor cumprod(const Tensor& x, int dim);

/// Vandermonde's matrices of x {..., m}: {..., m, n} of its elements' powers n - 1 to 0, or (increasing) 0 to n - 1. Without n,
/// of m. Dtypes as in cumsum(). A scalar is a line of one element. Throws ShapeError for a
/// negative n.
CLNET_API Tensor vander(const Tensor& x, std::optional<std::int64_t> n = std::nullopt, bool increasing = false);
/// The largest (smallest) element so far along a dimension, and its i64 index: of equal ones the last. NaN stays once it is
/// there. The gradient goes to that element. For any dtype. Throws ShapeError for a dimension out of range.
CLNET_API SortResult cummax(const Tensor& x, int dim);
CLNET_API SortResult cummin(const Tensor& x, int dim);
/// log(cumsum(exp(x))) along a dimension without overflow.
CLNET_API Tensor logcumsumexp(const Tensor& x, int dim);

/// The differences of neighbours along a dimension, `order` times. Throws Error for a negative order.
CLNET_API Tensor diff(const Tensor& x, int order = 1, int dim = -1);

/// norm() of a - b, which broadcast.
CLNET_API Tensor distance(const Tensor& a, const Tensor& b, double p = 2);
/// sum(a b) along `dim` over the product of both norms, each at least eps.
CLNET_API Tensor cosine_similarity(const Tensor& a, const Tensor& b, int dim = 1, double eps = 1e-8);
/// norm() of a - b + eps over the last dimension.
CLNET_API Tensor pairwise_distance(const Tensor& a, const Tensor& b, double p = 2, double eps = 1e-6, bool keepdim = false);
/// The norms of all differences of rows: a {..., M, K}, b {..., N, K} give {..., M, N}. Leading dimensions broadcast. As in
/// PyTorch, p = 2 of more than 25 rows is computed from the rows' products, by which small distances of large vectors are less
/// exact.
CLNET_API Tensor cdist(const Tensor& a, const Tensor& b, double p = 2);
/// x / max(norm(x, p, {dim}, true), eps).
CLNET_API Tensor normalize(const Tensor& x, double p = 2, int dim = 1, double eps = 1e-12);

/// The norm of the elements of all tensors together, for gradient clipping; p as in norm(). Throws Error for p NaN.
CLNET_API Tensor global_norm(const std::vector<Tensor>& tensors, double p = 2);

}  // namespace clnet
