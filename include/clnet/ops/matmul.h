// Matrix products.
#pragma once

#include <string_view>
#include <vector>

#include "clnet/export.h"
#include "clnet/tensor.h"

namespace clnet {

struct MatmulOptions {
  bool transpose_a = false, transpose_b = false;  ///< swaps the last two dimensions
};
/// {..., M, K} x {..., K, N} -> {..., M, N}; leading dimensions broadcast. Vectors as in PyTorch's matmul: a first {K} counts as
/// a row, a second {K} as a column, and the result drops that dimension. Throws ShapeError where the shapes do not fit,
/// DtypeError for two dtypes.
CLNET_API Tensor matmul(const Tensor& a, const Tensor& b, const MatmulOptions& options = {});
/// beta x + alpha matmul(a, b); x broadcasts to the product (ShapeError otherwise). With beta 0, x is ignored, even NaN.
CLNET_API Tensor addmm(const Tensor& x, const Tensor& a, const Tensor& b, double beta = 1, double alpha = 1);
// Products of fixed ranks; ShapeError for others, DtypeError for two dtypes.

CLNET_API Tensor mm(const Tensor& a, const Tensor& b);     ///< {M, K} x {K, N}
CLNET_API Tensor bmm(const Tensor& a, const Tensor& b);    ///< {B, M, K} x {B, K, N}, with one B
CLNET_API Tensor mv(const Tensor& a, const Tensor& b);     ///< {M, K} x {K}
CLNET_API Tensor dot(const Tensor& a, const Tensor& b);    ///< {K} x {K} -> {}
CLNET_API Tensor inner(const Tensor& a, const Tensor& b);  ///< {..., K} x {...', K} -> {..., ...'}; of a scalar a * b
/// addmm() for a {M, K} and b {K}, for batches of matrices, for their sum over the batch, and for the outer product of vectors.
CLNET_API Tensor addmv(const Tensor& x, const Tensor& a, const Tensor& b, double beta = 1, double alpha = 1);
CLNET_API Tensor baddbmm(const Tensor& x, const Tensor& a, const Tensor& b, double beta = 1, double alpha = 1);
CLNET_API Tensor addbmm(const Tensor& x, const Tensor& a, const Tensor& b, double beta = 1, double alpha = 1);
CLNET_API Tensor addr(const Tensor& x, const Tensor& a, const Tensor& b, double beta = 1, double alpha = 1);
/// Sums over the last `dims` dimensions of a and the first of b, in order.
CLNET_API Tensor tensordot(const Tensor& a, const Tensor& b, int dims = 2);
/// Sums over dimensions dims_a[i] of a and dims_b[i] of b. An extent of 1 broadcasts. Throws ShapeError where they differ
/// otherwise.
CLNET_API Tensor tensordot(const Tensor& a, const Tensor& b, const std::vector<int>& dims_a, const std::vector<int>& dims_b);
/// Kronecker's product: extents are multiplied. The shorter shape gets ones in front.
CLNET_API Tensor kron(const Tensor& a, const Tensor& b);
/// The cross product of vectors of 3 along `dim`; the shapes broadcast. Throws ShapeError for other extents.
CLNET_API Tensor cross(const Tensor& a, const Tensor& b, int dim = -1);
/// The product of two matrices or more, in the order of the fewest multiplications. The first may be a row {K}, the last a column
/// {K}; the result drops that dimension. Throws ShapeError for others.
CLNET_API Tensor multi_dot(const std::vector<Tensor>& tensors);
/// The outer product {M, N} of {M} and {N}. Throws ShapeError for other ranks.
CLNET_API Tensor outer(const Tensor& a, const Tensor& b);
/// x weight^T + bias for x {..., in}, weight {out, in} and bias {out}; an undefined bias adds nothing. Throws ShapeError
/// otherwise.
CLNET_API Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {});
/// Einstein's notation, as in PyTorch: einsum("bij,bjk->bik", {a, b}). Each dimension of an operand has a letter; "..." stands
/// for any number of dimensions. Letters that the result lacks are summed over, and a letter repeated in one operand takes its
/// diagonal. Extents of 1, and dimensions of "...", broadcast.
///
/// Without "->" the result has the dimensions of "..." and the letters that appear once, in alphabetical order (capitals first).
/// Operands have one floating dtype and are multiplied from left to right. Throws Error for an invalid equation, ShapeError where
/// it does not fit the operands.
CLNET_API Tensor einsum(std::string_view equation, const std::vector<Tensor>& operands);

}  // namespace clnet
