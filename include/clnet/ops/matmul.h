// Matrix products.
#pragma once

#include "clnet/export.h"
#include "clnet/tensor.h"

namespace clnet {

struct MatmulOptions {
  bool transpose_a = false, transpose_b = false;  ///< of the last two dimensions
};
/// {..., M, K} x {..., K, N} -> {..., M, N}; leading dimensions broadcast. Vectors as in PyTorch's matmul: a first {K} and a
/// second {K} count as a row and a column, and that dimension is dropped from the result.
CLNET_API Tensor matmul(const Tensor& a, const Tensor& b, const MatmulOptions& options = {});
/// {M} and {N} -> {M, N}: all products.
CLNET_API Tensor outer(const Tensor& a, const Tensor& b);
/// x {..., in} and weight {out, in}: x weight^T + bias. An undefined bias adds nothing.
CLNET_API Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {});

}  // namespace clnet
