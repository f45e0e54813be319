#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "clnet/error.h"
#include "clnet/nn.h"
#include "lib/nn/random.h"

namespace clnet::nn::init {

namespace {

double fan_in(const Shape& shape) {
  if (shape.rank() < 2) return static_cast<double>(shape.numel());
  return static_cast<double>(shape.numel()) / static_cast<double>(shape[0]);
}

double fan_out(const Shape& shape) {
  return shape.rank() < 2 ? fan_in(shape) : static_cast<double>(shape.numel()) / static_cast<double>(shape[1]);
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

Tensor xavier_uniform(const Shape& shape, double gain) {
  const double bound = gain * std::sqrt(6 / (fan_in(shape) + fan_out(shape)));
  return uniform(shape, -bound, bound);
}

Tensor xavier_normal(const Shape& shape, double gain) {
  return normal(shape, 0, gain * std::sqrt(2 / (fan_in(shape) + fan_out(shape))));
}

Tensor trunc_normal(const Shape& shape, double mean, double std, double low, double high) {
  // Inverts the cumulative distribution by bisection: no draw is rejected, however narrow the range.
  const auto below = [](double x) { return std::erfc(-x / std::numbers::sqrt2) / 2; };
  if (!(std > 0 && low < high)) throw Error(fmt::format("trunc_normal: std {} from {} to {} is nothing", std, low, high));
  const double first = (low - mean) / std, last = (high - mean) / std, from = below(first), to = below(last);
  const auto draws = draw_uniform(static_cast<std::size_t>(shape.numel()));
  std::vector<float> values(draws.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double wanted = from + draws[i] * (to - from);
    double left = std::max(first, -40.0), right = std::min(last, 40.0);
    for (int k = 0; k < 40; ++k) {
      const double middle = (left + right) / 2;
      (below(middle) < wanted ? left : right) = middle;
    }
    values[i] = static_cast<float>(std::clamp(mean + std * left, low, high));
  }
  return Tensor::from(values, shape);
}

Tensor orthogonal(const Shape& shape, double gain) {
  if (shape.rank() < 2) throw ShapeError(fmt::format("orthogonal: {} is no matrix", to_string(shape)));
  const auto rows = static_cast<std::size_t>(shape[0]), columns = rows == 0 ? 0 : static_cast<std::size_t>(shape.numel()) / rows;
  const bool tall = rows > columns;
  const auto count = tall ? columns : rows, length = tall ? rows : columns;
  const auto drawn = normal({static_cast<std::int64_t>(count), static_cast<std::int64_t>(length)}).to_vector<double>();
  // Gram-Schmidt; each vector is orthogonalized twice, to remove the rounding errors of the first pass.
  std::vector<std::vector<double>> vectors;
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<double> v(drawn.begin() + static_cast<std::ptrdiff_t>(i * length),
                          drawn.begin() + static_cast<std::ptrdiff_t>((i + 1) * length));
    for (int pass = 0; pass < 2; ++pass)
      for (const auto& other : vectors) {
        const double along = std::inner_product(v.begin(), v.end(), other.begin(), 0.0);
        for (std::size_t k = 0; k < length; ++k) v[k] -= along * other[k];
      }
    const double norm = std::sqrt(std::inner_product(v.begin(), v.end(), v.begin(), 0.0));
    for (auto& x : v) x /= norm;
    vectors.push_back(std::move(v));
  }
  std::vector<float> values(rows * columns);
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t k = 0; k < length; ++k)
      values[tall ? k * columns + i : i * columns + k] = static_cast<float>(gain * vectors[i][k]);
  return Tensor::from(values, shape);
}

Tensor constant(const Shape& shape, double value) {
  return Tensor::from(std::vector<float>(static_cast<std::size_t>(shape.numel()), static_cast<float>(value)), shape);
}

}  // namespace clnet::nn::init
