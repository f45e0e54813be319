// Matrix products.
#pragma once

#include <string_view>
#include <vector>

#include "clnet/export.h"
#include "clnet/tensor.h"

namespace clnet {

struct MatmulOptions {
  bool transpose_a = false, transpose_b = false;  ///< of the last two dimensions
};
/// {..., M, K} x {..., K, N} -> {..., M, N}; leading dimensions broadcast. Vectors as in PyTorch's matmul: a first {K} and a
/// second {K} count as a row and a column, and that dimension is dropped from the result.
CLNET_API Tensor matmul(const Tensor& a, const Tensor& b, const MatmulOptions& options = {});
/// beta x + alpha matmul(a, b), to which x broadcasts. Where beta is 0, x counts for nothing, whatever is in it.
CLNET_API Tensor addmm(const Tensor& x, const Tensor& a, const Tensor& b, double beta = 1, double alpha = 1);
/// {M} and {N} -> {M, N}: all products.
CLNET_API Tensor outer(const Tensor& a, const Tensor& b);
/// x {..., in} and weight {out, in}: x weight^T + bias. An undefined bias adds nothing.
CLNET_API Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {});
/// Einstein's notation, as in PyTorch: einsum("bij,bjk->bik", {a, b}). A letter per dimension of each operand; letters that the
/// result lacks are summed over, one that an operand repeats takes its diagonal, "..." stands for any dimensions, which
/// broadcast, as extents of 1 do. Without "->" the result has the dimensions of "..." and the letters that appear once, in
/// alphabetical order (capitals first). Operands of one floating dtype, taken from left to right. Throws Error for what is no
/// equation, ShapeError where it does not fit the operands.
CLNET_API Tensor einsum(std::string_view equation, const std::vector<Tensor>& operands);

}  // namespace clnet
