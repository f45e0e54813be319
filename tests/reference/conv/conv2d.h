// Convolution, transposed convolution and their gradients by their definitions.
#pragma once

#include "tests/cases/case.h"

namespace clnet::testing {

/// Calls visit(x's index, the weight's, y's) for every product of a convolution of x {n, c, h, w} to y {n, o, oh, ow}.
template <class Visit>
void each_product(const Shape& x, const Shape& weight, const Shape& y, const Conv2dFuncOptions& options, Visit visit) {
  const auto out = weight[0], in = weight[1], kernel_height = weight[2], kernel_width = weight[3],
             group_out = out / options.groups;
  const auto channels = x[1], height = x[2], width = x[3], y_height = y[2], y_width = y[3];
  for (std::int64_t n = 0; n < x[0]; ++n)
    for (std::int64_t o = 0; o < out; ++o)
      for (std::int64_t c = 0; c < in; ++c)
        for (std::int64_t kh = 0; kh < kernel_height; ++kh)
          for (std::int64_t kw = 0; kw < kernel_width; ++kw)
            for (std::int64_t oy = 0; oy < y_height; ++oy) {
              const auto iy = oy * options.stride.height - options.padding.top + kh * options.dilation.height;
              if (iy < 0 || iy >= height) continue;
              for (std::int64_t ox = 0; ox < y_width; ++ox) {
                const auto ix = ox * options.stride.width - options.padding.left + kw * options.dilation.width;
                if (ix < 0 || ix >= width) continue;
                visit(((n * channels + o / group_out * in + c) * height + iy) * width + ix,
                      ((o * in + c) * kernel_height + kh) * kernel_width + kw, ((n * out + o) * y_height + oy) * y_width + ox);
              }
            }
}

inline void add_bias(Array& y, const Array& bias) {
  const auto plane = y.size(2) * y.size(3);
  for (std::int64_t i = 0; i < y.numel(); ++i) y[i] += bias[i / plane % y.size(1)];
}

inline Shape conv2d_output(const Shape& x, const Shape& weight, const Conv2dFuncOptions& options) {
  const auto& p = options.padding;
  return {x[0], weight[0], (x[2] + p.top + p.bottom - options.dilation.height * (weight[2] - 1) - 1) / options.stride.height + 1,
          (x[3] + p.left + p.right - options.dilation.width * (weight[3] - 1) - 1) / options.stride.width + 1};
}

/// Of x, weight and perhaps bias.
inline Arrays conv2d_reference(const Arrays& in, const Conv2dFuncOptions& options) {
  const auto &x = in[0], &weight = in[1];
  Array y(conv2d_output(x.shape, weight.shape, options));
  each_product(x.shape, weight.shape, y.shape, options, [&](auto xi, auto wi, auto yi) { y[yi] += x[xi] * weight[wi]; });
  if (in.size() == 3) add_bias(y, in[2]);
  return {y};
}

/// The gradients of x and weight, from x, weight and y's gradient.
inline Arrays conv2d_gradients_reference(const Arrays& in, const Conv2dFuncOptions& options) {
  const auto &x = in[0], &weight = in[1], &g = in[2];
  Array dx(x.shape), dweight(weight.shape);
  each_product(x.shape, weight.shape, g.shape, options, [&](auto xi, auto wi, auto yi) {
    dx[xi] += g[yi] * weight[wi];
    dweight[wi] += g[yi] * x[xi];
  });
  return {dx, dweight};
}

/// Of x, weight and perhaps bias.
inline Arrays conv_transpose2d_reference(const Arrays& in, const ConvTranspose2dFuncOptions& options) {
  const auto &x = in[0], &weight = in[1];
  const auto& p = options.padding;
  const auto& s = options.stride;
  const auto height = (x.size(2) - 1) * s.height - p.top - p.bottom + options.dilation.height * (weight.size(2) - 1) + 1 +
                      options.output_padding.height;
  const auto width = (x.size(3) - 1) * s.width - p.left - p.right + options.dilation.width * (weight.size(3) - 1) + 1 +
                     options.output_padding.width;
  Array y({x.size(0), weight.size(1) * options.groups, height, width});
  each_product(y.shape, weight.shape, x.shape, {s, p, options.dilation, options.groups},
               [&](auto yi, auto wi, auto xi) { y[yi] += x[xi] * weight[wi]; });
  if (in.size() == 3) add_bias(y, in[2]);
  return {y};
}

}  // namespace clnet::testing
