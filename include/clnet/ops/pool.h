// Pooling of {N, C, H, W}.
#pragma once

#include <optional>

#include "clnet/export.h"
#include "clnet/ops/options.h"
#include "clnet/tensor.h"

namespace clnet {

struct MaxPool2dOptions {
  std::optional<Pair> stride = std::nullopt;  ///< the kernel's size when not given
  Padding padding = 0;                        ///< counts as -infinity
  Pair dilation = 1;
  bool ceil_mode = false;
};
/// The first of equal elements in row order takes the gradient. NaN wins over numbers.
CLNET_API Tensor max_pool2d(const Tensor& x, Pair kernel_size, const MaxPool2dOptions& options = {});
struct AvgPool2dOptions {
  std::optional<Pair> stride = std::nullopt;
  Padding padding = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;
};
CLNET_API Tensor avg_pool2d(const Tensor& x, Pair kernel_size, const AvgPool2dOptions& options = {});
CLNET_API Tensor adaptive_avg_pool2d(const Tensor& x, Pair output_size);
CLNET_API Tensor adaptive_max_pool2d(const Tensor& x, Pair output_size);
CLNET_API Tensor global_avg_pool2d(const Tensor& x);  ///< {N, C, 1, 1}
CLNET_API Tensor global_max_pool2d(const Tensor& x);  ///< {N, C, 1, 1}

}  // namespace clnet
