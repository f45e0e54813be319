#include "lib/ops/conv/conv_axes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "clnet/error.h"
#include "lib/graph/require.h"
#include "lib/ops/elementwise/elementwise.h"

namespace clnet::ops {

namespace {

using Extents = std::vector<std::int64_t>;

/// "3x2", of one number per axis.
std::string by_axis(const ConvAxes& axes, std::int64_t ConvAxis::*value) {
  Extents values;
  for (const auto& axis : axes) values.push_back(axis.*value);
  return fmt::format("{}", fmt::join(values, "x"));
}

/// "{1, 2, 1, 2}": before all axes, then after.
std::string padding_text(const ConvAxes& axes) {
  Extents values;
  for (const auto& axis : axes) values.push_back(axis.before);
  for (const auto& axis : axes) values.push_back(axis.after);
  return fmt::format("padding {{{}}}", fmt::join(values, ", "));
}

void require_options(std::string_view op, const ConvAxes& axes, std::int64_t groups, bool transposed) {
  if (groups < 1) throw ShapeError(fmt::format("{}: groups {} must be at least 1", op, groups));
  for (const auto& a : axes) {
    if (a.stride < 1) throw ShapeError(fmt::format("{}: stride {} must be at least 1", op, by_axis(axes, &ConvAxis::stride)));
    if (a.dilation < 1)
      throw ShapeError(fmt::format("{}: dilation {} must be at least 1", op, by_axis(axes, &ConvAxis::dilation)));
    for (auto value : {a.stride, a.dilation, a.before, a.after, groups})
      if (value > largest_window)
        throw ShapeError(fmt::format("{}: strides, dilations, padding and groups end at {}, got {}", op, largest_window, value));
    if (a.before < 0 || a.after < 0)
      throw ShapeError(fmt::format("{}: {} must not be negative; slice() crops", op, padding_text(axes)));
    if (transposed && (a.extra < 0 || a.extra >= std::max(a.stride, a.dilation)))
      throw ShapeError(fmt::format("{}: output padding {} must not be negative and must be smaller than stride {} or dilation {}",
                                   op, by_axis(axes, &ConvAxis::extra), by_axis(axes, &ConvAxis::stride),
                                   by_axis(axes, &ConvAxis::dilation)));
  }
}

void require_operands(std::string_view op, const Tensor& x, const Tensor& weight, const Tensor& bias, int rank,
                      std::int64_t groups, bool transposed) {
  constexpr std::string_view names[] = {"L", "H, W", "D, H, W"};
  if (x.rank() != rank && x.rank() != rank - 1)
    throw ShapeError(fmt::format("{}: the input must be {{N, C, {}}} or {{C, {}}}, got {}", op, names[rank - 3], names[rank - 3],
                                 to_string(x.spec())));
  if (weight.rank() != rank)
    throw ShapeError(fmt::format("{}: the weight must be {}-dimensional, got {}", op, rank, to_string(weight.spec())));
  require_floating(op, x.spec());
  require_same_dtype(op, x.spec(), weight.spec());
  for (int d = 2; d < rank; ++d)
    if (weight.size(d) < 1) throw ShapeError(fmt::format("{}: weight {} has an empty kernel", op, to_string(weight.spec())));
  const auto channels = x.size(1 - rank), taken = transposed ? weight.size(0) : weight.size(1) * groups;
  const auto out = transposed ? weight.size(1) * groups : weight.size(0);
  if (channels != taken)
    throw ShapeError(fmt::format("{}: input {} has {} channels, but weight {} with {} groups takes {}", op, to_string(x.spec()),
                                 channels, to_string(weight.spec()), groups, taken));
  if (transposed && channels % groups != 0)
    throw ShapeError(fmt::format("{}: the {} channels of input {} are not a multiple of {} groups (weight {})", op, channels,
                                 to_string(x.spec()), groups, to_string(weight.spec())));
  if (out % groups != 0)
    throw ShapeError(fmt::format("{}: the {} output channels of weight {} are not a multiple of {} groups (input {})", op, out,
                                 to_string(weight.spec()), groups, to_string(x.spec())));
  if (!bias.defined()) return;
  require_same_dtype(op, x.spec(), bias.spec());
  if (bias.rank() != 1 || bias.size(0) != out)
    throw ShapeError(fmt::format("{}: bias {} does not fit {} output channels of weight {}", op, to_string(bias.spec()), out,
                                 to_string(weight.spec())));
}

}  // namespace

std::vector<std::int64_t> conv_output(std::string_view op, const Tensor& x, const Tensor& weight, const Tensor& bias,
                                      const ConvAxes& axes, std::int64_t groups, bool transposed) {
  require_defined(op, {{"x", x}, {"weight", weight}});
  require_options(op, axes, groups, transposed);
  require_operands(op, x, weight, bias, static_cast<int>(axes.size()) + 2, groups, transposed);
  Extents result;
  bool empty = false;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto& a = axes[i];
    const int dim = static_cast<int>(i) - static_cast<int>(axes.size());
    const auto in = x.size(dim), reach = a.dilation * (weight.size(dim) - 1);
    if (in + a.before + a.after > largest_window)
      throw ShapeError(fmt::format("{}: input {} with {} is more than {} high or wide", op, to_string(x.spec()),
                                   padding_text(axes), largest_window));
    const auto room = in + a.before + a.after - reach - 1;
    const auto extent = transposed ? (in - 1) * a.stride - a.before - a.after + reach + 1 + a.extra
                        : room < 0 ? 0
                                   : room / a.stride + 1;
    empty = empty || extent < 1 || in < 1;
    if (transposed && extent + a.before + a.after > largest_window)
      throw ShapeError(fmt::format("{}: input {} and weight {} give an output of {} with {}, which is more than {}", op,
                                   to_string(x.spec()), to_string(weight.spec()), extent, padding_text(axes), largest_window));
    result.push_back(extent);
  }
  if (empty && transposed)
    throw ShapeError(fmt::format("{}: input {} and weight {} with {} give an empty {} output", op, to_string(x.spec()),
                                 to_string(weight.spec()), padding_text(axes), fmt::join(result, "x")));
  for (int d = 1; d <= static_cast<int>(axes.size()); ++d)
    if (x.size(-d) == 0) throw ShapeError(fmt::format("{}: input {} is empty", op, to_string(x.spec())));
  if (empty)
    throw ShapeError(fmt::format("{}: weight {}, dilated by {}, is larger than the padded input {} ({})", op,
                                 to_string(weight.spec()), by_axis(axes, &ConvAxis::dilation), to_string(x.spec()),
                                 padding_text(axes)));
  return result;
}

}  // namespace clnet::ops
