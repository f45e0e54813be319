// Random calls of convolution and pooling of lines and volumes, and of max pooling with indices.
#include <fmt/format.h>

#include "tests/fuzz/generator.h"

namespace clnet::fuzz {

namespace {

/// {N, C, ...} with so many axes, each of at least `least` elements.
Ref grid(Generator& g, int axes, std::int64_t least) {
  if (axes == 2) return g.image(least);
  const auto found = [&](const Ref& ref) {
    const auto& shape = g.shape_of(ref);
    bool fits = is_floating(g.dtype_of(ref)) && shape.rank() == axes + 2 && shape.numel() > 0 && shape[1] <= 8;
    for (int d = 2; fits && d < shape.rank(); ++d) fits = shape[d] >= least;
    return fits;
  };
  const auto x = g.any(found, [&] {
    std::vector<std::int64_t> extents{g.choose().integer(1, 2), g.sizes().of<std::int64_t>({1, 2, 3, 4})};
    for (int a = 0; a < axes; ++a) {
      const auto extent = axes == 1 ? g.sizes().of<std::int64_t>({1, 4, 7, 16, 33}) : g.sizes().of<std::int64_t>({1, 2, 3, 4, 5});
      extents.push_back(std::max(least, extent));
    }
    return g.leaf(Shape(extents), g.float_dtype(), {-2, 2}, g.choose().chance(0.2) ? Fill::grid : Fill::smooth);
  });
  return g.tame(x, 8);
}

std::string options_text(std::int64_t stride, std::int64_t padding, std::int64_t dilation, std::int64_t groups) {
  return fmt::format("{{.stride = {}, .padding = {}, .dilation = {}, .groups = {}}}", stride, padding, dilation, groups);
}

/// With the same options along all axes; a kernel of its own along the depth.
bool add_conv(Generator& g, int axes, bool transposed) {
  auto& choose = g.choose();
  const auto kernel = choose.of<std::int64_t>({1, 2, 3}), depth = choose.of<std::int64_t>({1, 2, 3}),
             stride = choose.of<std::int64_t>({1, 1, 2}), dilation = choose.of<std::int64_t>({1, 1, 2}),
             padding = choose.of<std::int64_t>({0, 0, 1, 2});
  const auto x = grid(g, axes, 1);
  const auto& shape = g.shape_of(x);
  if (shape.numel() == 0) return false;
  const auto channels = shape[1], groups = channels % 2 == 0 && choose.chance(0.3) ? 2 : std::int64_t{1};
  const auto out = groups * g.sizes().of<std::int64_t>({1, 2, 3});
  std::vector<std::int64_t> weight_extents =
      transposed ? std::vector{channels, out / groups} : std::vector{out, channels / groups};
  std::int64_t taps = 1, inputs = 1, outputs = 1;
  for (int a = 0; a < axes; ++a) {
    const auto k = axes == 3 && a == 0 ? depth : kernel, in = shape[a + 2], reach = (k - 1) * dilation + 1;
    const auto extent = transposed ? (in - 1) * stride - 2 * padding + reach : (in + 2 * padding - reach) / stride + 1;
    if (extent < 1 || (!transposed && in + 2 * padding < reach)) return false;
    weight_extents.push_back(k);
    taps *= k;
    inputs *= in;
    outputs *= extent;
  }
  if (!g.fits(shape[0] * out * outputs * depth) || !g.fits(shape.numel() * depth) ||
      shape[0] * out * (channels / groups) * taps * (transposed ? inputs : outputs) > 100000)
    return false;
  const auto weight = g.of_shape(Shape(weight_extents), g.dtype_of(x));
  std::vector<Ref> operands{x, weight};
  const bool biased = choose.chance(0.5);
  if (biased) operands.push_back(g.of_shape({out}, g.dtype_of(x)));
  const double most = g.range(x).size() * g.range(weight).size() * static_cast<double>(channels * taps) + 8;
  const auto name = fmt::format("conv{}{}d", transposed ? "_transpose" : "", axes);
  const auto code =
      fmt::format("{}($0, $1, {}, {})", name, biased ? "$2" : "{}", options_text(stride, padding, dilation, groups));
  g.add(name, code, operands,
        [=](const Tensors& in) {
          const Tensor bias = biased ? in[2] : Tensor{};
          if (axes == 1 && transposed)
            return conv_transpose1d(in[0], in[1], bias,
                                    {.stride = stride, .padding = padding, .dilation = dilation, .groups = groups});
          if (axes == 1)
            return conv1d(in[0], in[1], bias, {.stride = stride, .padding = padding, .dilation = dilation, .groups = groups});
          if (transposed)
            return conv_transpose3d(in[0], in[1], bias,
                                    {.stride = stride, .padding = padding, .dilation = dilation, .groups = groups});
          return conv3d(in[0], in[1], bias, {.stride = stride, .padding = padding, .dilation = dilation, .groups = groups});
        },
        {-most, most});
  return true;
}

/// The windows of a pooling: the same along all axes.
struct Windows {
  std::int64_t kernel, stride, dilation, padding;
  bool ceil_mode;
  std::int64_t reach() const { return (kernel - 1) * dilation + 1; }
  /// What an axis must have: in ceil_mode a window may reach beyond its end by less than a stride; one with gaps might be all
  /// padding then.
  std::int64_t least() const { return std::max<std::int64_t>(1, reach() - (ceil_mode && dilation == 1 ? stride - 1 : 0)); }
};

Windows some_windows(Generator& g, bool gaps) {
  auto& choose = g.choose();
  Windows w{choose.integer(1, 3), choose.integer(1, 3), gaps && choose.chance(0.2) ? 2 : 1, 0, choose.chance(0.3)};
  w.padding = choose.chance(0.3) ? w.reach() / 2 : 0;
  return w;
}

/// Whether the result of windows over x is not too large.
bool small(Generator& g, const Ref& x) {
  std::int64_t elements = g.shape_of(x)[0] * g.shape_of(x)[1];
  for (int d = 2; d < g.shape_of(x).rank(); ++d) elements *= g.shape_of(x)[d] + 2;
  return g.shape_of(x).numel() > 0 && g.fits(elements);
}

std::string size_text(int axes, std::int64_t value) {
  return axes == 1 ? fmt::format("std::int64_t{{{}}}", value) : fmt::format("{}({})", axes == 2 ? "Pair" : "Triple", value);
}

MaxPoolResult max_pool(const Tensor& x, int axes, const Windows& w) {
  if (axes == 1)
    return max_pool1d_with_indices(x, w.kernel,
                                   {.stride = w.stride, .padding = w.padding, .dilation = w.dilation, .ceil_mode = w.ceil_mode});
  if (axes == 2)
    return max_pool2d_with_indices(
        x, w.kernel, {.stride = Pair(w.stride), .padding = w.padding, .dilation = w.dilation, .ceil_mode = w.ceil_mode});
  return max_pool3d_with_indices(
      x, w.kernel, {.stride = Triple(w.stride), .padding = w.padding, .dilation = w.dilation, .ceil_mode = w.ceil_mode});
}

bool add_max_pool(Generator& g, int axes, bool indices) {
  const auto w = some_windows(g, true);
  const auto x = grid(g, axes, w.least());
  if (!small(g, x)) return false;
  const auto name = fmt::format("max_pool{}d{}", axes, indices ? "_with_indices" : "");
  const auto call = fmt::format("{}($0, {}, {{.stride = {}, .padding = {}, .dilation = {}, .ceil_mode = {}}})", name, w.kernel,
                                size_text(axes, w.stride), w.padding, w.dilation, w.ceil_mode);
  if (indices) {
    g.add_all(
        name, fmt::format("[](MaxPoolResult r) {{ return std::vector{{r.y, r.indices}}; }}({})", call), {x},
        [=](const Tensors& in) {
          const auto [y, at] = max_pool(in[0], axes, w);
          return Tensors{y, at};
        },
        g.range(x));
  } else {
    g.add(
        name, call, {x},
        [=](const Tensors& in) {
          if (axes == 1)
            return max_pool1d(in[0], w.kernel,
                              {.stride = w.stride, .padding = w.padding, .dilation = w.dilation, .ceil_mode = w.ceil_mode});
          return max_pool3d(in[0], w.kernel,
                            {.stride = Triple(w.stride), .padding = w.padding, .dilation = w.dilation, .ceil_mode = w.ceil_mode});
        },
        g.range(x));
  }
  return true;
}

bool add_avg_pool(Generator& g, int axes) {
  const auto w = some_windows(g, false);
  const bool include_pad = g.choose().chance(0.7), divided = g.choose().chance(0.3);
  const auto divisor = divided ? std::optional<std::int64_t>(w.kernel + 2) : std::nullopt;
  const auto x = grid(g, axes, w.least());
  if (!small(g, x)) return false;
  const auto name = fmt::format("avg_pool{}d", axes);
  const auto most = g.range(x).size() * (divided ? std::pow(static_cast<double>(w.kernel), axes - 1) : 1);
  g.add(name,
        fmt::format("{}($0, {}, {{.stride = {}, .padding = {}, .ceil_mode = {}, .count_include_pad = {}{}}})", name, w.kernel,
                    size_text(axes, w.stride), w.padding, w.ceil_mode, include_pad,
                    divided ? fmt::format(", .divisor_override = {}", w.kernel + 2) : ""),
        {x},
        [=](const Tensors& in) {
          if (axes == 1)
            return avg_pool1d(in[0], w.kernel,
                              {.stride = w.stride,
                               .padding = w.padding,
                               .ceil_mode = w.ceil_mode,
                               .count_include_pad = include_pad,
                               .divisor_override = divisor});
          return avg_pool3d(in[0], w.kernel,
                            {.stride = Triple(w.stride),
                             .padding = w.padding,
                             .ceil_mode = w.ceil_mode,
                             .count_include_pad = include_pad,
                             .divisor_override = divisor});
        },
        {-most, most});
  return true;
}

/// Of x^2, or of magnitudes.
bool add_lp_pool(Generator& g, int axes) {
  const auto kernel = g.choose().integer(1, 3), stride = g.choose().integer(1, 2);
  const bool ceil_mode = g.choose().chance(0.3), infinite = g.choose().chance(0.2);
  const auto x = grid(g, axes, kernel);
  if (!small(g, x)) return false;
  const double power = infinite ? INFINITY : 2;
  const auto name = fmt::format("lp_pool{}d", axes);
  g.add(name, fmt::format("{}($0, {}, {}, {}, {})", name, infinite ? "INFINITY" : "2", kernel, stride, ceil_mode), {x},
        [=](const Tensors& in) {
          if (axes == 1) return lp_pool1d(in[0], power, kernel, stride, ceil_mode);
          if (axes == 2) return lp_pool2d(in[0], power, kernel, Pair(stride), ceil_mode);
          return lp_pool3d(in[0], power, kernel, Triple(stride), ceil_mode);
        },
        {0, g.range(x).size() * std::pow(static_cast<double>(kernel), 0.5 * axes)});
  return true;
}

/// Any indices, of which some are there twice and some lie outside: all that share one have its gradient, as in PyTorch, which is
/// no slope of anything. Where gradients are followed, each is there once.
bool add_max_unpool(Generator& g, int axes) {
  const auto kernel = g.choose().integer(1, 3);
  const auto x = grid(g, axes, 1);
  const auto shape = g.shape_of(x);
  std::int64_t plane = 1;
  for (int d = 2; d < shape.rank(); ++d) plane *= shape[d] * kernel;
  if (shape.numel() == 0 || !g.fits(shape[0] * shape[1] * plane)) return false;
  const bool any = g.choose().chance(0.5);
  const auto planes = shape[0] * shape[1], count = shape.numel() / planes;
  const auto first = g.sizes().integer(0, plane - count);
  const auto each_once = shape.with(0, 1).with(1, 1);
  std::vector<Ref> inputs{x};
  if (any)
    inputs.push_back(g.leaf(shape, g.choose().of({Dtype::i32, Dtype::i64}), {-1, static_cast<double>(plane)}, Fill::integers));
  const auto name = fmt::format("max_unpool{}d", axes);
  const auto range = g.range(x);
  g.add(name,
        any ? fmt::format("{}(stop_gradient($0), $1, {})", name, kernel)
            : fmt::format("{}($0, expand(reshape(arange({}, {}), {}), {}), {})", name, count, first, to_code(each_once),
                          to_code(shape), kernel),
        inputs,
        [=](const Tensors& in) {
          const Tensor values = any ? stop_gradient(in[0]) : in[0];
          const Tensor at = any ? in[1] : expand(reshape(arange(count, static_cast<double>(first)), each_once), shape);
          if (axes == 1) return max_unpool1d(values, at, kernel);
          if (axes == 2) return max_unpool2d(values, at, kernel);
          return max_unpool3d(values, at, kernel);
        },
        {std::min(range.low, 0.0), std::max(range.high, 0.0)});
  return true;
}

bool add_adaptive(Generator& g, int axes, bool maximum, bool indices) {
  const auto x = grid(g, axes, 1);
  const auto drawn = g.sizes().integer(0, 3), size = drawn == 0 ? -1 : drawn;  // -1: as it is
  if (g.shape_of(x).numel() == 0 || !g.fits(g.shape_of(x)[0] * g.shape_of(x)[1] * 27)) return false;
  const auto name = fmt::format("adaptive_{}_pool{}d{}", maximum ? "max" : "avg", axes, indices ? "_with_indices" : "");
  const auto call = fmt::format("{}($0, {})", name, size);
  if (indices) {
    g.add_all(
        name, fmt::format("[](MaxPoolResult r) {{ return std::vector{{r.y, r.indices}}; }}({})", call), {x},
        [=](const Tensors& in) {
          const auto [y, at] = axes == 1   ? adaptive_max_pool1d_with_indices(in[0], size)
                               : axes == 2 ? adaptive_max_pool2d_with_indices(in[0], size)
                                           : adaptive_max_pool3d_with_indices(in[0], size);
          return Tensors{y, at};
        },
        g.range(x));
    return true;
  }
  g.add(
      name, call, {x},
      [=](const Tensors& in) {
        if (axes == 1) return maximum ? adaptive_max_pool1d(in[0], size) : adaptive_avg_pool1d(in[0], size);
        return maximum ? adaptive_max_pool3d(in[0], size) : adaptive_avg_pool3d(in[0], size);
      },
      g.range(x));
  return true;
}

bool add_global(Generator& g, int axes, bool maximum) {
  const auto x = grid(g, axes, 1);
  if (g.shape_of(x).numel() == 0) return false;
  const auto name = fmt::format("global_{}_pool{}d", maximum ? "max" : "avg", axes);
  g.add(
      name, fmt::format("{}($0)", name), {x},
      [=](const Tensors& in) {
        if (axes == 1) return maximum ? global_max_pool1d(in[0]) : global_avg_pool1d(in[0]);
        return maximum ? global_max_pool3d(in[0]) : global_avg_pool3d(in[0]);
      },
      g.range(x));
  return true;
}

}  // namespace

std::vector<Entry> volume_entries() {
  return {{"conv1d", 1, [](Generator& g) { return add_conv(g, 1, false); }},
          {"conv3d", 1, [](Generator& g) { return add_conv(g, 3, false); }},
          {"conv_transpose1d", 0.5, [](Generator& g) { return add_conv(g, 1, true); }},
          {"conv_transpose3d", 0.5, [](Generator& g) { return add_conv(g, 3, true); }},
          {"max_pool1d", 0.5, [](Generator& g) { return add_max_pool(g, 1, false); }},
          {"max_pool3d", 0.5, [](Generator& g) { return add_max_pool(g, 3, false); }},
          {"max_pool1d_with_indices", 0.3, [](Generator& g) { return add_max_pool(g, 1, true); }},
          {"max_pool2d_with_indices", 0.3, [](Generator& g) { return add_max_pool(g, 2, true); }},
          {"max_pool3d_with_indices", 0.3, [](Generator& g) { return add_max_pool(g, 3, true); }},
          {"max_unpool1d", 0.3, [](Generator& g) { return add_max_unpool(g, 1); }},
          {"max_unpool2d", 0.3, [](Generator& g) { return add_max_unpool(g, 2); }},
          {"max_unpool3d", 0.3, [](Generator& g) { return add_max_unpool(g, 3); }},
          {"avg_pool1d", 0.5, [](Generator& g) { return add_avg_pool(g, 1); }},
          {"avg_pool3d", 0.5, [](Generator& g) { return add_avg_pool(g, 3); }},
          {"lp_pool1d", 0.3, [](Generator& g) { return add_lp_pool(g, 1); }},
          {"lp_pool2d", 0.3, [](Generator& g) { return add_lp_pool(g, 2); }},
          {"lp_pool3d", 0.3, [](Generator& g) { return add_lp_pool(g, 3); }},
          {"adaptive_avg_pool1d", 0.3, [](Generator& g) { return add_adaptive(g, 1, false, false); }},
          {"adaptive_avg_pool3d", 0.3, [](Generator& g) { return add_adaptive(g, 3, false, false); }},
          {"adaptive_max_pool1d", 0.3, [](Generator& g) { return add_adaptive(g, 1, true, false); }},
          {"adaptive_max_pool3d", 0.3, [](Generator& g) { return add_adaptive(g, 3, true, false); }},
          {"adaptive_max_pool1d_with_indices", 0.2, [](Generator& g) { return add_adaptive(g, 1, true, true); }},
          {"adaptive_max_pool2d_with_indices", 0.2, [](Generator& g) { return add_adaptive(g, 2, true, true); }},
          {"adaptive_max_pool3d_with_indices", 0.2, [](Generator& g) { return add_adaptive(g, 3, true, true); }},
          {"global_avg_pool1d", 0.3, [](Generator& g) { return add_global(g, 1, false); }},
          {"global_avg_pool3d", 0.3, [](Generator& g) { return add_global(g, 3, false); }},
          {"global_max_pool1d", 0.3, [](Generator& g) { return add_global(g, 1, true); }},
          {"global_max_pool3d", 0.3, [](Generator& g) { return add_global(g, 3, true); }}};
}

}  // namespace clnet::fuzz
