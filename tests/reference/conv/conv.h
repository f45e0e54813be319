// Convolution and transposed convolution of any number of axes by their definitions.
#pragma once

#include <algorithm>
#include <array>

#include "tests/cases/case.h"

namespace clnet::testing {

/// Along one axis.
struct ConvLine {
  std::int64_t stride = 1, before = 0, after = 0, dilation = 1, extra = 0;
};
using ConvLines = std::vector<ConvLine>;

/// The extents of up to three axes, with ones before them.
inline std::array<std::int64_t, 3> three_axes(const Shape& shape) {
  std::array<std::int64_t, 3> extents{1, 1, 1};
  for (int d = 2; d < shape.rank(); ++d) extents[static_cast<std::size_t>(d + 3 - shape.rank())] = shape[d];
  return extents;
}

/// Calls visit(x's index, the weight's, y's) for every product of a convolution of x {n, c, ...} with weight {o, c / groups, ...}
/// to y {n, o, ...}.
template <class Visit>
void each_conv_product(const Shape& x, const Shape& weight, const Shape& y, const ConvLines& lines, std::int64_t groups,
                       Visit visit) {
  const auto in = three_axes(x), kernel = three_axes(weight), out = three_axes(y);
  std::array<ConvLine, 3> by;
  std::copy(lines.begin(), lines.end(), by.end() - static_cast<std::ptrdiff_t>(lines.size()));
  const auto from = [&](std::size_t axis, std::int64_t o, std::int64_t k) {
    const auto i = o * by[axis].stride - by[axis].before + k * by[axis].dilation;
    return i < in[axis] ? i : -1;
  };
  const auto channels = weight[1], group = weight[0] / groups;
  std::int64_t yi = 0;
  for (std::int64_t n = 0; n < y[0]; ++n)
    for (std::int64_t o = 0; o < y[1]; ++o)
      for (std::int64_t od = 0; od < out[0]; ++od)
        for (std::int64_t oh = 0; oh < out[1]; ++oh)
          for (std::int64_t ow = 0; ow < out[2]; ++ow, ++yi)
            for (std::int64_t c = 0; c < channels; ++c)
              for (std::int64_t kd = 0; kd < kernel[0]; ++kd) {
                const auto d = from(0, od, kd);
                for (std::int64_t kh = 0; d >= 0 && kh < kernel[1]; ++kh) {
                  const auto h = from(1, oh, kh);
                  for (std::int64_t kw = 0; h >= 0 && kw < kernel[2]; ++kw) {
                    const auto w = from(2, ow, kw);
                    if (w >= 0)
                      visit((((n * x[1] + o / group * channels + c) * in[0] + d) * in[1] + h) * in[2] + w,
                            (((o * channels + c) * kernel[0] + kd) * kernel[1] + kh) * kernel[2] + kw, yi);
                  }
                }
              }
}

inline void add_channel_bias(Array& y, const Array& bias) {
  if (y.numel() == 0) return;
  const auto plane = y.numel() / (y.size(0) * y.size(1));
  for (std::int64_t i = 0; i < y.numel(); ++i) y[i] += bias[i / plane % y.size(1)];
}

inline Shape conv_output_shape(const Shape& x, const Shape& weight, const ConvLines& lines) {
  std::vector<std::int64_t> extents{x[0], weight[0]};
  for (std::size_t a = 0; a < lines.size(); ++a) {
    const auto& [stride, before, after, dilation, extra] = lines[a];
    const int dim = static_cast<int>(a) + 2;
    extents.push_back((x[dim] + before + after - dilation * (weight[dim] - 1) - 1) / stride + 1);
  }
  return Shape(extents);
}

/// Of x, weight and perhaps bias.
inline Arrays conv_reference(const Arrays& in, const ConvLines& lines, std::int64_t groups) {
  const auto &x = in[0], &weight = in[1];
  Array y(conv_output_shape(x.shape, weight.shape, lines));
  each_conv_product(x.shape, weight.shape, y.shape, lines, groups,
                    [&](auto xi, auto wi, auto yi) { y[yi] += x[xi] * weight[wi]; });
  if (in.size() == 3) add_channel_bias(y, in[2]);
  return {y};
}

/// The gradients of x and weight, from x, weight and y's gradient.
inline Arrays conv_gradients_reference(const Arrays& in, const ConvLines& lines, std::int64_t groups) {
  const auto &x = in[0], &weight = in[1], &g = in[2];
  Array dx(x.shape), dweight(weight.shape);
  each_conv_product(x.shape, weight.shape, g.shape, lines, groups, [&](auto xi, auto wi, auto yi) {
    dx[xi] += g[yi] * weight[wi];
    dweight[wi] += g[yi] * x[xi];
  });
  return {dx, dweight};
}

/// Of x, weight {in, out / groups, ...} and perhaps bias.
inline Arrays conv_transpose_reference(const Arrays& in, const ConvLines& lines, std::int64_t groups) {
  const auto &x = in[0], &weight = in[1];
  std::vector<std::int64_t> extents{x.size(0), weight.size(1) * groups};
  for (std::size_t a = 0; a < lines.size(); ++a) {
    const auto& [stride, before, after, dilation, extra] = lines[a];
    const int dim = static_cast<int>(a) + 2;
    extents.push_back((x.size(dim) - 1) * stride - before - after + dilation * (weight.size(dim) - 1) + 1 + extra);
  }
  Array y{Shape(extents)};
  each_conv_product(y.shape, weight.shape, x.shape, lines, groups,
                    [&](auto yi, auto wi, auto xi) { y[yi] += x[xi] * weight[wi]; });
  if (in.size() == 3) add_channel_bias(y, in[2]);
  return {y};
}

}  // namespace clnet::testing
