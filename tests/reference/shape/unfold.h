// The columns that windows over images see, by definition.
#pragma once

#include "tests/cases/case.h"

namespace clnet::testing::reference {

/// visit(element of the image {N, C, H, W}, element of the columns {N, C kh kw, windows}) for each pair that belongs together.
template <class Visit>
void each_seen(const Shape& image, Pair kernel, const UnfoldOptions& o, const Visit& visit) {
  const auto count = [](std::int64_t extent, std::int64_t size, std::int64_t apart, std::int64_t step, std::int64_t padding) {
    return (extent + 2 * padding - apart * (size - 1) - 1) / step + 1;
  };
  const auto rows = count(image[2], kernel.height, o.dilation.height, o.stride.height, o.padding.height);
  const auto columns = count(image[3], kernel.width, o.dilation.width, o.stride.width, o.padding.width);
  std::int64_t at = 0;
  for (std::int64_t plane = 0; plane < image[0] * image[1]; ++plane)
    for (std::int64_t i = 0; i < kernel.height; ++i)
      for (std::int64_t j = 0; j < kernel.width; ++j)
        for (std::int64_t row = 0; row < rows; ++row)
          for (std::int64_t column = 0; column < columns; ++column, ++at) {
            const auto y = row * o.stride.height + i * o.dilation.height - o.padding.height;
            const auto x = column * o.stride.width + j * o.dilation.width - o.padding.width;
            if (y >= 0 && y < image[2] && x >= 0 && x < image[3]) visit((plane * image[2] + y) * image[3] + x, at);
          }
}

inline Array unfold(const Array& x, Pair kernel, const UnfoldOptions& options, const Shape& columns) {
  Array y(columns);
  each_seen(x.shape, kernel, options, [&](std::int64_t from, std::int64_t to) { y[to] = x[from]; });
  return y;
}

inline Array fold(const Array& columns, Pair kernel, const UnfoldOptions& options, const Shape& image) {
  Array x(image);
  each_seen(image, kernel, options, [&](std::int64_t to, std::int64_t from) { x[to] += columns[from]; });
  return x;
}

}  // namespace clnet::testing::reference
