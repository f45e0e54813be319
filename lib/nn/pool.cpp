#include "clnet/nn/pool.h"

#include <fmt/format.h>

#include "lib/nn/layer.h"

namespace clnet::nn {

namespace {

template <class Size, class Options>
std::string pool_text(const char* name, const Size& kernel_size, const Options& options) {
  return fmt::format("{}(kernel_size={}, stride={}, padding={})", name, text(kernel_size),
                     text(options.stride.value_or(kernel_size)), text(options.padding));
}

template <class Result, class Size, class Options>
auto pooling(const Size& kernel_size, const Options& options, Result (*function)(const Tensor&, Size, const Options&)) {
  return [=](const Tensor& x) { return function(x, kernel_size, options); };
}

template <class Size, class Options>
auto unpooling(const Size& kernel_size, const Options& options,
               Tensor (*function)(const Tensor&, const Tensor&, Size, const Options&)) {
  return [=](const Tensor& x, const Tensor& indices) { return function(x, indices, kernel_size, options); };
}

template <class Size, class Options>
std::string lp_text(const char* name, double power, const Size& kernel_size, const Options& options) {
  return fmt::format("{}(norm_type={}, kernel_size={}, stride={})", name, power, text(kernel_size),
                     text(options.stride.value_or(kernel_size)));
}

template <class Size, class Options>
auto lp_pooling(double power, const Size& kernel_size, const Options& options,
                Tensor (*function)(const Tensor&, double, Size, std::optional<Size>, bool)) {
  return [=](const Tensor& x) { return function(x, power, kernel_size, options.stride, options.ceil_mode); };
}

template <class Size>
std::string adaptive_text(const char* name, const Size& output_size) {
  return fmt::format("{}({})", name, text(output_size));
}

template <class Result, class Size>
auto adaptive(const Size& output_size, Result (*function)(const Tensor&, Size)) {
  return [=](const Tensor& x) { return function(x, output_size); };
}

}  // namespace

MaxPool1d::MaxPool1d(std::int64_t kernel_size, const MaxPool1dOptions& options)
    : MaxPool(pool_text("MaxPool1d", kernel_size, options), pooling(kernel_size, options, max_pool1d),
              pooling(kernel_size, options, max_pool1d_with_indices)) {}
MaxPool2d::MaxPool2d(Pair kernel_size, const MaxPool2dOptions& options)
    : MaxPool(pool_text("MaxPool2d", kernel_size, options), pooling(kernel_size, options, max_pool2d),
              pooling(kernel_size, options, max_pool2d_with_indices)) {}
MaxPool3d::MaxPool3d(Triple kernel_size, const MaxPool3dOptions& options)
    : MaxPool(pool_text("MaxPool3d", kernel_size, options), pooling(kernel_size, options, max_pool3d),
              pooling(kernel_size, options, max_pool3d_with_indices)) {}

AvgPool1d::AvgPool1d(std::int64_t kernel_size, const AvgPool1dOptions& options)
    : Pool(pool_text("AvgPool1d", kernel_size, options), pooling(kernel_size, options, avg_pool1d)) {}
AvgPool2d::AvgPool2d(Pair kernel_size, const AvgPool2dOptions& options)
    : Pool(pool_text("AvgPool2d", kernel_size, options), pooling(kernel_size, options, avg_pool2d)) {}
AvgPool3d::AvgPool3d(Triple kernel_size, const AvgPool3dOptions& options)
    : Pool(pool_text("AvgPool3d", kernel_size, options), pooling(kernel_size, options, avg_pool3d)) {}

MaxUnpool1d::MaxUnpool1d(std::int64_t kernel_size, const MaxUnpool1dOptions& options)
    : Unpool(pool_text("MaxUnpool1d", kernel_size, options), unpooling(kernel_size, options, max_unpool1d)) {}
MaxUnpool2d::MaxUnpool2d(Pair kernel_size, const MaxUnpool2dOptions& options)
    : Unpool(pool_text("MaxUnpool2d", kernel_size, options), unpooling(kernel_size, options, max_unpool2d)) {}
MaxUnpool3d::MaxUnpool3d(Triple kernel_size, const MaxUnpool3dOptions& options)
    : Unpool(pool_text("MaxUnpool3d", kernel_size, options), unpooling(kernel_size, options, max_unpool3d)) {}

LPPool1d::LPPool1d(double norm_type, std::int64_t kernel_size, const LPPool1dOptions& options)
    : Pool(lp_text("LPPool1d", norm_type, kernel_size, options), lp_pooling(norm_type, kernel_size, options, lp_pool1d)) {}
LPPool2d::LPPool2d(double norm_type, Pair kernel_size, const LPPool2dOptions& options)
    : Pool(lp_text("LPPool2d", norm_type, kernel_size, options), lp_pooling(norm_type, kernel_size, options, lp_pool2d)) {}
LPPool3d::LPPool3d(double norm_type, Triple kernel_size, const LPPool3dOptions& options)
    : Pool(lp_text("LPPool3d", norm_type, kernel_size, options), lp_pooling(norm_type, kernel_size, options, lp_pool3d)) {}

AdaptiveAvgPool1d::AdaptiveAvgPool1d(std::int64_t output_size)
    : Pool(adaptive_text("AdaptiveAvgPool1d", output_size), adaptive(output_size, adaptive_avg_pool1d)) {}
AdaptiveAvgPool2d::AdaptiveAvgPool2d(Pair output_size)
    : Pool(adaptive_text("AdaptiveAvgPool2d", output_size), adaptive(output_size, adaptive_avg_pool2d)) {}
AdaptiveAvgPool3d::AdaptiveAvgPool3d(Triple output_size)
    : Pool(adaptive_text("AdaptiveAvgPool3d", output_size), adaptive(output_size, adaptive_avg_pool3d)) {}
AdaptiveMaxPool1d::AdaptiveMaxPool1d(std::int64_t output_size)
    : MaxPool(adaptive_text("AdaptiveMaxPool1d", output_size), adaptive(output_size, adaptive_max_pool1d),
              adaptive(output_size, adaptive_max_pool1d_with_indices)) {}
AdaptiveMaxPool2d::AdaptiveMaxPool2d(Pair output_size)
    : MaxPool(adaptive_text("AdaptiveMaxPool2d", output_size), adaptive(output_size, adaptive_max_pool2d),
              adaptive(output_size, adaptive_max_pool2d_with_indices)) {}
AdaptiveMaxPool3d::AdaptiveMaxPool3d(Triple output_size)
    : MaxPool(adaptive_text("AdaptiveMaxPool3d", output_size), adaptive(output_size, adaptive_max_pool3d),
              adaptive(output_size, adaptive_max_pool3d_with_indices)) {}

}  // namespace clnet::nn
