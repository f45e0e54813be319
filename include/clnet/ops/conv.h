// Convolutions.
#pragma once

#include <cstdint>

#include "clnet/export.h"
#include "clnet/ops/options.h"
#include "clnet/tensor.h"

namespace clnet {

struct Conv2dOptions {
  Pair stride = 1;
  Padding padding = 0;
  Pair dilation = 1;
  std::int64_t groups = 1;
};
/// x {N, C, H, W}, weight {out, C / groups, kh, kw}, bias {out} or undefined.
CLNET_API Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, const Conv2dOptions& options = {});
struct ConvTranspose2dOptions {
  Pair stride = 1;
  Padding padding = 0;
  Pair output_padding = 0;
  Pair dilation = 1;
  std::int64_t groups = 1;
};
/// x {N, C, H, W}, weight {C, out / groups, kh, kw}, bias {out} or undefined.
CLNET_API Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                                  const ConvTranspose2dOptions& options = {});

}  // namespace clnet
