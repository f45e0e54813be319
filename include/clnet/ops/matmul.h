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
