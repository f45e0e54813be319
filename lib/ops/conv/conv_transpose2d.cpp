// Transposed 2-d convolution: the gradient of a convolution's input, as an operation of its own.
#include <fmt/format.h>

#include <algorithm>

#include "clnet/error.h"
#include "lib/graph/require.h"
#include "lib/ops/conv/conv2d.h"

namespace clnet {

Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvTranspose2dOptions& options) {
  require_defined("conv_transpose2d", {{"x", x}, {"weight", weight}});
  constexpr std::string_view op = "conv_transpose2d";
  const auto &stride = options.stride, &dilation = options.dilation, &extra = options.output_padding;
  const auto& p = options.padding;
  const Conv2dOptions conv{.stride = stride, .padding = p, .dilation = dilation, .groups = options.groups};
  ops::require_valid(op, conv);
  ops::require_conv_operands(op, x, weight, bias, weight.rank() == 4 ? weight.size(1) * options.groups : 0);
  if (x.size(1) != weight.size(0))
    throw ShapeError(fmt::format("{}: input {} has {} channels, but weight {} takes {}", op, to_string(x.spec()), x.size(1),
                                 to_string(weight.spec()), weight.size(0)));
  if (x.size(1) % options.groups != 0)
    throw ShapeError(fmt::format("{}: the {} channels of input {} are not a multiple of {} groups (weight {})", op, x.size(1),
                                 to_string(x.spec()), options.groups, to_string(weight.spec())));
  if (extra.height < 0 || extra.width < 0 || extra.height >= std::max(stride.height, dilation.height) ||
      extra.width >= std::max(stride.width, dilation.width))
    throw ShapeError(
        fmt::format("{}: output padding {}x{} must not be negative and must be smaller than stride {}x{} or dilation {}x{}", op,
                    extra.height, extra.width, stride.height, stride.width, dilation.height, dilation.width));
  const Pair size{(x.size(2) - 1) * stride.height - p.top - p.bottom + dilation.height * (weight.size(2) - 1) + 1 + extra.height,
                  (x.size(3) - 1) * stride.width - p.left - p.right + dilation.width * (weight.size(3) - 1) + 1 + extra.width};
  if (x.size(2) < 1 || x.size(3) < 1 || size.height < 1 || size.width < 1)
    throw ShapeError(fmt::format("{}: input {} and weight {} with padding {{{}, {}, {}, {}}} give an empty {}x{} output", op,
                                 to_string(x.spec()), to_string(weight.spec()), p.top, p.left, p.bottom, p.right, size.height,
                                 size.width));
  const Tensor y = ops::conv2d_backward_data(x, weight, size, conv);
  return bias.defined() ? y + reshape(bias, Shape{bias.size(0), 1, 1}) : y;
}

}  // namespace clnet
