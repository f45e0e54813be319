// Three operations that are each other's gradients: sums of taps, the weights' gradient, and the image's, which index_add makes.
#include "lib/ops/image/sample_taps.h"

#include <fmt/format.h>

#include <algorithm>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/exec/launch/recorder.h"
#include "lib/graph/op.h"
#include "lib/graph/require.h"
#include "lib/ops/as_f32.h"
#include "lib/ops/elementwise/elementwise.h"
#include "lib/ops/index/index_add.h"
#include "lib/ops/loops.h"
#include "lib/ops/rows.h"

namespace clnet::ops {

namespace {

void record_taps(exec::Recorder& recorder, bool dot) {
  const auto &x = recorder.spec(recorder.input(0)).shape, &places = recorder.spec(recorder.input(1)).shape;
  constexpr std::int64_t together = 64;
  const bool chunks = !dot && recorder.device().prefers_vector_kernels;
  const auto lines = places[0] * (dot ? places[1] : chunks ? 1 : x[1]);
  if (recorder.spec(recorder.output()).shape.numel() == 0) return;
  require_loops("sample_taps", dot ? x[1] : places[1], recorder.device());
  auto& launch = recorder.kernel("sample_taps", "sample_taps").in("x", recorder.input(0)).in("places", recorder.input(1));
  if (dot) launch.define("DOT", 1);
  if (chunks) launch.define("CHUNK", together);
  launch.in(dot ? "g" : "weights", recorder.input(2)).out("y", recorder.output());
  launch.args({lines, x[1], x[2], places[1], places[2], x[0] * x[2]});
  chunks ? launch.range({ceil_div(places[2], together), lines}, {1, 1}) : launch.range({places[2], lines}, {64, 1});
  launch.detail(fmt::format("{} of {} taps of {}", lines, places[1], to_string(x)));
}

/// Inputs: x {N, C, Q}, places and weights {R, T, P}.
class SampleTaps : public Op {
 public:
  std::string_view name() const override { return "sample_taps"; }
  Precision precision() const override { return Precision::own; }
  Specs infer(const Specs& inputs) const override {
    const auto &x = inputs[0], &places = inputs[1];
    return {{Shape{places.shape[0], x.shape[1], places.shape[2]}, x.dtype}};
  }
  Tensors vjp(const Tensors& inputs, const Tensors& outputs, const Tensors& gradients) const override;
  void lower(exec::Recorder& recorder) const override { record_taps(recorder, false); }
};

/// The weights' gradient. Inputs: x {N, C, Q}, places {R, T, P}, the samples' gradient {R, C, P}.
class TapsDot : public Op {
 public:
  std::string_view name() const override { return "sample_taps_dot"; }
  Precision precision() const override { return Precision::own; }
  Specs infer(const Specs& inputs) const override { return {{inputs[1].shape, computed_in(inputs[0].dtype)}}; }
  Tensors vjp(const Tensors& inputs, const Tensors& outputs, const Tensors& gradients) const override;
  void lower(exec::Recorder& recorder) const override { record_taps(recorder, true); }
};

/// The gradient of x {N, C, Q}, in x's dtype.
Tensor added_taps(const Tensor& x, const Tensor& places, const Tensor& weights, const Tensor& g) {
  const auto images = x.size(0), channels = x.size(1), pixels = x.size(2), all = images * pixels;
  const auto rows = places.size(0), taps = places.size(1), outputs = places.size(2);
  const Tensor by_place = reshape(permute(as_f32(g), {0, 2, 1}), {rows, 1, outputs, channels});
  // A negative place counts from the end elsewhere.
  const Tensor at = where(less(places, 0.0), scalar_like(static_cast<double>(all), places), places);
  // Taps in parts, where all together would be too many for one tensor.
  constexpr std::int64_t most = std::int64_t{1} << 28;
  const auto at_once = std::clamp<std::int64_t>(most / std::max<std::int64_t>(1, rows * outputs * channels), 1, taps);
  Tensor sums;
  for (std::int64_t first = 0; first < taps; first += at_once) {
    const auto count = std::min(at_once, taps - first);
    const auto part_of = [&](const Tensor& all_taps) { return count == taps ? all_taps : narrow(all_taps, 1, first, count); };
    const Tensor each =
        reshape(by_place * reshape(part_of(weights), {rows, count, outputs, 1}), {rows * count * outputs, channels});
    const Tensor part = added_at(each, 0, reshape(part_of(at), {rows * count * outputs}), false, {all, channels});
    sums = sums.defined() ? sums + part : part;
  }
  return cast(permute(reshape(sums, {images, pixels, channels}), {0, 2, 1}), x.dtype());
}

Tensors SampleTaps::vjp(const Tensors& inputs, const Tensors&, const Tensors& gradients) const {
  const Tensor &x = inputs[0], &places = inputs[1], &g = gradients[0];
  return {added_taps(x, places, inputs[2], g), {}, clnet::apply(std::make_shared<TapsDot>(), {x, places, g})};
}

Tensors TapsDot::vjp(const Tensors& inputs, const Tensors&, const Tensors& gradients) const {
  const Tensor &x = inputs[0], &places = inputs[1], &g = inputs[2], &v = gradients[0];
  return {added_taps(x, places, v, g), {}, cast(clnet::apply(std::make_shared<SampleTaps>(), {x, places, v}), g.dtype())};
}

}  // namespace

AxisTaps axis_taps(const Tensor& places, const Tensor& weights, std::int64_t extent) {
  const Tensor inside = logical_and(greater_equal(places, 0.0), less_equal(places, static_cast<double>(extent - 1)));
  return {cast(where(inside, places, 0.0), Dtype::i32), inside, weights};
}

Tensor sampled(std::string_view op, const Tensor& x, const std::vector<AxisTaps>& axes, const Tensor& image, const Shape& taps) {
  const auto images = x.size(0), channels = x.size(1);
  if (taps.numel() == 0 || channels == 0) return zeros({taps[0], channels, taps[2]}, x.dtype());
  Tensor place = image, weights, inside;
  std::int64_t pixels = 1;
  for (std::size_t d = 0; d < axes.size(); ++d) {
    const auto extent = x.size(static_cast<int>(d) + 2);
    pixels *= extent;
    place = place * static_cast<double>(extent) + axes[d].places;
    weights = d == 0 ? axes[d].weights : weights * axes[d].weights;
    inside = d == 0 ? axes[d].inside : logical_and(inside, axes[d].inside);
  }
  const auto shape = broadcast(place.shape(), weights.shape(), op);
  const Tensor places = where(inside, place, static_cast<double>(images * pixels));
  return clnet::apply(
      std::make_shared<SampleTaps>(),
      {reshape(x, {images, channels, pixels}), reshape(expand(places, shape), taps), reshape(expand(weights, shape), taps)});
}

}  // namespace clnet::ops
