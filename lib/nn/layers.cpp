#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "clnet/error.h"
#include "clnet/nn.h"
#include "lib/exec/record/work.h"

namespace clnet::nn {

namespace {

std::string text(const Pair& pair) { return fmt::format("({}, {})", pair.height, pair.width); }

std::string text(const Padding& p) {
  return p.top == p.bottom && p.left == p.right ? fmt::format("({}, {})", p.top, p.left)
                                                : fmt::format("({}, {}, {}, {})", p.top, p.left, p.bottom, p.right);
}

void require_positive(const char* layer, const char* what, std::int64_t value) {
  if (value < 1) throw Error(fmt::format("{}: {} must be at least 1, not {}", layer, what, value));
}

/// PyTorch's initial bias: uniform within 1 / sqrt(fan_in) of the weight.
Tensor initial_bias(std::int64_t count, const Tensor& weight) {
  const double bound = 1 / std::sqrt(static_cast<double>(weight.numel()) / static_cast<double>(weight.size(0)));
  return init::uniform({count}, -bound, bound);
}

Tensor value_or_none(const std::optional<Parameter>& parameter) { return parameter ? parameter->value() : Tensor{}; }

/// A count that the host knows stays there and costs no kernel.
Tensor one_more(const Tensor& count) {
  const auto known = exec::value_of(count);
  const auto* host = dynamic_cast<const HostValue*>(known.get());
  if (!host) return count + 1.0;
  std::int64_t value;
  std::memcpy(&value, host->bytes.data(), sizeof value);
  return Tensor::from({value + 1}, Shape{});
}

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

Linear::Linear(std::int64_t in_features, std::int64_t out_features, bool bias)
    : weight_([&] {
        require_positive("Linear", "in_features", in_features);
        require_positive("Linear", "out_features", out_features);
        return add_parameter("weight", init::kaiming_uniform({out_features, in_features}));
      }()) {
  if (bias) bias_ = add_parameter("bias", initial_bias(out_features, weight_));
}

Tensor Linear::forward(const Tensor& x) { return linear(x, weight_, value_or_none(bias_)); }

std::string Linear::kind() const {
  const auto& weight = weight_.value();
  return fmt::format("Linear({}, {}{})", weight.size(1), weight.size(0), bias_ ? "" : ", bias=false");
}

std::string MaxPool2d::kind() const {
  return fmt::format("MaxPool2d(kernel_size={}, stride={}, padding={})", text(kernel_size_),
                     text(options_.stride.value_or(kernel_size_)), text(options_.padding));
}

std::string AvgPool2d::kind() const {
  return fmt::format("AvgPool2d(kernel_size={}, stride={}, padding={})", text(kernel_size_),
                     text(options_.stride.value_or(kernel_size_)), text(options_.padding));
}

std::string AdaptiveAvgPool2d::kind() const { return fmt::format("AdaptiveAvgPool2d({})", text(output_size_)); }
std::string AdaptiveMaxPool2d::kind() const { return fmt::format("AdaptiveMaxPool2d({})", text(output_size_)); }

BatchNorm::BatchNorm(std::int64_t num_features, const BatchNormOptions& options) : features_(num_features), options_(options) {
  require_positive("BatchNorm", "num_features", num_features);
  const std::vector<float> ones_row(static_cast<std::size_t>(num_features), 1.0F), zeros_row(ones_row.size(), 0.0F);
  const Shape shape{num_features};
  if (options.affine) {
    weight_ = add_parameter("weight", Tensor::from(ones_row, shape));
    bias_ = add_parameter("bias", Tensor::from(zeros_row, shape));
  }
  if (options.track_running_stats) {
    mean_ = add_buffer("running_mean", Tensor::from(zeros_row, shape));
    var_ = add_buffer("running_var", Tensor::from(ones_row, shape));
    count_ = add_buffer("num_batches_tracked", Tensor::scalar(0, Dtype::i64));
  }
}

Tensor BatchNorm::forward(const Tensor& x) {
  const Tensor weight = value_or_none(weight_), bias = value_or_none(bias_);
  if (!training() && mean_) return batch_norm_inference(x, *mean_, *var_, weight, bias, options_.eps);
  const auto result = batch_norm_training(x, weight, bias, options_.eps);
  if (training() && mean_) {
    const auto blend = [take = options_.momentum](const Tensor& now, const Tensor& batch) {
      return now * (1 - take) + batch * take;
    };
    mean_->follow(result.mean, blend);
    var_->follow(result.var, blend);
    count_->follow(result.mean, [](const Tensor& now, const Tensor&) { return one_more(now); });
  }
  return result.y;
}

void BatchNorm::require_rank(const Tensor& x, const char* name, std::initializer_list<int> ranks) const {
  for (int rank : ranks)
    if (x.rank() == rank && x.size(1) == features_) return;
  throw ShapeError(fmt::format("{}: a layer for {} channels got {}", name, features_, to_string(x.spec())));
}

Tensor BatchNorm1d::forward(const Tensor& x) {
  require_rank(x, "BatchNorm1d", {2, 3});
  return BatchNorm::forward(x);
}
std::string BatchNorm1d::kind() const { return fmt::format("BatchNorm1d({})", features_); }

Tensor BatchNorm2d::forward(const Tensor& x) {
  require_rank(x, "BatchNorm2d", {4});
  return BatchNorm::forward(x);
}
std::string BatchNorm2d::kind() const { return fmt::format("BatchNorm2d({})", features_); }

LayerNorm::LayerNorm(const Shape& normalized_shape, double eps, bool affine) : shape_(normalized_shape), eps_(eps) {
  if (!affine) return;
  const auto count = static_cast<std::size_t>(shape_.numel());
  weight_ = add_parameter("weight", Tensor::from(std::vector<float>(count, 1.0F), shape_));
  bias_ = add_parameter("bias", Tensor::from(std::vector<float>(count, 0.0F), shape_));
}

Tensor LayerNorm::forward(const Tensor& x) {
  bool fits = x.rank() >= shape_.rank();
  for (int d = 1; fits && d <= shape_.rank(); ++d) fits = x.size(-d) == shape_[-d];
  if (!fits) throw ShapeError(fmt::format("LayerNorm: normalises {}, got {}", to_string(shape_), to_string(x.spec())));
  return layer_norm(x, shape_.rank(), value_or_none(weight_), value_or_none(bias_), eps_);
}

std::string LayerNorm::kind() const { return fmt::format("LayerNorm({})", to_string(shape_)); }

Dropout::Dropout(double p) : p_(p) {
  if (!(p >= 0 && p <= 1)) throw Error(fmt::format("Dropout: p must be from 0 to 1, not {}", p));
}

Tensor Dropout::forward(const Tensor& x) { return training() ? dropout(x, p_) : x; }
std::string Dropout::kind() const { return fmt::format("Dropout({})", p_); }

Embedding::Embedding(std::int64_t count, std::int64_t width)
    : weight_([&] {
        require_positive("Embedding", "count", count);
        require_positive("Embedding", "width", width);
        return add_parameter("weight", init::normal({count, width}));
      }()) {}

Tensor Embedding::forward(const Tensor& indices) { return embedding(indices, weight_); }

std::string Embedding::kind() const { return fmt::format("Embedding({}, {})", weight_.value().size(0), weight_.value().size(1)); }

Activation ReLU() { return {"ReLU", relu}; }
Activation LeakyReLU(double negative_slope) {
  return {fmt::format("LeakyReLU({})", negative_slope), [=](const Tensor& x) { return leaky_relu(x, negative_slope); }};
}
Activation ELU(double alpha) {
  return {fmt::format("ELU({})", alpha), [=](const Tensor& x) { return elu(x, alpha); }};
}
Activation GELU(Gelu form) {
  return {"GELU", [=](const Tensor& x) { return gelu(x, form); }};
}
Activation SiLU() { return {"SiLU", silu}; }
Activation Tanh() {
  return {"Tanh", [](const Tensor& x) { return tanh(x); }};
}
Activation Sigmoid() { return {"Sigmoid", sigmoid}; }
Activation Hardswish() { return {"Hardswish", hardswish}; }
Activation Hardsigmoid() { return {"Hardsigmoid", hardsigmoid}; }
Activation Softplus() {
  return {"Softplus", [](const Tensor& x) { return softplus(x); }};
}
Activation Softmax(int dim) {
  return {fmt::format("Softmax({})", dim), [=](const Tensor& x) { return softmax(x, dim); }};
}
Activation LogSoftmax(int dim) {
  return {fmt::format("LogSoftmax({})", dim), [=](const Tensor& x) { return log_softmax(x, dim); }};
}

}  // namespace clnet::nn
