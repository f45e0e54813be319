// Selection by indices. A scalar counts as a line of one element, as in PyTorch. Indices are i32 or i64 (DtypeError otherwise).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

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

/// The elements of x, as one line, at `indices`: torch.take. The result has the indices' shape. An index out of range gives NaN
/// (0 for integers).
CLNET_API Tensor take(const Tensor& x, const Tensor& indices);
/// gather() with broadcasting: outside `dim`, extents of 1 of either are repeated. Without `dim`, of both as lines. Throws
/// ShapeError where the shapes do not match.
CLNET_API Tensor take_along_dim(const Tensor& x, const Tensor& indices, std::optional<int> dim = std::nullopt);
/// ONNX's GatherND: each line of `indices` {..., k} names a part of x by its first k dimensions. With batch_dims b, the first b
/// dimensions of both are one batch, and the k dimensions follow them. The result is {..., those of x behind}. An index out of
/// range gives NaN (0 for integers). Throws ShapeError for shapes that do not fit.
CLNET_API Tensor gather_nd(const Tensor& x, const Tensor& indices, int batch_dims = 0);

// ---- Scatter, the inverse of gather(). Indices out of range are ignored. x and `source` have one dtype.

/// x with out[indices[i][j]][j] = source[i][j] for dim 0, and so on. `indices` are no larger than `source`, nor than x outside
/// `dim` (ShapeError otherwise); source elements without an index are unused. Of several elements at one place the last counts,
/// also for the gradient.
CLNET_API Tensor scatter(const Tensor& x, int dim, const Tensor& indices, const Tensor& source);
/// The same with one number for all source elements. Throws DtypeError where x's dtype does not have it.
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

/// x with `value` at places indices[j] of `dim`, for indices {n} or a scalar. Throws DtypeError where x's dtype does not have the
/// value.
CLNET_API Tensor index_fill(const Tensor& x, int dim, const Tensor& indices, double value);
/// x with source[..., j, ...] at place indices[j] of `dim`, for indices {n}. `source` has x's shape with extent n at `dim`
/// (ShapeError otherwise). Of several at one place the last counts.
CLNET_API Tensor index_copy(const Tensor& x, int dim, const Tensor& indices, const Tensor& source);
/// ONNX's ScatterND: x with the part that line i of `indices` {..., k} names replaced by source[i]. `source` is {..., x's
/// dimensions behind the first k} (ShapeError otherwise). Of several at one place the last counts. A reduction combines them and
/// x's element instead.
CLNET_API Tensor scatter_nd(const Tensor& x, const Tensor& indices, const Tensor& source,
                            std::optional<ScatterReduction> reduction = std::nullopt);

// ---- Counts

/// How often 0, 1, ... appear in x {n} of i32 or i64, as i64. With `weights` {n}, their sums in f32, or f64 of
/// f64; bool is a DtypeError. With `length` the result has that many places, and other elements of x count nowhere. Without
/// it x is evaluated: the result reaches to its largest element, and has `min_length` places at least. Then a negative element is
/// an Error, and so is a call inside compile().
CLNET_API Tensor bincount(const Tensor& x, const Tensor& weights = {}, std::int64_t min_length = 0,
                          std::optional<std::int64_t> length = std::nullopt);
/// How many elements of x lie in each of `bins` equal parts of low..high, in x's dtype. The last part has its end, too. Elements
/// outside count nowhere. low = high means from x's smallest element to its largest. No gradient. Throws ShapeError for bins
/// below 1, Error for low > high and a range that is not finite.
CLNET_API Tensor histc(const Tensor& x, std::int64_t bins = 100, double low = 0, double high = 0);
/// Whether each element of x is among `values`, as bool, or (invert) is not. NaN is nowhere. Both have one dtype.
CLNET_API Tensor isin(const Tensor& x, const Tensor& values, bool invert = false);

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

