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
  const Options plain;
  if (o.stride != plain.stride) result += ", stride=" + text(o.stride);
  if (o.padding != plain.padding) result += ", padding=" + text(o.padding);
  if constexpr (requires { o.output_padding; })
    if (o.output_padding != plain.output_padding) result += ", output_padding=" + text(o.output_padding);
  if (o.dilation != plain.dilation) result += ", dilation=" + text(o.dilation);
  if (o.groups != 1) result += fmt::format(", groups={}", o.groups);
  if (!o.bias) result += ", bias=false";
  if constexpr (requires { o.padding_mode; })
    if (o.padding_mode != PadMode::constant) result += fmt::format(", padding_mode={}", text(o.padding_mode));
  return result + ")";
}

template <class Options>
Tensor conv_weight(const char* name, const Options& o, std::int64_t outer, std::int64_t inner) {
  require_given(name, "in_channels", o.in_channels);
  require_given(name, "out_channels", o.out_channels);
  require_positive(name, "groups", o.groups);
  const auto kernel = ops::by_axis(o.kernel_size);
  require_given(name, "kernel_size", *std::min_element(kernel.begin(), kernel.end()));
  if (o.in_channels % o.groups != 0 || o.out_channels % o.groups != 0)
    throw Error(fmt::format("{}: in_channels {} and out_channels {} must be divisible by groups {}", name, o.in_channels,
                            o.out_channels, o.groups));
  ops::Extents shape{outer, inner / o.groups};
  shape.insert(shape.end(), kernel.begin(), kernel.end());
  return init::kaiming_uniform(Shape(std::move(shape)));
}

template <class Options>
Tensor weight_of(const char* name, const Options& o) {
  return conv_weight(name, o, o.out_channels, o.in_channels);
}
template <class Options>
Tensor transposed_weight_of(const char* name, const Options& o) {
  return conv_weight(name, o, o.in_channels, o.out_channels);
}

template <class Options>
std::optional<std::int64_t> biases_of(const Options& o) {
  return o.bias ? std::optional(o.out_channels) : std::nullopt;
}

/// A layer's forward pass: `Call` are the operation's options.
template <class Call, class Options>
auto convolution(const Options& o, Tensor (*function)(const Tensor&, const Tensor&, const Tensor&, const Call&)) {
  const bool zeros = o.padding_mode == PadMode::constant;
  const Call call{
      .stride = o.stride, .padding = zeros ? o.padding : decltype(o.padding)(0), .dilation = o.dilation, .groups = o.groups};
  return [=](const Tensor& x, const Tensor& weight, const Tensor& bias) {
    return function(zeros ? x : pad_last(x, o.padding, 0, o.padding_mode), weight, bias, call);
  };
}
template <class Call, class Options>
auto transposed(const Options& o, Tensor (*function)(const Tensor&, const Tensor&, const Tensor&, const Call&)) {
  const Call call{
      .stride = o.stride, .padding = o.padding, .output_padding = o.output_padding, .dilation = o.dilation, .groups = o.groups};
  return [=](const Tensor& x, const Tensor& weight, const Tensor& bias) { return function(x, weight, bias, call); };
}

}  // namespace

Convolution::Convolution(std::string kind, const Tensor& weight, std::optional<std::int64_t> biases, Function function)
    : kind_(std::move(kind)), weight_(add_parameter("weight", weight)), function_(std::move(function)) {
  if (biases) bias_ = add_parameter("bias", initial_bias(*biases, weight_));
}

Tensor Convolution::forward(const Tensor& x) { return function_(x, weight_, value_or_none(bias_)); }

Conv1d::Conv1d(const Conv1dOptions& o)
    : Convolution(conv_text("Conv1d", o), weight_of("Conv1d", o), biases_of(o), convolution(o, clnet::conv1d)) {}
Conv2d::Conv2d(const Conv2dOptions& o)
    : Convolution(conv_text("Conv2d", o), weight_of("Conv2d", o), biases_of(o), convolution(o, clnet::conv2d)) {}
Conv3d::Conv3d(const Conv3dOptions& o)
    : Convolution(conv_text("Conv3d", o), weight_of("Conv3d", o), biases_of(o), convolution(o, clnet::conv3d)) {}

ConvTranspose1d::ConvTranspose1d(const ConvTranspose1dOptions& o)
    : Convolution(conv_text("ConvTranspose1d", o), transposed_weight_of("ConvTranspose1d", o), biases_of(o),
                  transposed(o, clnet::conv_transpose1d)) {}
ConvTranspose2d::ConvTranspose2d(const ConvTranspose2dOptions& o)
    : Convolution(conv_text("ConvTranspose2d", o), transposed_weight_of("ConvTranspose2d", o), biases_of(o),
                  transposed(o, clnet::conv_transpose2d)) {}
ConvTranspose3d::ConvTranspose3d(const ConvTranspose3dOptions& o)
    : Convolution(conv_text("ConvTranspose3d", o), transposed_weight_of("ConvTranspose3d", o), biases_of(o),
                  transposed(o, clnet::conv_transpose3d)) {}

}  // namespace clnet::nn
