// Elements and rows chosen by indices.
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

}  // namespace clnet
