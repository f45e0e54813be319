// Convolutions and pools.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "clnet/ops/conv.h"
#include "clnet/ops/index.h"
#include "clnet/ops/pool.h"
#include "clnet/ops/reduce.h"
#include "clnet/ops/shape.h"
#include "lib/onnx/operators.h"
#include "lib/onnx/windows.h"

namespace clnet::onnx {
namespace {

std::vector<std::int64_t> spatial(const Shape& shape) {
  if (shape.rank() < 3) return {};
  return {shape.begin() + 2, shape.end()};
}

Outputs conv(const Call& call) {
  const Tensor &x = call.x(0), &weight = call.x(1), bias = call.optional(2);
  const auto w = Windows::of(call, x.shape(), spatial(weight.shape()));
  const auto groups = call.attribute("group", std::int64_t{1});
  if (spatial(weight.shape()) != w.kernel)
    call.fail(fmt::format("kernel_shape is not that of the weight {}", to_string(weight.shape())));
  return {call.give(convolution(x, weight, bias, w, groups))};
}

/// Without pads and output_padding first: the result of all taps. Then pads cut it, or rows of zeros (and the bias) extend it.
Outputs conv_transpose(const Call& call) {
  const Tensor &x = call.x(0), &weight = call.x(1);
  const auto w = Windows::of(call, x.shape(), spatial(weight.shape()));
  const auto rank = w.rank();
  const auto groups = call.attribute("group", std::int64_t{1});
  auto more = call.integers("output_padding");
  if (more.empty()) more.assign(rank, 0);
  const auto wanted = call.integers("output_shape");
  const auto automatic = call.attribute("auto_pad", std::string_view("NOTSET"));
  if (more.size() != rank || (!wanted.empty() && wanted.size() != rank))
    call.fail("output_padding or output_shape has another rank");
  Tensor y;
  switch (rank) {
    case 1: y = conv_transpose1d(x, weight, {}, {.stride = w.strides[0], .dilation = w.dilations[0], .groups = groups}); break;
    case 2:
      y = conv_transpose2d(x, weight, {},
                           {.stride = Windows::pair(w.strides), .dilation = Windows::pair(w.dilations), .groups = groups});
      break;
    default:
      y = conv_transpose3d(x, weight, {},
                           {.stride = Windows::triple(w.strides), .dilation = Windows::triple(w.dilations), .groups = groups});
  }
  std::vector<std::int64_t> below(static_cast<std::size_t>(x.rank())), above(below);
  for (std::size_t d = 0; d < rank; ++d) {
    const auto dim = static_cast<int>(d) + 2;
    auto first = w.before[d], last = w.after[d];
    const auto whole = y.size(dim) + more[d];
    if (!wanted.empty() || automatic == "SAME_UPPER" || automatic == "SAME_LOWER") {
      const auto target = wanted.empty() ? x.size(dim) * w.strides[d] : wanted[d];
      const auto total = std::max<std::int64_t>(0, whole - target);
      first = automatic == "SAME_UPPER" ? total / 2 : total - total / 2;
      last = whole - target - first;
    }
    const auto extent = whole - first - last;
    if (extent < 1) call.fail(fmt::format("pads {} and {} cut off all of {}", first, last, whole));
    y = slice(y, dim, first, std::min(first + extent, y.size(dim)));
    above[d + 2] = extent - y.size(dim);
  }
  if (std::any_of(above.begin(), above.end(), [](auto extent) { return extent > 0; })) y = pad(y, below, above);
  if (call.has(2)) {
    std::vector<std::int64_t> extents(static_cast<std::size_t>(x.rank()), 1);
    extents[1] = call.shape(2).numel();
    y = y + reshape(call.x(2), extents);
  }
  return {call.give(y)};
}

/// Extents of the padded input that windows reach: less where a remainder is left over, more in ceil_mode. Throws Error where no
/// window fits.
std::vector<std::int64_t> reached(const Call& call, const Shape& shape, const Windows& w) {
  std::vector<std::int64_t> out;
  for (std::size_t d = 0; d < w.rank(); ++d) {
    const auto begins = shape[static_cast<int>(d) + 2] + w.before[d], extent = begins + w.after[d];
    const auto window = (w.kernel[d] - 1) * w.dilations[d] + 1, free = extent - window;
    auto steps = free >= 0 ? free / w.strides[d] : -1;
    if (w.ceil_mode && free > -w.strides[d] && free % w.strides[d] != 0 && (steps + 1) * w.strides[d] < begins) ++steps;
    if (steps < 0) call.fail(fmt::format("a window of {} is larger than the padded input of {}", window, extent));
    out.push_back(steps * w.strides[d] + window);
  }
  return out;
}

/// Padding beyond half of a window, which clnet's pools refuse, is made by hand: as far as windows reach.
Tensor padded(const Call& call, const Tensor& x, Windows& w, double value) {
  if (w.pads_fit()) return x;
  const auto reach = reached(call, x.shape(), w);
  std::vector<std::int64_t> below{0, 0}, above{0, 0};
  for (std::size_t d = 0; d < w.rank(); ++d) {
    below.push_back(w.before[d]);
    above.push_back(std::max<std::int64_t>(0, reach[d] - x.size(static_cast<int>(d) + 2) - w.before[d]));
  }
  w.before.assign(w.rank(), 0);
  w.after.assign(w.rank(), 0);
  w.ceil_mode = false;
  return pad(x, below, above, value);
}

/// A last window of ceil_mode must begin within the input or the padding before it, else it is dropped: as clnet has it.
MaxPoolResult max_pool_of(const Tensor& x, const Windows& w) {
  switch (w.rank()) {
    case 1:
      return max_pool1d_with_indices(
          x, w.kernel[0],
          {.stride = w.strides[0], .padding = w.padding1(), .dilation = w.dilations[0], .ceil_mode = w.ceil_mode});
    case 2:
      return max_pool2d_with_indices(x, Windows::pair(w.kernel),
                                     {.stride = Windows::pair(w.strides),
                                      .padding = w.padding2(),
                                      .dilation = Windows::pair(w.dilations),
                                      .ceil_mode = w.ceil_mode});
    default:
      return max_pool3d_with_indices(x, Windows::triple(w.kernel),
                                     {.stride = Windows::triple(w.strides),
                                      .padding = w.padding3(),
                                      .dilation = Windows::triple(w.dilations),
                                      .ceil_mode = w.ceil_mode});
  }
}

/// ONNX counts elements of the whole tensor, in rows or (storage_order 1) columns; clnet those of one padded plane, in rows.
Tensor tensor_indices(const Call& call, const Tensor& indices, const Shape& padded, const std::vector<std::int64_t>& before) {
  const auto& shape = call.shape(0);
  const bool by_columns = call.attribute("storage_order", std::int64_t{0}) != 0;
  const auto rank = shape.rank() - 2;
  std::vector<std::int64_t> steps(static_cast<std::size_t>(rank), 1);
  for (int d = 1; d < rank; ++d) {
    const auto at = static_cast<std::size_t>(by_columns ? d : rank - 1 - d);
    steps[at] = by_columns ? steps[at - 1] * shape[d + 1] : steps[at + 1] * shape[rank - d + 2];
  }
  Tensor rest = cast(indices, Dtype::i64), place = zeros_like(rest);
  for (int d = rank; d-- > 0;) {
    const auto extent = static_cast<double>(padded[d + 2]);
    const Tensor outer = rest / extent;
    const Tensor at = rest - outer * extent - static_cast<double>(before[static_cast<std::size_t>(d)]);
    place = place + at * static_cast<double>(steps[static_cast<std::size_t>(d)]);
    rest = outer;
  }
  std::vector<std::int64_t> planes(static_cast<std::size_t>(shape.rank()), 1);
  planes[0] = shape[0];
  planes[1] = shape[1];
  const auto extents = spatial(shape);
  const auto plane = std::accumulate(extents.begin(), extents.end(), std::int64_t{1}, std::multiplies<>());
  return place + reshape(arange(shape[0] * shape[1]) * static_cast<double>(plane), planes);
}

Outputs max_pool(const Call& call) {
  Tensor x = is_floating(call.type(0)) ? call.x(0) : cast(call.x(0), Dtype::f32);
  auto w = Windows::of(call, x.shape());
  const auto given = w;
  auto before = w.before;
  x = padded(call, x, w, -std::numeric_limits<double>::infinity());
  for (std::size_t d = 0; d < before.size(); ++d) before[d] -= w.before[d];  // what was made by hand
  // Of what was padded by hand the pool cannot tell that a window begins behind the input.
  const auto reach = reached(call, call.shape(0), given);
  for (std::size_t d = 0; d < reach.size(); ++d) {
    const auto dim = static_cast<int>(d) + 2;
    if (before[d] > 0 || given.after[d] > w.after[d]) x = slice(x, dim, 0, std::min(x.size(dim), reach[d]));
  }
  const auto result = max_pool_of(x, w);
  Outputs out{call.give(result.y)};
  if (call.wants(1)) out.emplace_back(tensor_indices(call, result.indices, x.shape(), before));
  return out;
}

Tensor average(const Tensor& x, const Windows& w, bool counts_padding) {
  switch (w.rank()) {
    case 1:
      return avg_pool1d(
          x, w.kernel[0],
          {.stride = w.strides[0], .padding = w.padding1(), .ceil_mode = w.ceil_mode, .count_include_pad = counts_padding});
    case 2:
      return avg_pool2d(x, Windows::pair(w.kernel),
                        {.stride = Windows::pair(w.strides),
                         .padding = w.padding2(),
                         .ceil_mode = w.ceil_mode,
                         .count_include_pad = counts_padding});
    default:
      return avg_pool3d(x, Windows::triple(w.kernel),
                        {.stride = Windows::triple(w.strides),
                         .padding = w.padding3(),
                         .ceil_mode = w.ceil_mode,
                         .count_include_pad = counts_padding});
  }
}

/// Sums over windows of any dilation: a convolution with ones, channel by channel. `reach` is that of reached().
Tensor window_sums(const Tensor& x, const Windows& w, const std::vector<std::int64_t>& reach) {
  std::vector<std::int64_t> below{0, 0}, above{0, 0}, merged{x.size(0) * x.size(1), 1}, kernel{1, 1};
  for (std::size_t d = 0; d < w.rank(); ++d) {
    below.push_back(w.before[d]);
    above.push_back(std::max<std::int64_t>(0, reach[d] - x.size(static_cast<int>(d) + 2) - w.before[d]));
    kernel.push_back(w.kernel[d]);
  }
  Tensor y = pad(x, below, above);
  for (std::size_t d = 0; d < w.rank(); ++d) y = slice(y, static_cast<int>(d) + 2, 0, reach[d]);
  merged.insert(merged.end(), y.shape().begin() + 2, y.shape().end());
  y = reshape(y, merged);
  const Tensor weight = ones(Shape(kernel), x.dtype());
  auto padded_already = w;
  padded_already.before.assign(w.rank(), 0);
  padded_already.after.assign(w.rank(), 0);
  y = convolution(y, weight, {}, padded_already);
  std::vector<std::int64_t> shape{x.size(0), x.size(1)};
  shape.insert(shape.end(), y.shape().begin() + 2, y.shape().end());
  return reshape(y, shape);
}

Outputs average_pool(const Call& call) {
  const Tensor& x = call.x(0);
  const auto w = Windows::of(call, x.shape());
  const bool counts_padding = call.attribute("count_include_pad", std::int64_t{0}) != 0;
  if (!w.dilated() && w.pads_fit()) return {call.give(average(x, w, counts_padding))};
  const auto reach = reached(call, x.shape(), w);
  Tensor counted = ones_like(x);
  auto counts = w;
  if (counts_padding) {
    std::vector<std::int64_t> below{0, 0}, above{0, 0};
    below.insert(below.end(), w.before.begin(), w.before.end());
    above.insert(above.end(), w.after.begin(), w.after.end());
    counted = pad(counted, below, above, 1);
    // The same windows on the padded input.
    counts.before.assign(w.rank(), 0);
    counts.after.assign(w.rank(), 0);
  }
  return {call.give(window_sums(x, w, reach) / window_sums(counted, counts, reach))};
}

Outputs lp_pool(const Call& call) {
  const Tensor& x = call.x(0);
  const auto w = Windows::of(call, x.shape());
  const auto p = static_cast<double>(call.attribute("p", std::int64_t{2}));
  const Tensor powers = p == 2 ? square(x) : pow(abs(x), p);
  const Tensor sums = window_sums(powers, w, reached(call, x.shape(), w));
  return {call.give(p == 1 ? sums : p == 2 ? sqrt(sums) : pow(sums, 1 / p))};
}

Dims spatial_dims(const Tensor& x) {
  Dims dims;
  for (int d = 2; d < x.rank(); ++d) dims.push_back(d);
  return dims;
}

Outputs global_average(const Call& call) { return {call.give(mean(call.x(0), spatial_dims(call.x(0)), true))}; }
Outputs global_max(const Call& call) { return {call.give(max(call.x(0), spatial_dims(call.x(0)), true))}; }
Outputs global_lp(const Call& call) {
  const auto p = static_cast<double>(call.attribute("p", std::int64_t{2}));
  return {call.give(norm(call.x(0), p, spatial_dims(call.x(0)), true))};
}

/// The inverse of MaxPool with indices of the whole tensor: its elements where they came from, zeros elsewhere.
Outputs max_unpool(const Call& call) {
  const Tensor& x = call.x(0);
  const auto w = Windows::of(call, x.shape());
  std::vector<std::int64_t> extents{x.size(0), x.size(1)};
  for (std::size_t d = 0; d < w.rank(); ++d)
    extents.push_back((x.size(static_cast<int>(d) + 2) - 1) * w.strides[d] + w.kernel[d] - w.before[d] - w.after[d]);
  const Shape own(extents);
  Tensor y = reshape(scatter(zeros({own.numel()}, x.dtype()), 0, reshape(call.x(1), {-1}), reshape(x, {-1})), own);
  if (call.has(2)) {
    // Indices are those of the result without output_shape, which lies at the beginning of a larger one.
    const auto wanted = call.integers(2);
    if (wanted.size() != extents.size()) call.fail("output_shape has another rank");
    const Shape larger(wanted);
    std::vector<std::int64_t> none(extents.size()), more;
    for (int d = 0; d < larger.rank(); ++d) more.push_back(larger[d] - own[d]);
    if (std::any_of(more.begin(), more.end(), [](auto extent) { return extent < 0; }))
      call.fail(fmt::format("output_shape {} is smaller than {}", to_string(larger), to_string(own)));
    y = pad(y, none, more);
  }
  return {call.give(y)};
}

}  // namespace

std::vector<Operator> layer_operators() {
  using enum Role;
  return {
      {"AveragePool", 1, average_pool},
      {"Conv", 1, conv, {data, weight}},
      {"ConvTranspose", 1, conv_transpose, {data, weight}},
      {"GlobalAveragePool", 1, global_average},
      {"GlobalLpPool", 2, global_lp},
      {"GlobalMaxPool", 1, global_max},
      {"LpPool", 2, lp_pool},
      {"MaxPool", 1, max_pool},
      {"MaxUnpool", 9, max_unpool, {data, data, structure}},
  };
}

}  // namespace clnet::onnx
