// Random calls of convolution and pooling.
#include <fmt/format.h>

#include <algorithm>

#include "tests/fuzz/generator.h"

namespace clnet::fuzz {

namespace {

std::int64_t window(std::int64_t kernel, std::int64_t dilation) { return (kernel - 1) * dilation + 1; }

bool add_conv(Generator& g, bool transposed) {
  auto& choose = g.choose();
  const auto kh = choose.of<std::int64_t>({1, 1, 2, 3, 3, 3, 5}), kw = choose.chance(0.8) ? kh : choose.of<std::int64_t>({1, 3});
  const auto stride = choose.of<std::int64_t>({1, 1, 1, 2, 3}), dilation = choose.of<std::int64_t>({1, 1, 1, 2});
  const auto padding = choose.of<std::int64_t>({0, 0, 1, 1, 2});
  const auto x = g.image(1);
  const auto& shape = g.shape_of(x);
  const auto channels = shape[1];
  const auto groups = channels > 1 && choose.chance(0.3) ? (choose.chance(0.5) ? channels : channels % 2 == 0 ? 2 : 1) : 1;
  const auto out = groups * g.sizes().of<std::int64_t>({1, 2, 3, 4, 8});
  if (shape.numel() == 0) return false;
  std::int64_t oh, ow;
  const auto spread = [&](std::int64_t in, std::int64_t k) { return (in - 1) * stride - 2 * padding + window(k, dilation); };
  const auto gathered = [&](std::int64_t in, std::int64_t k) { return (in + 2 * padding - window(k, dilation)) / stride + 1; };
  if (transposed) {
    oh = spread(shape[2], kh);
    ow = spread(shape[3], kw);
  } else {
    if (shape[2] + 2 * padding < window(kh, dilation) || shape[3] + 2 * padding < window(kw, dilation)) return false;
    oh = gathered(shape[2], kh);
    ow = gathered(shape[3], kw);
  }
  const auto products = shape[0] * out * channels / groups * kh * kw * (transposed ? shape[2] * shape[3] : oh * ow);
  if (oh < 1 || ow < 1 || !g.fits(shape[0] * out * oh * ow) || products > 200000) return false;
  const Shape weight_shape = transposed ? Shape{channels, out / groups, kh, kw} : Shape{out, channels / groups, kh, kw};
  if (!g.fits(weight_shape.numel())) return false;
  const auto weight = g.of_shape(weight_shape, g.dtype_of(x));
  std::vector<Ref> inputs{x, weight};
  if (choose.chance(0.5)) inputs.push_back(g.of_shape({out}, g.dtype_of(x)));
  const bool biased = inputs.size() == 3;
  const double most = g.range(x).size() * g.range(weight).size() * static_cast<double>(channels * kh * kw) + 8;
  const auto operands = biased ? "$0, $1, $2" : "$0, $1, {}";
  if (transposed) {
    const ConvTranspose2dFuncOptions options{.stride = stride, .padding = padding, .dilation = dilation, .groups = groups};
    g.add("conv_transpose2d",
          fmt::format("conv_transpose2d({}, {{.stride = {}, .padding = {}, .dilation = {}, .groups = {}}})", operands, stride,
                      padding, dilation, groups),
          inputs, [=](const Tensors& in) { return conv_transpose2d(in[0], in[1], biased ? in[2] : Tensor{}, options); },
          {-most, most});
  } else {
    const Conv2dFuncOptions options{.stride = stride, .padding = padding, .dilation = dilation, .groups = groups};
    g.add("conv2d",
          fmt::format("conv2d({}, {{.stride = {}, .padding = {}, .dilation = {}, .groups = {}}})", operands, stride, padding,
                      dilation, groups),
          inputs, [=](const Tensors& in) { return conv2d(in[0], in[1], biased ? in[2] : Tensor{}, options); }, {-most, most});
  }
  return true;
}

/// A convolution, one by channel and 1x1, with what ends each: three that may become one kernel, of whole vectors of channels.
bool add_strips(Generator& g) {
  auto& choose = g.choose();
  const auto channels = choose.of<std::int64_t>({16, 16, 32, 48}), out = g.sizes().of<std::int64_t>({1, 3, 8, 16, 17, 32});
  const auto kernel = choose.of<std::int64_t>({1, 1, 3}), stride = choose.of<std::int64_t>({1, 1, 2});
  // What lies between may have more elements than a value may: then nothing else reads it.
  const auto small = [&](const Shape& x) {
    const auto products = x[0] * x[2] * x[3] * channels * (x[1] * kernel * kernel + 9 + out);
    return x.numel() > 0 && products <= 400000;
  };
  auto x = g.image(1);
  // What is narrow stays apart.
  if (!small(g.shape_of(x)) || (g.dtype_of(x) != Dtype::f32 && choose.chance(0.8))) {
    const auto n = g.sizes().integer(1, 2), c = g.sizes().integer(1, 6), h = g.sizes().integer(1, 12),
               w = g.sizes().integer(1, 12);
    x = g.leaf({n, c, h, w}, Dtype::f32);
  }
  const auto shape = g.shape_of(x);
  if (!small(shape)) return false;
  const auto dtype = g.dtype_of(x);
  const auto conv = [&](const Ref& of, const Shape& weight_shape, const Conv2dFuncOptions& options) {
    const auto weight = g.of_shape(weight_shape, dtype);
    std::vector<Ref> inputs{of, weight};
    const bool biased = choose.chance(0.3);
    if (biased) inputs.push_back(g.of_shape({weight_shape[0]}, dtype));
    const double most =
        g.range(of).size() * g.range(weight).size() * static_cast<double>(weight_shape.numel() / weight_shape[0]) + 8;
    return g.add("conv2d",
                 fmt::format("conv2d($0, $1, {}, {{.stride = {}, .padding = {}, .groups = {}}})", biased ? "$2" : "{}",
                             options.stride.height, options.padding.top, options.groups),
                 inputs, [=](const Tensors& in) { return conv2d(in[0], in[1], biased ? in[2] : Tensor{}, options); },
                 {-most, most});
  };
  const auto finished = [&](Ref of) {
    if (choose.chance(0.5)) {
      const auto scale = g.of_shape({channels, 1, 1}, dtype);
      const double most = g.range(of).size() * g.range(scale).size();
      of = g.add("operator*", "$0 * $1", {of, scale}, [](const Tensors& in) { return in[0] * in[1]; }, {-most, most});
    }
    return g.add("hardtanh", "hardtanh($0, -1, 1)", {of}, [](const Tensors& in) { return hardtanh(in[0], -1, 1); }, {-1, 1});
  };
  const auto first = finished(conv(x, {channels, shape[1], kernel, kernel}, {.padding = kernel / 2}));
  const auto second = finished(conv(first, {channels, 1, 3, 3}, {.stride = stride, .padding = 1, .groups = channels}));
  const auto third = conv(second, {out, channels, 1, 1}, {});
  if (g.shape_of(third) == shape && choose.chance(0.7)) {
    const double most = g.range(third).size() + g.range(x).size();
    g.add("operator+", "$0 + $1", {third, x}, [](const Tensors& in) { return in[0] + in[1]; }, {-most, most});
  }
  return true;
}

bool add_pool(Generator& g, bool maximum) {
  auto& choose = g.choose();
  const auto kernel = choose.integer(1, 3), stride = choose.integer(1, 3);
  const auto dilation = maximum && choose.chance(0.2) ? std::int64_t{2} : std::int64_t{1};
  const auto padding = choose.chance(0.3) ? window(kernel, dilation) / 2 : 0;
  const bool ceil_mode = choose.chance(0.3), include_pad = choose.chance(0.7), divided = choose.chance(0.2);
  // In ceil_mode a window may reach beyond the end by less than a stride; one with gaps might be all padding then.
  const auto beyond = ceil_mode && dilation == 1 ? stride - 1 : 0;
  const auto x = g.image(std::max<std::int64_t>(1, window(kernel, dilation) - beyond));
  if (g.shape_of(x).numel() == 0 ||
      !g.fits(g.shape_of(x)[0] * g.shape_of(x)[1] * (g.shape_of(x)[2] + 2) * (g.shape_of(x)[3] + 2)))
    return false;
  if (maximum) {
    const MaxPool2dOptions options{.stride = Pair(stride), .padding = padding, .dilation = dilation, .ceil_mode = ceil_mode};
    g.add(
        "max_pool2d",
        fmt::format("max_pool2d($0, {}, {{.stride = Pair({}), .padding = {}, .dilation = {}, .ceil_mode = {}}})", kernel, stride,
                    padding, dilation, ceil_mode),
        {x}, [=](const Tensors& in) { return max_pool2d(in[0], kernel, options); }, g.range(x));
  } else {
    const AvgPool2dOptions options{.stride = Pair(stride),
                                   .padding = padding,
                                   .ceil_mode = ceil_mode,
                                   .count_include_pad = include_pad,
                                   .divisor_override = divided ? std::optional(kernel * kernel + 1) : std::nullopt};
    g.add(
        "avg_pool2d",
        fmt::format("avg_pool2d($0, {}, {{.stride = Pair({}), .padding = {}, .ceil_mode = {}, .count_include_pad = {}{}}})",
                    kernel, stride, padding, ceil_mode, include_pad,
                    divided ? fmt::format(", .divisor_override = {}", kernel * kernel + 1) : ""),
        {x}, [=](const Tensors& in) { return avg_pool2d(in[0], kernel, options); }, g.range(x));
  }
  return true;
}

bool add_adaptive(Generator& g, bool maximum) {
  const auto x = g.image(1);
  // -1: as it is.
  const auto extent = [&](std::int64_t drawn) { return drawn == 0 ? -1 : drawn; };
  const auto height = extent(g.sizes().integer(0, 4)), width = extent(g.sizes().integer(0, 4));
  if (g.shape_of(x).numel() == 0 || !g.fits(g.shape_of(x).numel() * 16)) return false;
  const auto name = maximum ? "adaptive_max_pool2d" : "adaptive_avg_pool2d";
  g.add(
      name, fmt::format("{}($0, {{{}, {}}})", name, height, width), {x},
      [=](const Tensors& in) {
        return maximum ? adaptive_max_pool2d(in[0], {height, width}) : adaptive_avg_pool2d(in[0], {height, width});
      },
      g.range(x));
  return true;
}

bool add_global(Generator& g, bool maximum) {
  const auto x = g.image(1);
  if (g.shape_of(x).numel() == 0) return false;
  g.add(
      maximum ? "global_max_pool2d" : "global_avg_pool2d", maximum ? "global_max_pool2d($0)" : "global_avg_pool2d($0)", {x},
      [=](const Tensors& in) { return maximum ? global_max_pool2d(in[0]) : global_avg_pool2d(in[0]); }, g.range(x));
  return true;
}

}  // namespace

std::vector<Entry> image_entries() {
  return {{"conv2d", 3, [](Generator& g) { return add_conv(g, false); }},
          // Much of what a program may have besides keeps the three apart.
          {"conv2d", 8, add_strips},
          {"conv_transpose2d", 1, [](Generator& g) { return add_conv(g, true); }},
          {"max_pool2d", 1.5, [](Generator& g) { return add_pool(g, true); }},
          {"avg_pool2d", 1.5, [](Generator& g) { return add_pool(g, false); }},
          {"adaptive_avg_pool2d", 0.7, [](Generator& g) { return add_adaptive(g, false); }},
          {"adaptive_max_pool2d", 0.7, [](Generator& g) { return add_adaptive(g, true); }},
          {"global_avg_pool2d", 0.5, [](Generator& g) { return add_global(g, false); }},
          {"global_max_pool2d", 0.5, [](Generator& g) { return add_global(g, true); }}};
}

}  // namespace clnet::fuzz
