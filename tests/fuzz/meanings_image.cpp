// What convolution and pooling mean, with their gradients.
#include <algorithm>
#include <cmath>

#include "tests/fuzz/interpret.h"
#include "tests/reference/conv/conv2d.h"
#include "tests/reference/pool/pool2d.h"

namespace clnet::fuzz {

using namespace testing;

namespace {

Conv2dFuncOptions conv_options(const Call& call) {
  const auto stride = call.list("stride"), padding = call.list("padding"), dilation = call.list("dilation");
  return {.stride = {stride[0], stride[1]},
          .padding = {padding[0], padding[1], padding[2], padding[3]},
          .dilation = {dilation[0], dilation[1]},
          .groups = call.integer("groups")};
}

/// The slices that a kernel sees along the depth of a volume.
struct DepthWindows {
  std::int64_t depth, out, kernel, stride, before, dilation;
};

/// Of a convolution of volumes; none of one of images.
std::optional<DepthWindows> windows_of(const Call& call) {
  const auto list = call.list("depth");
  if (list.empty()) return {};
  return DepthWindows{list[0], list[1], list[2], list[3], list[4], list[5]};
}

/// Slices of volumes as channels of images, or (`fold`) their sums where they came from.
Array unfolded(const Array& from, const Shape& to, const DepthWindows& w, bool fold) {
  const auto& images = fold ? from.shape : to;
  const auto channels = images[1] / w.kernel, inner = images[2] * images[3];
  Array y(to);
  for (std::int64_t image = 0; image < images[0]; ++image)
    for (std::int64_t c = 0; c < channels; ++c)
      for (std::int64_t k = 0; k < w.kernel; ++k) {
        const auto slice = image % w.out * w.stride - w.before + k * w.dilation;
        if (slice < 0 || slice >= w.depth) continue;
        const auto at = ((image * channels + c) * w.kernel + k) * inner,
                   volume = ((image / w.out * channels + c) * w.depth + slice) * inner;
        for (std::int64_t i = 0; i < inner; ++i) y[(fold ? volume : at) + i] += from[(fold ? at : volume) + i];
      }
  return y;
}

Shape images_of(const Shape& volumes, const DepthWindows& w) {
  return {volumes[0] * w.out, volumes[1] * w.kernel, volumes[3], volumes[4]};
}

/// Calls visit(place in x, in weight, in y) for all products. Slices of a volume are images one after the other in x, and rows of
/// images under one another in y.
template <class Visit>
void each_product_of_slices(const Call& call, const Shape& x, const Shape& weight, const Shape& y, Visit visit) {
  const auto slices = call.integer("slices"), channels = y[1], height = y[2] / slices, pixels = height * y[3];
  each_product(x, weight, Shape{x[0], channels, height, y[3]}, conv_options(call), [&](auto xi, auto wi, auto yi) {
    const auto image = yi / pixels / channels, channel = yi / pixels % channels;
    const auto plane = (image / slices * channels + channel) * slices + image % slices;
    visit(xi, wi, plane * pixels + yi % pixels);
  });
}

Arrays conv2d(const Call& call) {
  Array y(call.shape());
  const auto windows = windows_of(call);
  const auto& weight = call.in[1];
  const Array x = windows ? unfolded(call.in[0], images_of(call.in[0].shape, *windows), *windows, false) : call.in[0];
  each_product_of_slices(call, x.shape, weight.shape, y.shape, [&](auto xi, auto wi, auto yi) { y[yi] += x[xi] * weight[wi]; });
  if (call.in.size() == 3) add_bias(y, call.in[2]);
  return {y};
}

Arrays conv2d_backward_data(const Call& call) {
  const auto windows = windows_of(call);
  Array dx(windows ? images_of(call.shape(), *windows) : call.shape());
  const auto &g = call.in[0], &weight = call.in[1];
  each_product_of_slices(call, dx.shape, weight.shape, g.shape, [&](auto xi, auto wi, auto yi) { dx[xi] += g[yi] * weight[wi]; });
  return {windows ? unfolded(dx, call.shape(), *windows, true) : dx};
}

Arrays conv2d_backward_weights(const Call& call) {
  Array dweight(call.shape());
  const auto &x = call.in[0], &g = call.in[1];
  each_product(x.shape, dweight.shape, g.shape, conv_options(call),
               [&](auto xi, auto wi, auto yi) { dweight[wi] += x[xi] * g[yi]; });
  return {dweight};
}

constexpr double winograd_slack = 8;

/// Winograd's transforms add up neighbours and take them away again: where a result is smaller than those of its plane, their
/// rounding errors are its own. Only kernels of 3 x 3 in steps of 1 are transformed.
template <Arrays (*apply)(const Call&)>
Array terms_of_planes(const Call& call) {
  Call sizes{call.node, call.in};
  for (auto& operand : sizes.in)
    for (auto& value : operand.values) value = std::fabs(value);
  Array terms = apply(sizes)[0];
  const auto kernel = call.node.op->name() == "conv2d_backward_weights" ? call.shape() : call.input_shape(1);
  const auto is_one = [&](const char* field) {
    const auto numbers = call.list(field);
    return std::all_of(numbers.begin(), numbers.end(), [](auto number) { return number == 1; });
  };
  const bool transformed =
      kernel[-1] == 3 && kernel[-2] == 3 && is_one("stride") && is_one("dilation") && call.integer("groups") == 1;
  const auto plane = static_cast<std::size_t>(terms.size(-1) * terms.size(-2));
  for (std::size_t first = 0; first < terms.values.size(); first += plane) {
    double most = 0;
    for (std::size_t i = 0; i < plane; ++i) most = std::max(most, terms.values[first + i]);
    for (std::size_t i = 0; i < plane; ++i) terms.values[first + i] = transformed ? most * winograd_slack : 0;
  }
  return terms;
}

struct Pool {
  PoolAxis vertical, horizontal;
  std::int64_t height, width, out_height, out_width;
};

Pool pool_of(const Call& call) {
  const auto input = call.list("input"), output = call.list("output"), kernel = call.list("kernel"), stride = call.list("stride"),
             padding = call.list("padding"), dilation = call.list("dilation");
  const bool adaptive = call.flag("adaptive");
  const auto axis = [&](std::size_t d) {
    return PoolAxis{.kernel = kernel[d],
                    .stride = stride[d],
                    .before = padding[d],
                    .after = padding[d + 2],
                    .dilation = dilation[d],
                    .adaptive = adaptive ? output[d] : 0};
  };
  return {axis(0), axis(1), input[0], input[1], output[0], output[1]};
}

/// Calls visit(the window's number, its positions inside the plane, how many count to the edge of the padding) for one plane.
template <class Visit>
void each_window(const Pool& pool, Visit visit) {
  std::int64_t output = 0;
  for (std::int64_t oh = 0; oh < pool.out_height; ++oh)
    for (std::int64_t ow = 0; ow < pool.out_width; ++ow, ++output) {
      std::vector<std::int64_t> inside;
      std::int64_t padded = 0;
      for (auto ih : pool.vertical.window(oh, pool.height))
        for (auto iw : pool.horizontal.window(ow, pool.width)) {
          if (ih >= 0 && ih < pool.height && iw >= 0 && iw < pool.width) inside.push_back(ih * pool.width + iw);
          if (ih < pool.height + pool.vertical.after && iw < pool.width + pool.horizontal.after) ++padded;
        }
      visit(output, inside, padded);
    }
}

/// Outputs: the largest elements, and where in their plane they lie; the plane's size where a window is all padding.
Arrays max_pool2d(const Call& call) {
  const auto pool = pool_of(call);
  const auto plane = pool.height * pool.width, out_plane = pool.out_height * pool.out_width;
  Array y(call.shape()), index(call.shape());
  for (std::int64_t p = 0; p < call.shape()[0] * call.shape()[1]; ++p)
    each_window(pool, [&](std::int64_t output, const std::vector<std::int64_t>& inside, std::int64_t) {
      auto& best = y[p * out_plane + output];
      auto& at = index[p * out_plane + output];
      best = -INFINITY;
      at = static_cast<double>(plane);
      for (auto i : inside) {
        const double value = call.in[0][p * plane + i];
        if (at != static_cast<double>(plane) && !(value > best) && !std::isnan(value)) continue;
        best = value;
        at = static_cast<double>(i);
      }
    });
  return {y, index};
}

Arrays max_pool2d_backward(const Call& call) {
  const auto pool = pool_of(call);
  const auto plane = pool.height * pool.width, out_plane = pool.out_height * pool.out_width;
  Array dx(call.shape());
  for (std::int64_t i = 0; i < call.in[0].numel(); ++i) {
    const auto at = static_cast<std::int64_t>(call.in[0][i]);
    if (at < plane) dx[i / out_plane * plane + at] += call.in[1][i];
  }
  return {dx};
}

Arrays avg_pool2d(const Call& call, bool backward) {
  const auto pool = pool_of(call);
  const bool include_pad = call.flag("count_include_pad");
  const auto plane = pool.height * pool.width, out_plane = pool.out_height * pool.out_width;
  Array result(call.shape());
  for (std::int64_t p = 0; p < call.shape()[0] * call.shape()[1]; ++p)
    each_window(pool, [&](std::int64_t output, const std::vector<std::int64_t>& inside, std::int64_t padded) {
      const auto divisor = call.integer("divisor");
      const auto count = divisor != 0                             ? divisor
                         : pool.vertical.adaptive || !include_pad ? static_cast<std::int64_t>(inside.size())
                                                                  : padded;
      for (auto i : inside) {
        const auto at = p * plane + i, out = p * out_plane + output;
        result[backward ? at : out] += call.in[0][backward ? out : at] / static_cast<double>(count);
      }
    });
  return {result};
}

Arrays unfold_depth(const Call& call, bool fold) {
  const DepthWindows windows{call.integer("depth"),  call.integer("out"),    call.integer("kernel"),
                             call.integer("stride"), call.integer("before"), call.integer("dilation")};
  return {unfolded(call.in[0], call.shape(), windows, fold)};
}

Arrays max_unpool(const Call& call) {
  const auto from = call.input_shape(0)[1], to = call.integer("outputs");
  Array y(call.shape());
  for (std::int64_t i = 0; i < call.in[0].numel(); ++i) {
    const auto at = static_cast<std::int64_t>(call.in[1][i]);
    if (at >= 0 && at < to) y[i / from * to + at] = call.in[0][i];
  }
  return {y};
}

}  // namespace

Meanings image_meanings() {
  // Winograd's transforms cost digits; the others sum in blocks.
  return {{"conv2d", {conv2d, false, winograd_slack, terms_of_planes<conv2d>}},
          {"conv2d_backward_data", {conv2d_backward_data, false, winograd_slack, terms_of_planes<conv2d_backward_data>}},
          {"conv2d_backward_weights", {conv2d_backward_weights, false, winograd_slack, terms_of_planes<conv2d_backward_weights>}},
          {"unfold_depth", {[](const Call& call) { return unfold_depth(call, false); }, true}},
          {"fold_depth", {[](const Call& call) { return unfold_depth(call, true); }}},
          {"max_unpool", {max_unpool, true}},
          {"max_pool2d", {max_pool2d, true}},
          {"max_pool2d_backward", {max_pool2d_backward}},
          {"avg_pool2d", {[](const Call& call) { return avg_pool2d(call, false); }}},
          {"avg_pool2d_backward", {[](const Call& call) { return avg_pool2d(call, true); }}}};
}

}  // namespace clnet::fuzz
