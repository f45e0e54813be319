// Naive shape operations: each output element by its coordinates.
#pragma once

#include <functional>

#include "tests/cases/case.h"

namespace clnet::testing {

using Coordinates = std::vector<std::int64_t>;

inline Coordinates coordinates(const Shape& shape, std::int64_t linear) {
  Coordinates at(static_cast<std::size_t>(shape.rank()));
  for (int d = shape.rank(); d-- > 0; linear /= shape[d]) at[static_cast<std::size_t>(d)] = linear % shape[d];
  return at;
}

inline std::int64_t linear_index(const Shape& shape, const Coordinates& at) {
  std::int64_t linear = 0;
  for (int d = 0; d < shape.rank(); ++d) linear = linear * shape[d] + at[static_cast<std::size_t>(d)];
  return linear;
}

/// An array of which each element is made from its coordinates.
inline Array make_array(const Shape& shape, const std::function<double(const Coordinates&)>& element) {
  Array result(shape);
  for (std::int64_t i = 0; i < result.numel(); ++i) result[i] = element(coordinates(shape, i));
  return result;
}

inline Array expand_reference(const Array& x, const Shape& shape) {
  return make_array(shape, [&](const Coordinates& at) {
    Coordinates from(at.end() - x.shape.rank(), at.end());
    for (int d = 0; d < x.shape.rank(); ++d)
      if (x.shape[d] == 1) from[static_cast<std::size_t>(d)] = 0;
    return x[linear_index(x.shape, from)];
  });
}

}  // namespace clnet::testing
