// Convolutions that gather or scatter their windows.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "clnet/ops/conv.h"
#include "clnet/ops/elementwise.h"
#include "clnet/ops/image.h"
#include "clnet/ops/index.h"
#include "clnet/ops/matmul.h"
#include "clnet/ops/shape.h"
#include "lib/onnx/operators.h"
#include "lib/onnx/windows.h"

namespace clnet::onnx {
namespace {

constexpr std::int64_t most_places = 1 << 26;

/// Of each place of a window at each step, the place in a padded image, in rows.
std::vector<std::int64_t> places_of(const Windows& w, const std::vector<std::int64_t>& steps,
                                    const std::vector<std::int64_t>& extents) {
  std::vector<std::int64_t> places{0};
  const auto extend = [&](std::size_t d, const std::vector<std::int64_t>& counts, const std::vector<std::int64_t>& strides) {
    const auto inner = std::accumulate(extents.begin() + static_cast<std::ptrdiff_t>(d) + 1, extents.end(), std::int64_t{1},
                                       std::multiplies<>());
    std::vector<std::int64_t> more;
    for (const auto place : places)
      for (std::int64_t i = 0; i < counts[d]; ++i) more.push_back(place + i * strides[d] * inner);
    places = std::move(more);
  };
  for (std::size_t d = 0; d < w.rank(); ++d) extend(d, w.kernel, w.dilations);
  for (std::size_t d = 0; d < w.rank(); ++d) extend(d, steps, w.strides);
  return places;
}

/// Columns {N, C * places of a window, steps} are added where they come from.
Outputs col2im(const Call& call) {
  const Tensor& x = call.x(0);
  const auto image = call.integers(1), block = call.integers(2);
  const auto rank = image.size();
  if (x.rank() != 3 || rank < 1 || rank != block.size())
    call.fail(
        fmt::format("columns {} of {} extents of the image and {} of the window", to_string(x.shape()), rank, block.size()));
  std::vector<std::int64_t> shape{x.size(0), 1};
  shape.insert(shape.end(), image.begin(), image.end());
  const auto w = Windows::of(call, Shape(shape), block);
  std::vector<std::int64_t> padded, steps;
  std::int64_t elements = 1, window = 1, count = 1;
  for (std::size_t d = 0; d < rank; ++d) {
    padded.push_back(image[d] + w.before[d] + w.after[d]);
    const auto free = padded[d] - (w.kernel[d] - 1) * w.dilations[d] - 1;
    if (free < 0) call.fail(fmt::format("a window of {} in {}", w.kernel[d], padded[d]));
    steps.push_back(free / w.strides[d] + 1);
    for (auto* product : {&elements, &window, &count}) {
      const auto factor = product == &elements ? padded[d] : product == &window ? w.kernel[d] : steps[d];
      if (factor > most_places / *product) call.refuse(fmt::format("an image of {}", fmt::join(image, " by ")));
      *product *= factor;
    }
  }
  if (window > most_places / count || x.size(1) % window != 0 || x.size(2) != count)
    call.fail(fmt::format("columns {} for windows of {} at {} places", to_string(x.shape()), window, count));
  const auto channels = x.size(1) / window;
  const Tensor columns = reshape(x, {x.size(0), channels, window * count});
  Tensor y = index_add(zeros({x.size(0), channels, elements}, x.dtype()), 2, Tensor::from(places_of(w, steps, padded)), columns);
  y = unflatten(y, 2, padded);
  for (std::size_t d = 0; d < rank; ++d) y = slice(y, static_cast<int>(d) + 2, w.before[d], w.before[d] + image[d]);
  return {call.give(y)};
}

/// Each place of a window is moved by an offset of data: windows are sampled, then multiplied with the weight.
Outputs deform_conv(const Call& call) {
  const Tensor &x = call.x(0), &weight = call.x(1);
  Tensor offset = call.x(2);
  if (x.rank() != 4 || weight.rank() != 4 || offset.rank() != 4)
    call.refuse(fmt::format("an input {} and a weight {}", to_string(x.shape()), to_string(weight.shape())));
  const auto w = Windows::of(call, x.shape(), {weight.size(2), weight.size(3)});
  const auto groups = call.attribute("group", std::int64_t{1}), sets = call.attribute("offset_group", std::int64_t{1});
  const auto batch = x.size(0), channels = x.size(1), height = x.size(2), width = x.size(3);
  const auto rows = offset.size(2), columns = offset.size(3), window = w.kernel[0] * w.kernel[1];
  if (groups < 1 || sets < 1 || channels % sets != 0 || channels != weight.size(1) * groups || weight.size(0) % groups != 0 ||
      offset.size(0) != batch || offset.size(1) != 2 * sets * window)
    call.fail(fmt::format("{} groups, {} sets of offsets {} and a weight {} for {}", groups, sets, to_string(offset.shape()),
                          to_string(weight.shape()), to_string(x.shape())));
  // {N, sets, window, rows, columns}: the place in the input by rows and columns.
  offset = reshape(offset, {batch, sets, window, 2, rows, columns});
  const auto places = [&](int d, std::int64_t steps, std::int64_t extent) {
    const auto i = static_cast<std::size_t>(d);
    const Tensor inside = arange(w.kernel[i], static_cast<double>(-w.before[i]), static_cast<double>(w.dilations[i]), x.dtype());
    const Tensor taps = d == 0 ? repeat_interleave(inside, w.kernel[1], 0) : tile(inside, {w.kernel[0]});
    const Tensor begins = arange(steps, 0, static_cast<double>(w.strides[i]), x.dtype());
    const Tensor at = reshape(taps, {window, 1, 1}) + (d == 0 ? reshape(begins, {steps, 1}) : begins);
    // As grid_sample() has it: -1 and 1 are the edges of the input.
    return ((at + select(offset, 3, d)) * 2.0 + 1.0) / static_cast<double>(extent) - 1.0;
  };
  const Tensor grid = stack({places(1, columns, width), places(0, rows, height)}, -1);  // {N, sets, window, rows, columns, 2}
  const Tensor images = reshape(x, {batch * sets, channels / sets, height, width});
  Tensor taken = grid_sample(images, reshape(grid, {batch * sets, window * rows, columns, 2}), {.align_corners = false});
  taken = reshape(taken, {batch, sets, channels / sets, window, rows * columns});
  if (call.has(4)) taken = taken * reshape(call.x(4), {batch, sets, 1, window, rows * columns});
  taken = reshape(taken, {batch, groups, channels / groups * window, rows * columns});
  const Tensor by_group = reshape(weight, {groups, weight.size(0) / groups, channels / groups * window});
  Tensor y = reshape(matmul(by_group, taken), {batch, weight.size(0), rows, columns});
  if (call.has(3)) y = y + reshape(call.x(3), {-1, 1, 1});
  return {call.give(y)};
}

/// A convolution of each channel with what came before it; the last elements are the state for what follows.
Outputs causal_conv(const Call& call) {
  const Tensor &x = call.x(0), &weight = call.x(1);
  if (x.rank() != 3 || weight.rank() != 3 || weight.size(0) != x.size(1) || weight.size(1) != 1 || weight.size(2) < 1)
    call.fail(fmt::format("an input {} and a weight {}", to_string(x.shape()), to_string(weight.shape())));
  const auto kept = weight.size(2) - 1;
  const Shape state{x.size(0), x.size(1), kept};
  if (call.has(3) && !(call.shape(3) == state))
    call.fail(fmt::format("a state {} instead of {}", to_string(call.shape(3)), to_string(state)));
  const Tensor whole = kept == 0 ? x : concat({call.has(3) ? call.x(3) : zeros(state, x.dtype()), x}, 2);
  Tensor y = conv1d(whole, weight, call.optional(2), {.groups = x.size(1)});
  const auto activation = call.attribute("activation", std::string_view("none"));
  if (activation == "silu" || activation == "swish")
    y = silu(y);
  else if (activation != "none")
    call.fail(fmt::format("the activation is \"{}\"", activation));
  return {call.give(y), call.give(slice(whole, 2, whole.size(2) - kept))};
}

}  // namespace

std::vector<Operator> conv_operators() {
  using enum Role;
  return {
      {"CausalConvWithState", 27, causal_conv, {data, weight, data}},
      {"Col2Im", 18, col2im, {data, structure}},
      {"DeformConv", 19, deform_conv, {data, weight, data}},
  };
}

}  // namespace clnet::onnx
