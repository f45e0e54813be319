// Elements and rows chosen by indices. A scalar is a line of one element to all of them, as in PyTorch.
#pragma once

#include <cstdint>
#include <optional>

#include "clnet/export.h"
#include "clnet/tensor.h"

namespace clnet {

/// out[..., j, ...] = x[..., indices[j], ...] along `dim`: the result's shape is x's with `dim` replaced by indices' shape.
/// Indices are i32 or i64; negative ones count from the end; one that is out of range gives NaN (0 for integers) and no gradient.
CLNET_API Tensor index_select(const Tensor& x, int dim, const Tensor& indices);
/// PyTorch's gather: out[i][j] = x[indices[i][j]][j] for dim 0, and so on; same rank, indices' shape.
CLNET_API Tensor gather(const Tensor& x, int dim, const Tensor& indices);
/// Rows of `weight` {count, width}: shape {...indices, width}.
/// No gradient flows to row `padding_index` (counted from the end where negative).
CLNET_API Tensor embedding(const Tensor& indices, const Tensor& weight, std::optional<std::int64_t> padding_index = std::nullopt);
/// 1 where the last dimension's index equals the class, else 0; classes out of range give zeros.
CLNET_API Tensor one_hot(const Tensor& indices, std::int64_t classes, Dtype dtype = Dtype::f32);

// ---- The way back. `indices` as above; one that is out of range moves nothing. x and `source` have one dtype.

/// x with out[indices[i][j]][j] = source[i][j] for dim 0, and so on. `indices` are no larger than `source`, nor than x outside
/// `dim`; of the source, what has no index goes nowhere. Of several that go to one place the last counts, also for the gradient.
CLNET_API Tensor scatter(const Tensor& x, int dim, const Tensor& indices, const Tensor& source);
/// The same with one number in place of the source's elements.
CLNET_API Tensor scatter(const Tensor& x, int dim, const Tensor& indices, double value);
/// The same with all of them added to x. Floating dtypes, and integers, whose sums wrap.
CLNET_API Tensor scatter_add(const Tensor& x, int dim, const Tensor& indices, const Tensor& source);
enum class ScatterReduction : std::uint8_t { sum, prod, mean, amax, amin };
/// x with all source elements that go to one place, and x's own if `include_self`, made to one there; places that none goes to
/// stay as they are. Equal largest (smallest) ones share the gradient equally; third derivatives of products are right where at
/// most one factor is 0. Floating dtypes, and, but for the mean, integers.
CLNET_API Tensor scatter_reduce(const Tensor& x, int dim, const Tensor& indices, const Tensor& source, ScatterReduction reduction,
                                bool include_self = true);
/// x with alpha source[..., j, ...] added at place indices[j] of `dim`; `source` is of x's shape but for its extent there, which
/// is that of the indices {n}. Floating dtypes, and integers, whose sums wrap; for these `alpha` is a whole number that fits.
CLNET_API Tensor index_add(const Tensor& x, int dim, const Tensor& indices, const Tensor& source, double alpha = 1);

// ---- Order

struct SortResult {
  Tensor values, indices;  ///< of one shape; indices are i64, and take no gradient
};
/// The elements of each line along `dim` in ascending (descending) order; equal ones stay in theirs. NaN counts as larger than
/// any number. Any dtype.
CLNET_API SortResult sort(const Tensor& x, int dim = -1, bool descending = false);
CLNET_API Tensor argsort(const Tensor& x, int dim = -1, bool descending = false);
/// The first `k` of them in descending order, or (largest false) in ascending order.
CLNET_API SortResult topk(const Tensor& x, std::int64_t k, int dim = -1, bool largest = true);

}  // namespace clnet
