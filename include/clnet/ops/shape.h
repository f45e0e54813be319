// The same elements otherwise arranged.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <vector>

#include "clnet/export.h"
#include "clnet/ops/options.h"
#include "clnet/tensor.h"

namespace clnet {

/// One extent may be -1: what is left.
CLNET_API Tensor reshape(const Tensor& x, const std::vector<std::int64_t>& extents);
CLNET_API Tensor reshape(const Tensor& x, std::initializer_list<std::int64_t> extents);
CLNET_API Tensor reshape(const Tensor& x, const Shape& shape);
/// Joins dimensions first..last.
CLNET_API Tensor flatten(const Tensor& x, int first = 1, int last = -1);
CLNET_API Tensor squeeze(const Tensor& x, int dim);
CLNET_API Tensor unsqueeze(const Tensor& x, int dim);
CLNET_API Tensor transpose(const Tensor& x, int dim0, int dim1);
/// Dimension i of the result is dimension dims[i] of x.
CLNET_API Tensor permute(const Tensor& x, const std::vector<int>& dims);
CLNET_API Tensor expand(const Tensor& x, const Shape& shape);
CLNET_API Tensor concat(const std::vector<Tensor>& tensors, int dim);
CLNET_API Tensor stack(const std::vector<Tensor>& tensors, int dim = 0);
/// Pieces of the given lengths along a dimension; their sum is its extent.
CLNET_API std::vector<Tensor> split(const Tensor& x, const std::vector<std::int64_t>& lengths, int dim);
/// Elements start, start + step, ... before stop, along one dimension; start and stop are clamped, negative ones count from the
/// end; `step` is not 0, and may be negative.
CLNET_API Tensor slice(const Tensor& x, int dim, std::int64_t start, std::int64_t stop = std::numeric_limits<std::int64_t>::max(),
                       std::int64_t step = 1);
/// x with the elements from `start` on along a dimension replaced by `value`, which has x's other extents and is no longer.
/// Another start makes no other plan. A tensor (one i32 or i64) may reach outside: what would lie there is left out; a number may
/// not. Where x is a value without a graph (as detach() gives) that nothing else refers to when the result is evaluated, only the
/// slice is written: `x = slice_update(x, 0, i, row); x = x.detach();`.
CLNET_API Tensor slice_update(const Tensor& x, int dim, const Tensor& start, const Tensor& value);
CLNET_API Tensor slice_update(const Tensor& x, int dim, std::int64_t start, const Tensor& value);
/// `length` elements from `start` on along a dimension. Unlike with slice(), another start makes no other plan. A tensor (one i32
/// or i64) may reach outside, which gives NaN (0 for integers) and no gradient; a number may not.
CLNET_API Tensor narrow(const Tensor& x, int dim, const Tensor& start, std::int64_t length);
CLNET_API Tensor narrow(const Tensor& x, int dim, std::int64_t start, std::int64_t length);
/// The elements in reverse order along each of the dimensions.
CLNET_API Tensor flip(const Tensor& x, const Dims& dims);
/// Elements moved by shifts[i] along dims[i], those that leave at one end entering at the other.
CLNET_API Tensor roll(const Tensor& x, const std::vector<std::int64_t>& shifts, const Dims& dims);
/// x beside itself repeats[d] times along dimension d; where the lengths differ, the shorter one gets ones in front.
CLNET_API Tensor tile(const Tensor& x, const std::vector<std::int64_t>& repeats);
/// PyTorch's repeat: tile() with at least one number for each dimension.
CLNET_API Tensor repeat(const Tensor& x, const std::vector<std::int64_t>& repeats);
/// Each element along `dim` so many times in a row.
CLNET_API Tensor repeat_interleave(const Tensor& x, std::int64_t repeats, int dim);
/// The elements whose places in dim1 and dim2 are i and i + offset, as a last dimension in place of the two.
CLNET_API Tensor diagonal(const Tensor& x, std::int64_t offset = 0, int dim1 = 0, int dim2 = 1);
/// The matrix of zeros that has x {n} as its diagonal `offset` above the main one; or that diagonal of a matrix x.
CLNET_API Tensor diag(const Tensor& x, std::int64_t offset = 0);
/// The sum of a matrix's diagonal.
CLNET_API Tensor trace(const Tensor& x);
/// The lower (upper) triangle of the last two dimensions, the other elements being 0: up to (from) the diagonal `diagonal` above
/// the main one.
CLNET_API Tensor tril(const Tensor& x, std::int64_t diagonal = 0);
CLNET_API Tensor triu(const Tensor& x, std::int64_t diagonal = 0);
/// {..., C r r, H, W} -> {..., C, H r, W r}: channels become pixels.
CLNET_API Tensor pixel_shuffle(const Tensor& x, std::int64_t factor);
/// {..., C, H r, W r} -> {..., C r r, H, W}.
CLNET_API Tensor pixel_unshuffle(const Tensor& x, std::int64_t factor);
struct UnfoldOptions {
  Pair dilation = 1, padding = 0, stride = 1;
};
/// What each window of x {N, C, H, W} sees, as columns {N, C kernel_height kernel_width, windows}: a convolution is then a
/// product of matrices. Also {C, H, W}. Floating dtypes.
CLNET_API Tensor unfold(const Tensor& x, Pair kernel_size, const UnfoldOptions& options = {});
/// The way back: columns {N, C kernel_height kernel_width, windows} added up in images {N, C, height, width}. Also without N.
CLNET_API Tensor fold(const Tensor& columns, Pair output_size, Pair kernel_size, const UnfoldOptions& options = {});
/// `circular` goes on at the other end.
enum class PadMode : std::uint8_t { constant, reflect, edge, circular };
/// before[d] and after[d] elements are added at each dimension (negative: taken away), one entry per dimension; to reflect, fewer
/// than the extent, and circularly at most what is left of it: what is taken away is so first.
CLNET_API Tensor pad(const Tensor& x, const std::vector<std::int64_t>& before, const std::vector<std::int64_t>& after,
                     double value = 0, PadMode mode = PadMode::constant);

}  // namespace clnet
