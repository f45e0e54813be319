// Functions of each line along a dimension, for references.
#pragma once

#include <utility>
#include <vector>

#include "tests/cases/case.h"

namespace clnet::testing::reference {

/// The lines of x along a dimension, in the order of the other dimensions.
inline std::vector<std::vector<double>> lines_of(const Array& x, int dim) {
  std::int64_t inner = 1;
  for (int d = dim + 1; d < x.shape.rank(); ++d) inner *= x.shape[d];
  const auto extent = x.shape[dim];
  std::vector<std::vector<double>> lines;
  for (std::int64_t line = 0; line < x.numel() / extent; ++line) {
    const auto base = line / inner * extent * inner + line % inner;
    auto& to = lines.emplace_back();
    for (std::int64_t i = 0; i < extent; ++i) to.push_back(x[base + i * inner]);
  }
  return lines;
}

/// An array of lines along a dimension, of so many elements in place of the shape's.
inline Array of_lines(const std::vector<std::vector<double>>& lines, const Shape& shape, int dim) {
  std::int64_t inner = 1;
  for (int d = dim + 1; d < shape.rank(); ++d) inner *= shape[d];
  const auto extent = static_cast<std::int64_t>(lines.empty() ? 0 : lines[0].size());
  Array x(shape.with(dim, extent));
  for (std::size_t line = 0; line < lines.size(); ++line) {
    const auto l = static_cast<std::int64_t>(line), base = l / inner * extent * inner + l % inner;
    for (std::int64_t i = 0; i < extent; ++i) x[base + i * inner] = lines[line][static_cast<std::size_t>(i)];
  }
  return x;
}

/// The array without a dimension of extent 1.
inline Array without(const Array& x, int dim) {
  auto extents = x.shape.extents();
  extents.erase(extents.begin() + dim);
  return Array(Shape(extents), x.values);
}

/// Values and indices of one element of each line, by a function from a line to an index.
template <class Choose>
Arrays chosen_of_lines(const Array& x, int dim, bool keepdim, Choose choose) {
  std::vector<std::vector<double>> values, indices;
  for (const auto& line : lines_of(x, dim)) {
    const std::size_t at = choose(line);
    values.push_back({line[at]});
    indices.push_back({static_cast<double>(at)});
  }
  Array value = of_lines(values, x.shape, dim), index = of_lines(indices, x.shape, dim);
  if (keepdim) return {value, index};
  return {without(value, dim), without(index, dim)};
}

}  // namespace clnet::testing::reference