/// sort(x, 0).values.
CLNET_API Tensor msort(const Tensor& x);
/// The `k`-th smallest element of each line along `dim`, counted from 1, and its index. NaN is larger than any number. Throws
/// ShapeError unless 1 <= k <= extent.
CLNET_API SortResult kthvalue(const Tensor& x, std::int64_t k, int dim = -1, bool keepdim = false);
/// The median along `dim` and its index: of an even number of elements, the lower one of the middle two. NaN where the line has
/// one, with the first one's index. Of equal elements the index is that of sort(). Throws ShapeError over no elements.
CLNET_API SortResult median(const Tensor& x, int dim, bool keepdim = false);
CLNET_API Tensor median(const Tensor& x);  ///< of all elements
/// The same of the elements that are not NaN; NaN where there are none.
CLNET_API SortResult nanmedian(const Tensor& x, int dim, bool keepdim = false);
/// The most frequent element of each line along `dim`: of several, the smallest. The index is that of its last appearance. Each
/// NaN is an element of its own. Throws ShapeError over no elements.
CLNET_API SortResult mode(const Tensor& x, int dim = -1, bool keepdim = false);
/// The element between two neighbours in order: at a linear distance, the one below, above or nearest, or the mean.
enum class QuantileInterpolation : std::uint8_t { linear, lower, higher, nearest, midpoint };
/// The element below which a part q of the line along `dim` lies; without `dim`, of all elements. NaN where the line has one.
/// Several q are a new first dimension. Floating dtypes. Throws Error for q outside 0..1, ShapeError over no elements.
CLNET_API Tensor quantile(const Tensor& x, double q, std::optional<int> dim = std::nullopt, bool keepdim = false,
                          QuantileInterpolation interpolation = QuantileInterpolation::linear);
CLNET_API Tensor quantile(const Tensor& x, const std::vector<double>& q, std::optional<int> dim = std::nullopt,
                          bool keepdim = false, QuantileInterpolation interpolation = QuantileInterpolation::linear);
/// The same for q {} or {n}, in x's dtype, to which a gradient goes, too. A q outside 0..1 gives NaN.
CLNET_API Tensor quantile(const Tensor& x, const Tensor& q, std::optional<int> dim = std::nullopt, bool keepdim = false,
                          QuantileInterpolation interpolation = QuantileInterpolation::linear);
/// The same of the elements that are not NaN; NaN where there are none.
CLNET_API Tensor nanquantile(const Tensor& x, double q, std::optional<int> dim = std::nullopt, bool keepdim = false,
                             QuantileInterpolation interpolation = QuantileInterpolation::linear);
CLNET_API Tensor nanquantile(const Tensor& x, const std::vector<double>& q, std::optional<int> dim = std::nullopt,
                             bool keepdim = false, QuantileInterpolation interpolation = QuantileInterpolation::linear);
CLNET_API Tensor nanquantile(const Tensor& x, const Tensor& q, std::optional<int> dim = std::nullopt, bool keepdim = false,
                             QuantileInterpolation interpolation = QuantileInterpolation::linear);
/// How many elements of `sorted` come before each of `values`, as i64; with `right`, before or equal to it. `sorted` ascends
/// along its last dimension; it is one line for all values, or has their other extents (ShapeError otherwise). NaN is larger than
/// any number. Both have one dtype. No gradient.
CLNET_API Tensor searchsorted(const Tensor& sorted, const Tensor& values, bool right = false);
/// searchsorted(boundaries, x, right), for boundaries {n}.
CLNET_API Tensor bucketize(const Tensor& x, const Tensor& boundaries, bool right = false);

// ---- Results with shapes that depend on values. They evaluate their inputs at once, and are an Error inside compile().

/// The places of elements that are not 0, in row-major order: i64 {count, rank}. Both do the same.
CLNET_API Tensor nonzero(const Tensor& x);
CLNET_API Tensor argwhere(const Tensor& x);
/// The elements where `mask` (bool) is true, as one line; both broadcast. The gradient goes to x.
CLNET_API Tensor masked_select(const Tensor& x, const Tensor& mask);
struct UniqueResult {
  Tensor values;   ///< {count}, without a gradient
  Tensor inverse;  ///< i64, of x's shape: where each element is among the values
  Tensor counts;   ///< i64 {count}: how often each value appears
};
/// The different elements of x in ascending order. Each NaN is an element of its own.
CLNET_API UniqueResult unique(const Tensor& x);
/// The first element of each run of equal ones, in row-major order.
CLNET_API UniqueResult unique_consecutive(const Tensor& x);
/// The same of the slices along `dim`: inverse and counts are of slices. Their order is that of the first elements that differ.
/// Throws ShapeError for slices without elements.
CLNET_API UniqueResult unique(const Tensor& x, int dim);
CLNET_API UniqueResult unique_consecutive(const Tensor& x, int dim);

}  // namespace clnet
