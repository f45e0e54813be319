// roi_align: the samples of a box are apart along rows and columns, so that their taps are products.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/graph/composition.h"
#include "lib/graph/require.h"
#include "lib/ops/as_f32.h"
#include "lib/ops/elementwise/elementwise.h"
#include "lib/ops/image/sample_taps.h"
#include "lib/ops/index/known.h"

namespace clnet {

namespace ops {

namespace {

/// One side of the boxes in pixels, {K}, in `parts`, each with as many samples as `samples` says, {K}, at most `most`.
struct BoxSides {
  Tensor start, length;
  std::int64_t parts;
  Tensor samples;
  std::int64_t most;
};

/// {K, 2 most, parts}: the pixels before and behind each sample.
AxisTaps box_taps(const BoxSides& side, std::int64_t extent) {
  const auto boxes = side.start.numel(), last = extent - 1;
  const auto of_box = [&](const Tensor& t) { return reshape(t, {boxes, 1, 1, 1}); };
  const Tensor part = of_box(side.length) / static_cast<double>(side.parts), samples = of_box(side.samples);
  const Tensor number = reshape(arange(side.most, 0, 1, side.start.dtype()), {1, side.most, 1, 1});
  const Tensor at = of_box(side.start) + reshape(arange(side.parts, 0, 1, side.start.dtype()), {1, 1, 1, side.parts}) * part +
                    (number + 0.5) * part / samples;
  const Tensor counts =
      logical_and(logical_and(greater_equal(at, -1.0), less_equal(at, static_cast<double>(extent))), less(number, samples));
  const Tensor place = clamp(at, 0, static_cast<double>(last)), first = floor(place), share = place - first;
  const Tensor both = concat({first, minimum(first + 1.0, static_cast<double>(last))}, 2);
  const Tensor weights = concat({1.0 - share, share}, 2) / samples;
  AxisTaps taps = axis_taps(both, where(counts, weights, 0.0), extent);
  const Shape shape{boxes, 2 * side.most, side.parts};
  taps.inside = logical_and(taps.inside, counts);
  for (auto* tensor : {&taps.places, &taps.inside, &taps.weights}) *tensor = reshape(*tensor, shape);
  return taps;
}

}  // namespace

}  // namespace ops

using namespace ops;

Tensor roi_align(const Tensor& x, const Tensor& boxes, Pair output_size, const RoiAlignOptions& options) {
  constexpr std::string_view op = "roi_align";
  require_defined(op, {{"x", x}, {"boxes", boxes}});
  require_floating(op, x.spec());
  require_same_dtype(op, x.spec(), boxes.spec());
  if (x.rank() != 4 || boxes.rank() != 2 || boxes.size(1) != 5)
    throw ShapeError(fmt::format("{}: x {} and boxes {} must be {{N, C, H, W}} and {{K, 5}}", op, to_string(x.shape()),
                                 to_string(boxes.shape())));
  if (x.size(2) == 0 || x.size(3) == 0) throw ShapeError(fmt::format("{}: {} has no pixels", op, to_string(x.spec())));
  if (output_size.height < 1 || output_size.width < 1)
    throw ShapeError(fmt::format("{}: {} x {} places", op, output_size.height, output_size.width));
  const auto count = boxes.size(0);
  const Shape result{count, x.size(1), output_size.height, output_size.width};
  if (result.numel() == 0 || x.size(0) == 0) return zeros(result, x.dtype());
  const Tensor wide = as_f32(stop_gradient(boxes));
  const auto column = [&](std::int64_t which) { return reshape(slice(wide, 1, which, which + 1), {count}); };
  const auto side = [&](std::int64_t first, std::int64_t parts) {
    const Tensor start = column(first) * options.spatial_scale - (options.aligned ? 0.5 : 0.0);
    const Tensor end = column(first + 2) * options.spatial_scale - (options.aligned ? 0.5 : 0.0);
    const Tensor length = options.aligned ? end - start : maximum(end - start, 1.0);
    if (options.sampling_ratio > 0)
      return BoxSides{start, length, parts, full({count}, static_cast<double>(options.sampling_ratio), wide.dtype()),
                      options.sampling_ratio};
    require_known(op);
    constexpr float too_many = 1 << 20;
    float most = 0;
    const auto samples = ceil(length / static_cast<double>(parts)).to_vector<float>();
    for (const auto each : samples) {
      if (!(each < too_many)) throw Error(fmt::format("{}: a box of {} samples along a side of a place", op, each));
      most = std::max(most, each);
    }
    return BoxSides{start, length, parts, cast(Tensor::from(samples), wide.dtype()), static_cast<std::int64_t>(most)};
  };
  const auto rows = side(2, output_size.height), columns = side(1, output_size.width);
  if (rows.most == 0 || columns.most == 0) return zeros(result, x.dtype());
  AxisTaps row_taps = box_taps(rows, x.size(2)), column_taps = box_taps(columns, x.size(3));
  const auto along = 2 * rows.most, across = 2 * columns.most, height = rows.parts, width = columns.parts;
  for (auto* part : {&row_taps.places, &row_taps.inside, &row_taps.weights}) *part = reshape(*part, {count, along, 1, height, 1});
  for (auto* part : {&column_taps.places, &column_taps.inside, &column_taps.weights})
    *part = reshape(*part, {count, 1, across, 1, width});
  const Tensor image = reshape(cast(column(0), Dtype::i32), {count, 1, 1, 1, 1});
  const Tensor y = reshape(sampled(op, x, {row_taps, column_taps}, image, {count, along * across, height * width}), result);
  return composed(y, [&] {
    return Composition{op,
                       {x, boxes},
                       {{"height", output_size.height},
                        {"width", output_size.width},
                        {"scale", options.spatial_scale},
                        {"samples", options.sampling_ratio},
                        {"aligned", options.aligned}},
                       {}};
  });
}

}  // namespace clnet
