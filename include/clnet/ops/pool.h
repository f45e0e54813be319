// Pooling of {N, C, L}, {N, C, H, W} and {N, C, D, H, W}, or of one sample without N. Throws ShapeError for other shapes, for
// options out of range, and for padding above half a window.
#pragma once

#include <cstdint>
#include <optional>

#include "clnet/export.h"
#include "clnet/ops/options.h"
#include "clnet/tensor.h"

namespace clnet {

/// Options of max pooling; those of 2d and 3d mean the same per axis.
struct MaxPool1dOptions {
  std::optional<std::int64_t> stride = std::nullopt;  ///< the kernel's size when not given
  Padding1d padding = 0;                              ///< counts as -infinity
  std::int64_t dilation = 1;
  bool ceil_mode = false;  ///< allows a last window that begins before the end and exceeds it by less than a stride
};
struct MaxPool2dOptions {
  std::optional<Pair> stride = std::nullopt;  ///< the kernel's size when not given
  Padding padding = 0;                        ///< counts as -infinity
  Pair dilation = 1;
  bool ceil_mode = false;
};
struct MaxPool3dOptions {
  std::optional<Triple> stride = std::nullopt;  ///< the kernel's size when not given
  Padding3d padding = 0;                        ///< counts as -infinity
  Triple dilation = 1;
  bool ceil_mode = false;
};
/// The largest element of each window: the first of equal elements, in row order, gets the gradient. NaN wins over numbers.
CLNET_API Tensor max_pool1d(const Tensor& x, std::int64_t kernel_size, const MaxPool1dOptions& options = {});
CLNET_API Tensor max_pool2d(const Tensor& x, Pair kernel_size, const MaxPool2dOptions& options = {});
CLNET_API Tensor max_pool3d(const Tensor& x, Triple kernel_size, const MaxPool3dOptions& options = {});

/// The largest elements and their positions: i32 numbers of elements of the line, plane or volume in row order, as in PyTorch
/// (there i64). A window of padding alone has -infinity and a number past the end.
struct MaxPoolResult {
  Tensor y, indices;
};
CLNET_API MaxPoolResult max_pool1d_with_indices(const Tensor& x, std::int64_t kernel_size, const MaxPool1dOptions& options = {});
CLNET_API MaxPoolResult max_pool2d_with_indices(const Tensor& x, Pair kernel_size, const MaxPool2dOptions& options = {});
CLNET_API MaxPoolResult max_pool3d_with_indices(const Tensor& x, Triple kernel_size, const MaxPool3dOptions& options = {});

struct MaxUnpool1dOptions {
  std::optional<std::int64_t> stride = std::nullopt;  ///< the kernel's size when not given
  Padding1d padding = 0;
  std::optional<std::int64_t> output_size = std::nullopt;  ///< default: (L - 1) stride - padding + kernel_size
};
struct MaxUnpool2dOptions {
  std::optional<Pair> stride = std::nullopt;
  Padding padding = 0;
  std::optional<Pair> output_size = std::nullopt;
};
struct MaxUnpool3dOptions {
  std::optional<Triple> stride = std::nullopt;
  Padding3d padding = 0;
  std::optional<Triple> output_size = std::nullopt;
};
/// The inverse of max pooling with the same options: zeros, with the elements of x at `indices` (i32 or i64, of x's shape). With
/// equal indices the last element stays, and all get its gradient, as in PyTorch. Elements with an index out of range are left
/// out. Throws ShapeError for an output_size that differs from the default by a stride or more.
CLNET_API Tensor max_unpool1d(const Tensor& x, const Tensor& indices, std::int64_t kernel_size,
                              const MaxUnpool1dOptions& options = {});
CLNET_API Tensor max_unpool2d(const Tensor& x, const Tensor& indices, Pair kernel_size, const MaxUnpool2dOptions& options = {});
CLNET_API Tensor max_unpool3d(const Tensor& x, const Tensor& indices, Triple kernel_size, const MaxUnpool3dOptions& options = {});

/// Options of average pooling; those of 2d and 3d mean the same per axis.
struct AvgPool1dOptions {
  std::optional<std::int64_t> stride = std::nullopt;
  Padding1d padding = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;
  std::optional<std::int64_t> divisor_override =
      std::nullopt;  ///< divides by this instead of the number of elements; not 0 (Error)
};
struct AvgPool2dOptions {
  std::optional<Pair> stride = std::nullopt;
  Padding padding = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;
  std::optional<std::int64_t> divisor_override = std::nullopt;
};
struct AvgPool3dOptions {
  std::optional<Triple> stride = std::nullopt;
  Padding3d padding = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;
  std::optional<std::int64_t> divisor_override = std::nullopt;
};
/// The mean of each window. Padding counts as zeros in it, unless count_include_pad is false.
CLNET_API Tensor avg_pool1d(const Tensor& x, std::int64_t kernel_size, const AvgPool1dOptions& options = {});
CLNET_API Tensor avg_pool2d(const Tensor& x, Pair kernel_size, const AvgPool2dOptions& options = {});
CLNET_API Tensor avg_pool3d(const Tensor& x, Triple kernel_size, const AvgPool3dOptions& options = {});

/// (sum of x^power over each window)^(1 / power). Windows that ceil_mode cuts off count as if they were whole, as in PyTorch.
/// `power` is positive (Error otherwise), or infinity for the largest magnitude. The gradient of a sum of 0 is 0. With a power
/// below 1 the gradient of an element 0, where the slope is infinite, is 0, too.
CLNET_API Tensor lp_pool1d(const Tensor& x, double power, std::int64_t kernel_size,
                           std::optional<std::int64_t> stride = std::nullopt, bool ceil_mode = false);
CLNET_API Tensor lp_pool2d(const Tensor& x, double power, Pair kernel_size, std::optional<Pair> stride = std::nullopt,
                           bool ceil_mode = false);
CLNET_API Tensor lp_pool3d(const Tensor& x, double power, Triple kernel_size, std::optional<Triple> stride = std::nullopt,
                           bool ceil_mode = false);

// Adaptive pooling: windows that divide each axis into `output_size` parts. -1 keeps the axis's extent (PyTorch's None).

CLNET_API Tensor adaptive_avg_pool1d(const Tensor& x, std::int64_t output_size);
CLNET_API Tensor adaptive_avg_pool2d(const Tensor& x, Pair output_size);
CLNET_API Tensor adaptive_avg_pool3d(const Tensor& x, Triple output_size);
CLNET_API Tensor adaptive_max_pool1d(const Tensor& x, std::int64_t output_size);
CLNET_API Tensor adaptive_max_pool2d(const Tensor& x, Pair output_size);
CLNET_API Tensor adaptive_max_pool3d(const Tensor& x, Triple output_size);
CLNET_API MaxPoolResult adaptive_max_pool1d_with_indices(const Tensor& x, std::int64_t output_size);
CLNET_API MaxPoolResult adaptive_max_pool2d_with_indices(const Tensor& x, Pair output_size);
CLNET_API MaxPoolResult adaptive_max_pool3d_with_indices(const Tensor& x, Triple output_size);

CLNET_API Tensor global_avg_pool1d(const Tensor& x);  ///< {N, C, 1}
CLNET_API Tensor global_avg_pool2d(const Tensor& x);  ///< {N, C, 1, 1}
CLNET_API Tensor global_avg_pool3d(const Tensor& x);  ///< {N, C, 1, 1, 1}
CLNET_API Tensor global_max_pool1d(const Tensor& x);  ///< {N, C, 1}
CLNET_API Tensor global_max_pool2d(const Tensor& x);  ///< {N, C, 1, 1}
CLNET_API Tensor global_max_pool3d(const Tensor& x);  ///< {N, C, 1, 1, 1}

}  // namespace clnet
