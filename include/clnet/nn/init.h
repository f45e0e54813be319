// Initial values.
#pragma once

#include "clnet/export.h"
#include "clnet/tensor.h"

namespace clnet::nn {

/// Initial values as torch.nn.init, drawn on the host from the process's generator (manual_seed).
namespace init {
/// Uniform in low..high, and normal.
CLNET_API Tensor uniform(const Shape& shape, double low, double high);
CLNET_API Tensor normal(const Shape& shape, double mean = 0, double std = 1);
/// Uniform in +-gain * sqrt(3 / fan_in), or normal with the deviation gain / sqrt(fan_in) (He et al. 2015). fan_in is the number
/// of weights of one output: the product of all dimensions but the first. The default gain of kaiming_uniform gives PyTorch's
/// initial values of linear and convolution layers, +-1 / sqrt(fan_in).
CLNET_API Tensor kaiming_uniform(const Shape& shape, double gain = 0.5773502691896258);
CLNET_API Tensor kaiming_normal(const Shape& shape, double gain = 1.4142135623730951);
/// Uniform in +-gain * sqrt(6 / (fan_in + fan_out)), or normal with the same deviation (Glorot and Bengio 2010).
CLNET_API Tensor xavier_uniform(const Shape& shape, double gain = 1);
CLNET_API Tensor xavier_normal(const Shape& shape, double gain = 1);
/// Normal, truncated to low..high. Throws Error unless std > 0 and low < high.
CLNET_API Tensor trunc_normal(const Shape& shape, double mean = 0, double std = 1, double low = -2, double high = 2);
/// Orthogonal rows of length gain; orthogonal columns where there are more rows than columns. Rows are the first dimension.
/// Throws ShapeError for fewer than two dimensions.
CLNET_API Tensor orthogonal(const Shape& shape, double gain = 1);
CLNET_API Tensor constant(const Shape& shape, double value);
}  // namespace init

}  // namespace clnet::nn
