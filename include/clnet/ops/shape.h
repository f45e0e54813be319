// Operations that rearrange elements. They throw ShapeError for dimensions out of range and shapes that do not fit.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <vector>

#include "clnet/export.h"
#include "clnet/ops/options.h"
#include "clnet/tensor.h"

namespace clnet {

/// The same elements in row-major order with another shape. One extent may be -1: it follows from the others.
CLNET_API Tensor reshape(const Tensor& x, const std::vector<std::int64_t>& extents);
CLNET_API Tensor reshape(const Tensor& x, std::initializer_list<std::int64_t> extents);
CLNET_API Tensor reshape(const Tensor& x, const Shape& shape);
/// Joins dimensions first..last into one. Without numbers it keeps dimension 0, the samples, where PyTorch's joins all: that is
/// flatten(x, 0).
CLNET_API Tensor flatten(const Tensor& x, int first = 1, int last = -1);
CLNET_API Tensor squeeze(const Tensor& x, int dim);               ///< drops a dimension of extent 1; others stay
CLNET_API Tensor squeeze(const Tensor& x);                        ///< drops all dimensions of extent 1
CLNET_API Tensor unsqueeze(const Tensor& x, int dim);             ///< adds a dimension of extent 1 at `dim`
CLNET_API Tensor transpose(const Tensor& x, int dim0, int dim1);  ///< swaps two dimensions
inline Tensor swapaxes(const Tensor& x, int dim0, int dim1) { return transpose(x, dim0, dim1); }
/// Moves dimensions sources[i] to places destinations[i]; the others keep their order. Throws ShapeError for lists of two
/// lengths, and for a dimension or place that is given twice.
CLNET_API Tensor movedim(const Tensor& x, const Dims& sources, const Dims& destinations);
CLNET_API Tensor movedim(const Tensor& x, int source, int destination);
/// Dimension i of the result is dimension dims[i] of x.
CLNET_API Tensor permute(const Tensor& x, const std::vector<int>& dims);
/// Repeats dimensions of extent 1, and adds dimensions in front, to match `shape` by NumPy's rule (PyTorch's expand).
CLNET_API Tensor expand(const Tensor& x, const Shape& shape);
/// Splits dimension `dim` into several; one extent may be -1: it follows from the others.
CLNET_API Tensor unflatten(const Tensor& x, int dim, const std::vector<std::int64_t>& extents);
inline Tensor broadcast_to(const Tensor& x, const Shape& shape) { return expand(x, shape); }
/// All tensors, expanded to the shape that they broadcast to.
CLNET_API std::vector<Tensor> broadcast_tensors(const std::vector<Tensor>& tensors);
/// Joins tensors along a dimension; the other extents must be equal (PyTorch's cat). Throws Error for an empty list.
CLNET_API Tensor concat(const std::vector<Tensor>& tensors, int dim);
inline Tensor cat(const std::vector<Tensor>& tensors, int dim = 0) { return concat(tensors, dim); }
/// Joins tensors along dimension 1 (0 for vectors), 0 and 2; missing dimensions are added as NumPy does.
CLNET_API Tensor hstack(const std::vector<Tensor>& tensors);
CLNET_API Tensor vstack(const std::vector<Tensor>& tensors);
CLNET_API Tensor dstack(const std::vector<Tensor>& tensors);
/// Joins tensors of one shape along a new dimension `dim`. Throws Error for an empty list.
CLNET_API Tensor stack(const std::vector<Tensor>& tensors, int dim = 0);
/// Pieces of the given lengths along a dimension. Throws ShapeError where they do not add up to its extent.
CLNET_API std::vector<Tensor> split(const Tensor& x, const std::vector<std::int64_t>& lengths, int dim);
/// Pieces of one length along a dimension, the last one perhaps shorter. Throws Error for a length below 1.
CLNET_API std::vector<Tensor> split(const Tensor& x, std::int64_t length, int dim = 0);
/// At most `chunks` pieces of one length along a dimension, the last one perhaps shorter; of an empty dimension as many empty
/// ones. Throws Error for fewer than 1.
CLNET_API std::vector<Tensor> chunk(const Tensor& x, std::int64_t chunks, int dim = 0);
/// `sections` pieces along a dimension, whose lengths differ by at most 1. Throws Error for fewer than 1.
CLNET_API std::vector<Tensor> tensor_split(const Tensor& x, std::int64_t sections, int dim = 0);
/// Pieces that end before each of the places, and the rest. Negative places count from the end.
CLNET_API std::vector<Tensor> tensor_split(const Tensor& x, const std::vector<std::int64_t>& places, int dim = 0);
/// The parts x[..., i, ...] along a dimension, without it.
CLNET_API std::vector<Tensor> unbind(const Tensor& x, int dim = 0);
/// x with ones in front, up to so many dimensions. In three, a vector lies along the second, and a matrix along the first two.
CLNET_API Tensor atleast_1d(const Tensor& x);
CLNET_API Tensor atleast_2d(const Tensor& x);
CLNET_API Tensor atleast_3d(const Tensor& x);
/// The part x[..., index, ...] along a dimension, without it. Throws ShapeError where there is none.
CLNET_API Tensor select(const Tensor& x, int dim, std::int64_t index);
/// Elements start, start + step, ... before stop along one dimension. Negative positions count from the end; both are clamped.
/// `step` may be negative; Error for 0.
CLNET_API Tensor slice(const Tensor& x, int dim, std::int64_t start, std::int64_t stop = std::numeric_limits<std::int64_t>::max(),
                       std::int64_t step = 1);
/// x with the elements from `start` on along a dimension replaced by `value`. `value` has x's other extents and at most its
/// length. A new start compiles no new plan. A tensor `start` (one i32 or i64) may lead outside of x: elements there are dropped.
/// A number may not (ShapeError).
///
/// Evaluation writes only the slice where x is a leaf (as from detach()) without other references: `x = slice_update(x, 0, i,
/// row); x = x.detach();`.
CLNET_API Tensor slice_update(const Tensor& x, int dim, const Tensor& start, const Tensor& value);
CLNET_API Tensor slice_update(const Tensor& x, int dim, std::int64_t start, const Tensor& value);
/// `length` elements from `start` on along a dimension. Unlike with slice(), a new start compiles no new plan. A tensor `start`
/// (one i32 or i64) may lead outside of x: elements there are NaN (0 for integers), without a gradient. A number may not
/// (ShapeError).
CLNET_API Tensor narrow(const Tensor& x, int dim, const Tensor& start, std::int64_t length);
CLNET_API Tensor narrow(const Tensor& x, int dim, std::int64_t start, std::int64_t length);
/// Reverses the order along each of the dimensions. Throws ShapeError for a dimension that is given twice.
CLNET_API Tensor flip(const Tensor& x, const Dims& dims);
CLNET_API Tensor fliplr(const Tensor& x);  ///< flip() along dimension 1
CLNET_API Tensor flipud(const Tensor& x);  ///< flip() along dimension 0
/// Turns by 90 degrees `times` times, from the first of two dimensions to the second. Throws ShapeError for other than two.
CLNET_API Tensor rot90(const Tensor& x, int times, const Dims& dims);
inline Tensor rot90(const Tensor& x, int times = 1) { return rot90(x, times, {0, 1}); }
/// Shifts elements by shifts[i] along dims[i]; elements that leave at one end enter at the other.
CLNET_API Tensor roll(const Tensor& x, const std::vector<std::int64_t>& shifts, const Dims& dims);
/// Repeats x repeats[d] times along dimension d. The shorter of repeats and x's shape gets ones in front.
CLNET_API Tensor tile(const Tensor& x, const std::vector<std::int64_t>& repeats);
/// PyTorch's repeat: tile() with at least one number per dimension (ShapeError otherwise).
CLNET_API Tensor repeat(const Tensor& x, const std::vector<std::int64_t>& repeats);
/// Repeats each element `repeats` times in a row along `dim`.
CLNET_API Tensor repeat_interleave(const Tensor& x, std::int64_t repeats, int dim);
/// The elements at i and i + offset in dim1 and dim2, as a new last dimension in place of both.
CLNET_API Tensor diagonal(const Tensor& x, std::int64_t offset = 0, int dim1 = 0, int dim2 = 1);
/// For x {n}: a matrix of zeros with x on its diagonal, `offset` above the main one. For a matrix: that diagonal.
CLNET_API Tensor diag(const Tensor& x, std::int64_t offset = 0);
/// Matrices of zeros with the last dimension of x {..., n} on the diagonals that lie `offset` above the main ones. Their rows and
/// columns are dimensions dim1 and dim2 of the result. Throws ShapeError where these are one.
CLNET_API Tensor diag_embed(const Tensor& x, std::int64_t offset = 0, int dim1 = -2, int dim2 = -1);
/// The sum of a matrix's diagonal. Throws ShapeError for another rank.
CLNET_API Tensor trace(const Tensor& x);
/// The lower (upper) triangle of the last two dimensions, up to (from) the diagonal that lies `diagonal` above the main one.
/// Other elements become 0.
CLNET_API Tensor tril(const Tensor& x, std::int64_t diagonal = 0);
CLNET_API Tensor triu(const Tensor& x, std::int64_t diagonal = 0);
/// How dimensions of meshgrid() follow the vectors: in their order, or with the first two swapped, as for images.
enum class Indexing : std::uint8_t { ij, xy };
/// Grids of all combinations of the vectors' elements, one for each vector. Throws ShapeError for other ranks.
CLNET_API std::vector<Tensor> meshgrid(const std::vector<Tensor>& tensors, Indexing indexing = Indexing::ij);
/// {..., C r r, H, W} -> {..., C, H r, W r} (Shi et al. 2016). Throws Error for a factor below 1.
CLNET_API Tensor pixel_shuffle(const Tensor& x, std::int64_t factor);
/// The inverse: {..., C, H r, W r} -> {..., C r r, H, W}.
CLNET_API Tensor pixel_unshuffle(const Tensor& x, std::int64_t factor);
struct UnfoldOptions {
  Pair dilation = 1, padding = 0, stride = 1;
};
/// The windows of x {N, C, H, W} or {C, H, W} as columns {N, C kernel_height kernel_width, windows}: a convolution becomes a
/// matrix product. Floating dtypes.
CLNET_API Tensor unfold(const Tensor& x, Pair kernel_size, const UnfoldOptions& options = {});
/// The transpose of unfold(): adds columns {N, C kernel_height kernel_width, windows} up in images {N, C, height, width}. Also
/// without N.
CLNET_API Tensor fold(const Tensor& columns, Pair output_size, Pair kernel_size, const UnfoldOptions& options = {});
/// `edge` repeats the border elements, `circular` continues at the other end.
enum class PadMode : std::uint8_t { constant, reflect, edge, circular };
/// Adds before[d] and after[d] elements to each dimension; negative numbers remove elements, before others are added. One entry
/// per dimension. reflect adds fewer than the extent, circular at most the remaining one (ShapeError otherwise).
CLNET_API Tensor pad(const Tensor& x, const std::vector<std::int64_t>& before, const std::vector<std::int64_t>& after,
                     double value = 0, PadMode mode = PadMode::constant);

}  // namespace clnet
