#include <cmath>
#include <numbers>

#include "clnet/nn.h"
#include "lib/nn/random.h"

namespace clnet::nn::init {

namespace {

double fan_in(const Shape& shape) {
  if (shape.rank() < 2) return static_cast<double>(shape.numel());
  return static_cast<double>(shape.numel()) / static_cast<double>(shape[0]);
}

}  // namespace

Tensor uniform(const Shape& shape, double low, double high) {
  const auto draws = draw_uniform(static_cast<std::size_t>(shape.numel()));
  std::vector<float> values(draws.size());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(low + draws[i] * (high - low));
  return Tensor::from(values, shape);
}

Tensor normal(const Shape& shape, double mean, double std) {
  const auto count = static_cast<std::size_t>(shape.numel());
  const auto draws = draw_uniform(2 * count);
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const double radius = std::sqrt(-2 * std::log(draws[2 * i] + 0x1p-24));
    values[i] = static_cast<float>(mean + std * radius * std::cos(2 * std::numbers::pi * draws[2 * i + 1]));
  }
  return Tensor::from(values, shape);
}

Tensor kaiming_uniform(const Shape& shape, double gain) {
  const double bound = gain * std::sqrt(3 / fan_in(shape));
  return uniform(shape, -bound, bound);
}

Tensor kaiming_normal(const Shape& shape, double gain) { return normal(shape, 0, gain / std::sqrt(fan_in(shape))); }

Tensor xavier_uniform(const Shape& shape) {
  const double fan_out = shape.rank() < 2 ? fan_in(shape) : static_cast<double>(shape.numel()) / static_cast<double>(shape[1]);
  const double bound = std::sqrt(6 / (fan_in(shape) + fan_out));
  return uniform(shape, -bound, bound);
}

}  // namespace clnet::nn::init
