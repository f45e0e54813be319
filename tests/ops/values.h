// What many tests of operations make tensors of, and read them as.
#pragma once

#include <cmath>
#include <cstddef>
#include <numeric>
#include <vector>

#include "clnet/ops/random.h"
#include "clnet/tensor.h"

namespace clnet::testing {

using Floats = std::vector<float>;

inline Floats values_of(const Tensor& x) { return x.to_vector<float>(); }

/// Normal numbers that stay the same: each reading of randn() alone would draw others.
inline Tensor drawn_input(const Shape& shape) {
  const Tensor x = randn(shape);
  x.eval();
  return x;
}

/// 0, 1, 2, ...
inline Floats counting(std::size_t count) {
  Floats values(count);
  std::iota(values.begin(), values.end(), 0.0F);
  return values;
}

/// Numbers between -scale and scale.
inline Tensor ramp(const Shape& shape, float scale = 0.1F, float phase = 0.3F) {
  Floats values(static_cast<std::size_t>(shape.numel()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = scale * std::sin(static_cast<float>(i) * 0.7F + phase);
  return Tensor::from(values, shape);
}

}  // namespace clnet::testing
