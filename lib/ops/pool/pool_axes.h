// Pooling along 1, 2 and 3 axes: checks, and how it becomes pooling of planes.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "clnet/tensor.h"
#include "lib/ops/axes.h"
#include "lib/ops/pool/pool2d.h"

namespace clnet::ops {

/// The windows along one axis, and its extents in the input and the output.
struct PoolAxis {
  std::int64_t kernel = 1, stride = 1, before = 0, after = 0, dilation = 1;
  std::int64_t in = 1, out = 1;
  bool adaptive = false;  ///< by division of the extent; only the extents count then

  /// Of `extent` elements that stay what they are.
  static PoolAxis whole(std::int64_t extent) { return {.in = extent, .out = extent}; }
  bool is_whole() const { return kernel == 1 && stride == 1 && before == 0 && after == 0 && !adaptive; }
};
using PoolAxes = std::vector<PoolAxis>;

/// The axes of a pooling of x {N, C, ...} or {C, ...}, with PyTorch's rule for ceil_mode: the last window must start inside the
/// input or the padding before it. Throws ShapeError or DtypeError, naming the operation.
PoolAxes pool_axes(std::string_view op, const Spec& x, const Extents& kernel, const Extents& stride, const Extents& before,
                   const Extents& after, const Extents& dilation, bool ceil_mode);
/// By options; those without dilation have windows in one piece.
template <class Size, class Options>
PoolAxes pool_axes(std::string_view op, const Spec& x, const Size& kernel_size, const Options& options) {
  auto dilation = Extents(by_axis(kernel_size).size(), 1);
  if constexpr (requires { options.dilation; }) dilation = by_axis(options.dilation);
  return pool_axes(op, x, by_axis(kernel_size), by_axis(options.stride.value_or(kernel_size)), before(options.padding),
                   after(options.padding), dilation, options.ceil_mode);
}
/// An output size of -1 keeps the extent.
PoolAxes adaptive_axes(std::string_view op, const Spec& x, const Extents& output_size);
/// Of the whole line, plane or volume.
PoolAxes global_axes(std::string_view op, const Spec& x, std::size_t axes);

/// Throws unless x is a floating {N, C, ...} or {C, ...} with so many axes.
void require_axes(std::string_view op, const Spec& x, std::size_t axes);
PoolWindows plane_windows(const PoolAxis& vertical, const PoolAxis& horizontal);

std::int64_t inputs(const PoolAxes& axes);   ///< elements of a line, plane or volume
std::int64_t outputs(const PoolAxes& axes);  ///< of its result
/// {n, c, the axes' extents in the input (output)}.
Shape input_shape(std::int64_t n, std::int64_t c, const PoolAxes& axes);
Shape output_shape(std::int64_t n, std::int64_t c, const PoolAxes& axes);

/// The windows of all axes, as attributes.
Fields fields_of(const PoolAxes& axes);
/// The averages over windows, or sums divided by `divisor` where that is not 0.
Tensor average(const Tensor& x, const PoolAxes& axes, bool include_pad, std::int64_t divisor);
/// The largest of windows, and where they lie if `indices`.
MaxPoolResult largest(const Tensor& x, const PoolAxes& axes, bool indices);

}  // namespace clnet::ops
