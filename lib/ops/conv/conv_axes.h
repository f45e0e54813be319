// What convolutions of 1, 2 and 3 axes have in common: their options by axis, and the checks of operands.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "clnet/tensor.h"

namespace clnet::ops {

/// Positions in a padded image reach so far at most, so that kernels count them in int.
inline constexpr std::int64_t largest_window = std::int64_t{1} << 30;

/// A convolution's options along one axis.
struct ConvAxis {
  std::int64_t stride = 1, before = 0, after = 0, dilation = 1;
  std::int64_t extra = 0;  ///< output padding, of transposed convolutions
  /// Whether a kernel of this extent sees just its own element.
  bool pointwise(std::int64_t kernel) const { return kernel == 1 && stride == 1 && before == 0 && after == 0 && extra == 0; }
};
using ConvAxes = std::vector<ConvAxis>;

/// The output's extents along the axes. Throws ShapeError or DtypeError, naming the operation, unless x {N, C, ...} or {C, ...},
/// weight {out, C / groups, ...} ({C, out / groups, ...} where `transposed`), bias {out} (or undefined) and options fit, and the
/// output has elements.
std::vector<std::int64_t> conv_output(std::string_view op, const Tensor& x, const Tensor& weight, const Tensor& bias,
                                      const ConvAxes& axes, std::int64_t groups, bool transposed);

}  // namespace clnet::ops
