#include "clnet/nn/conv.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "clnet/error.h"
#include "clnet/nn/init.h"
#include "clnet/ops/conv.h"
#include "lib/nn/layer.h"

namespace clnet::nn {

namespace {

template <class Options>
std::string conv_text(const char* name, const Options& o) {
  auto result = fmt::format("{}({}, {}, kernel_size={}", name, o.in_channels, o.out_channels, text(o.kernel_size));
  if (o.stride != Pair(1)) result += ", stride=" + text(o.stride);
  if (o.padding != Padding(0)) result += ", padding=" + text(o.padding);
  if (o.dilation != Pair(1)) result += ", dilation=" + text(o.dilation);
  if (o.groups != 1) result += fmt::format(", groups={}", o.groups);
  if (!o.bias) result += ", bias=false";
  return result + ")";
}

template <class Options>
Tensor conv_weight(const char* name, const Options& o, std::int64_t outer, std::int64_t inner) {
  require_positive(name, "in_channels", o.in_channels);
  require_positive(name, "out_channels", o.out_channels);
  require_positive(name, "groups", o.groups);
  require_positive(name, "kernel_size", std::min(o.kernel_size.height, o.kernel_size.width));
  if (o.in_channels % o.groups != 0 || o.out_channels % o.groups != 0)
    throw Error(fmt::format("{}: in_channels {} and out_channels {} must be divisible by groups {}", name, o.in_channels,
                            o.out_channels, o.groups));
  return init::kaiming_uniform({outer, inner / o.groups, o.kernel_size.height, o.kernel_size.width});
}

}  // namespace

Conv2d::Conv2d(const Conv2dOptions& options)
    : options_(options),
      weight_(add_parameter("weight", conv_weight("Conv2d", options, options.out_channels, options.in_channels))) {
  if (options.bias) bias_ = add_parameter("bias", initial_bias(options.out_channels, weight_));
}

Tensor Conv2d::forward(const Tensor& x) {
  return conv2d(
      x, weight_, value_or_none(bias_),
      {.stride = options_.stride, .padding = options_.padding, .dilation = options_.dilation, .groups = options_.groups});
}

std::string Conv2d::kind() const { return conv_text("Conv2d", options_); }

ConvTranspose2d::ConvTranspose2d(const ConvTranspose2dOptions& options)
    : options_(options),
      weight_(add_parameter("weight", conv_weight("ConvTranspose2d", options, options.in_channels, options.out_channels))) {
  if (options.bias) bias_ = add_parameter("bias", initial_bias(options.out_channels, weight_));
}

Tensor ConvTranspose2d::forward(const Tensor& x) {
  return conv_transpose2d(x, weight_, value_or_none(bias_),
                          {.stride = options_.stride,
                           .padding = options_.padding,
                           .output_padding = options_.output_padding,
                           .dilation = options_.dilation,
                           .groups = options_.groups});
}

std::string ConvTranspose2d::kind() const { return conv_text("ConvTranspose2d", options_); }

}  // namespace clnet::nn
