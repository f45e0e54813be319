// Convolutions of floating tensors. All accept one sample without N, too: {C, L}, {C, H, W} or {C, D, H, W}. They throw
// ShapeError for options out of range and for shapes that do not fit, DtypeError for dtypes.
#pragma once

#include <cstdint>

#include "clnet/export.h"
#include "clnet/ops/options.h"
#include "clnet/tensor.h"

namespace clnet {

struct Conv1dFuncOptions {
  std::int64_t stride = 1;
  Padding1d padding = 0;  ///< Padding1d::same(kernel_size) keeps the length
  std::int64_t dilation = 1;
  std::int64_t groups = 1;
};
/// x {N, C, L}, weight {out, C / groups, k}, bias {out} or undefined. The result is {N, out, length}.
CLNET_API Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, const Conv1dFuncOptions& options = {});
struct Conv2dFuncOptions {
  Pair stride = 1;
  Padding padding = 0;  ///< Padding::same(kernel_size) keeps height and width
  Pair dilation = 1;
  std::int64_t groups = 1;
};
/// x {N, C, H, W}, weight {out, C / groups, kh, kw}, bias {out} or undefined. The result is {N, out, height, width}.
CLNET_API Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, const Conv2dFuncOptions& options = {});
struct Conv3dFuncOptions {
  Triple stride = 1;
  Padding3d padding = 0;  ///< Padding3d::same(kernel_size) keeps all extents
  Triple dilation = 1;
  std::int64_t groups = 1;
};
/// x {N, C, D, H, W}, weight {out, C / groups, kd, kh, kw}, bias {out} or undefined. The result is {N, out, depth, height,
/// width}. The depth is unfolded in memory: one image of kd C channels per output depth. Throws ShapeError where these exceed
/// 2^31 - 1 elements.
CLNET_API Tensor conv3d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, const Conv3dFuncOptions& options = {});

struct ConvTranspose1dFuncOptions {
  std::int64_t stride = 1;
  Padding1d padding = 0;
  std::int64_t output_padding = 0;
  std::int64_t dilation = 1;
  std::int64_t groups = 1;
};
/// x {N, C, L}, weight {C, out / groups, k}, bias {out} or undefined. The result is {N, out, length}.
CLNET_API Tensor conv_transpose1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                                  const ConvTranspose1dFuncOptions& options = {});
struct ConvTranspose2dFuncOptions {
  Pair stride = 1;
  Padding padding = 0;
  Pair output_padding = 0;
  Pair dilation = 1;
  std::int64_t groups = 1;
};
/// x {N, C, H, W}, weight {C, out / groups, kh, kw}, bias {out} or undefined. The result is {N, out, height, width}.
CLNET_API Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                                  const ConvTranspose2dFuncOptions& options = {});
struct ConvTranspose3dFuncOptions {
  Triple stride = 1;
  Padding3d padding = 0;
  Triple output_padding = 0;
  Triple dilation = 1;
  std::int64_t groups = 1;
};
/// x {N, C, D, H, W}, weight {C, out / groups, kd, kh, kw}, bias {out} or undefined. The result is {N, out, depth, height,
/// width}. Memory as in conv3d.
CLNET_API Tensor conv_transpose3d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                                  const ConvTranspose3dFuncOptions& options = {});

}  // namespace clnet
