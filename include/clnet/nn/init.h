// Initial values.
#pragma once

#include "clnet/export.h"
#include "clnet/tensor.h"

namespace clnet::nn {

/// Initial values, drawn on the host from the process's generator (manual_seed).
namespace init {
CLNET_API Tensor uniform(const Shape& shape, double low, double high);
CLNET_API Tensor normal(const Shape& shape, double mean = 0, double std = 1);
/// Uniform within gain * sqrt(3 / fan_in), fan_in = elements of one output's weights (all dimensions but the first). The default
/// gain gives PyTorch's initial values of linear and convolution layers, +-1 / sqrt(fan_in).
CLNET_API Tensor kaiming_uniform(const Shape& shape, double gain = 0.5773502691896258);
CLNET_API Tensor kaiming_normal(const Shape& shape, double gain = 1.4142135623730951);
/// Uniform within gain * sqrt(6 / (fan_in + fan_out)), and of the same deviation.
CLNET_API Tensor xavier_uniform(const Shape& shape, double gain = 1);
CLNET_API Tensor xavier_normal(const Shape& shape, double gain = 1);
/// Normal where it is from low to high, and nowhere else.
CLNET_API Tensor trunc_normal(const Shape& shape, double mean = 0, double std = 1, double low = -2, double high = 2);
/// Rows (the first dimension; where there are more rows than columns, these) of length gain, at right angles to each other.
CLNET_API Tensor orthogonal(const Shape& shape, double gain = 1);
CLNET_API Tensor constant(const Shape& shape, double value);
}  // namespace init

}  // namespace clnet::nn
