// Selection by indices. A scalar counts as a line of one element, as in PyTorch. Indices are i32 or i64 (DtypeError otherwise).
#pragma once

#include <cstdint>
#include <optional>

#include "clnet/export.h"
#include "clnet/tensor.h"

namespace clnet {

/// out[..., j, ...] = x[..., indices[j], ...] along `dim`: the result has x's shape, with `dim` replaced by the indices' shape.
/// Negative indices count from the end. An index out of range gives NaN (0 for integers) and no gradient.
CLNET_API Tensor index_select(const Tensor& x, int dim, const Tensor& indices);
/// PyTorch's gather: out[i][j] = x[indices[i][j]][j] for dim 0, and so on. The result has the indices' shape. Throws ShapeError
/// for indices of another rank, or larger than x outside `dim`.
CLNET_API Tensor gather(const Tensor& x, int dim, const Tensor& indices);
/// Rows of `weight` {count, width}: the result is {...indices, width}. Row `padding_index` (negative: from the end) gets no
/// gradient. Throws ShapeError for a padding_index out of range.
CLNET_API Tensor embedding(const Tensor& indices, const Tensor& weight, std::optional<std::int64_t> padding_index = std::nullopt);
/// {...indices, classes}: 1 at the index, else 0. An index out of range gives zeros.
CLNET_API Tensor one_hot(const Tensor& indices, std::int64_t classes, Dtype dtype = Dtype::f32);

// ---- Scatter, the inverse of gather(). Indices out of range are ignored. x and `source` have one dtype.

/// x with out[indices[i][j]][j] = source[i][j] for dim 0, and so on. `indices` are no larger than `source`, nor than x outside
/// `dim` (ShapeError otherwise); source elements without an index are unused. Of several elements at one place the last counts,
/// also for the gradient.
CLNET_API Tensor scatter(const Tensor& x, int dim, const Tensor& indices, const Tensor& source);
/// The same with one number for all source elements.
CLNET_API Tensor scatter(const Tensor& x, int dim, const Tensor& indices, double value);
/// Adds the source elements to x. For floating dtypes, and integers, whose sums wrap; bool is a DtypeError.
CLNET_API Tensor scatter_add(const Tensor& x, int dim, const Tensor& indices, const Tensor& source);
/// The operation that combines elements in scatter_reduce().
enum class ScatterReduction : std::uint8_t { sum, prod, mean, amax, amin };
/// Combines all source elements of one place, with x's own if `include_self`; places without source elements keep x. Equal
/// extremes share the gradient equally. Third derivatives of products are right where at most one factor is 0. For floating
/// dtypes and, except mean, integers.
CLNET_API Tensor scatter_reduce(const Tensor& x, int dim, const Tensor& indices, const Tensor& source, ScatterReduction reduction,
                                bool include_self = true);
/// Adds alpha source[..., j, ...] to x at place indices[j] of `dim`, for indices {n}. `source` has x's shape with extent n at
/// `dim` (ShapeError otherwise). For floating dtypes, and integers, whose sums wrap; these need a whole `alpha` that fits (Error
/// otherwise).
CLNET_API Tensor index_add(const Tensor& x, int dim, const Tensor& indices, const Tensor& source, double alpha = 1);

// ---- Order

struct SortResult {
  Tensor values, indices;  ///< one shape; indices are i64 without a gradient
};
/// Sorts each line along `dim`, ascending or descending. The sort is stable; NaN is larger than any number. For any dtype.
CLNET_API SortResult sort(const Tensor& x, int dim = -1, bool descending = false);
/// The indices of sort().
CLNET_API Tensor argsort(const Tensor& x, int dim = -1, bool descending = false);
/// The `k` largest elements in descending order, or (largest false) the smallest in ascending order. Throws ShapeError unless 0
/// <= k <= extent.
CLNET_API SortResult topk(const Tensor& x, std::int64_t k, int dim = -1, bool largest = true);

}  // namespace clnet
