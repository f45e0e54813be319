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

/// What stands before the options.
template <class Kernel>
struct Sizes {
  const char* name;
  std::int64_t in_channels, out_channels;
  Kernel kernel_size;
};

template <class Kernel, class Options>
std::string conv_text(const Sizes<Kernel>& s, const Options& o) {
  auto result = fmt::format("{}({}, {}, kernel_size={}", s.name, s.in_channels, s.out_channels, text(s.kernel_size));
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

template <class Kernel>
Tensor conv_weight(const Sizes<Kernel>& s, std::int64_t groups, bool transposed) {
  require_positive(s.name, "in_channels", s.in_channels);
  require_positive(s.name, "out_channels", s.out_channels);
  require_positive(s.name, "groups", groups);
  const auto kernel = ops::by_axis(s.kernel_size);
  require_positive(s.name, "kernel_size", *std::min_element(kernel.begin(), kernel.end()));
  if (s.in_channels % groups != 0 || s.out_channels % groups != 0)
    throw Error(fmt::format("{}: in_channels {} and out_channels {} must be divisible by groups {}", s.name, s.in_channels,
                            s.out_channels, groups));
  ops::Extents shape =
      transposed ? ops::Extents{s.in_channels, s.out_channels / groups} : ops::Extents{s.out_channels, s.in_channels / groups};
  shape.insert(shape.end(), kernel.begin(), kernel.end());
  return init::kaiming_uniform(Shape(std::move(shape)));
}

std::optional<std::int64_t> biases_of(std::int64_t out_channels, bool wanted) {
  return wanted ? std::optional(out_channels) : std::nullopt;
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

Conv1d::Conv1d(std::int64_t in_channels, std::int64_t out_channels, std::int64_t kernel_size, const Conv1dOptions& o)
    : Convolution(conv_text(Sizes<std::int64_t>{"Conv1d", in_channels, out_channels, kernel_size}, o),
                  conv_weight(Sizes<std::int64_t>{"Conv1d", in_channels, out_channels, kernel_size}, o.groups, false),
                  biases_of(out_channels, o.bias), convolution(o, clnet::conv1d)) {}
Conv2d::Conv2d(std::int64_t in_channels, std::int64_t out_channels, Pair kernel_size, const Conv2dOptions& o)
    : Convolution(conv_text(Sizes<Pair>{"Conv2d", in_channels, out_channels, kernel_size}, o),
                  conv_weight(Sizes<Pair>{"Conv2d", in_channels, out_channels, kernel_size}, o.groups, false),
                  biases_of(out_channels, o.bias), convolution(o, clnet::conv2d)) {}
Conv3d::Conv3d(std::int64_t in_channels, std::int64_t out_channels, Triple kernel_size, const Conv3dOptions& o)
    : Convolution(conv_text(Sizes<Triple>{"Conv3d", in_channels, out_channels, kernel_size}, o),
                  conv_weight(Sizes<Triple>{"Conv3d", in_channels, out_channels, kernel_size}, o.groups, false),
                  biases_of(out_channels, o.bias), convolution(o, clnet::conv3d)) {}
ConvTranspose1d::ConvTranspose1d(std::int64_t in_channels, std::int64_t out_channels, std::int64_t kernel_size,
                                 const ConvTranspose1dOptions& o)
    : Convolution(conv_text(Sizes<std::int64_t>{"ConvTranspose1d", in_channels, out_channels, kernel_size}, o),
                  conv_weight(Sizes<std::int64_t>{"ConvTranspose1d", in_channels, out_channels, kernel_size}, o.groups, true),
                  biases_of(out_channels, o.bias), transposed(o, clnet::conv_transpose1d)) {}
ConvTranspose2d::ConvTranspose2d(std::int64_t in_channels, std::int64_t out_channels, Pair kernel_size,
                                 const ConvTranspose2dOptions& o)
    : Convolution(conv_text(Sizes<Pair>{"ConvTranspose2d", in_channels, out_channels, kernel_size}, o),
                  conv_weight(Sizes<Pair>{"ConvTranspose2d", in_channels, out_channels, kernel_size}, o.groups, true),
                  biases_of(out_channels, o.bias), transposed(o, clnet::conv_transpose2d)) {}
ConvTranspose3d::ConvTranspose3d(std::int64_t in_channels, std::int64_t out_channels, Triple kernel_size,
                                 const ConvTranspose3dOptions& o)
    : Convolution(conv_text(Sizes<Triple>{"ConvTranspose3d", in_channels, out_channels, kernel_size}, o),
                  conv_weight(Sizes<Triple>{"ConvTranspose3d", in_channels, out_channels, kernel_size}, o.groups, true),
                  biases_of(out_channels, o.bias), transposed(o, clnet::conv_transpose3d)) {}

}  // namespace clnet::nn
