// interpolate: tables of which old pixels a new one is made of, and one operation that goes by them, along two dimensions at
// once. It is linear in x, and its gradient is the same operation with the tables turned round.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/exec/choose/solver.h"
#include "lib/exec/launch/recorder.h"
#include "lib/graph/composition.h"
#include "lib/graph/op.h"
#include "lib/graph/require.h"
#include "lib/ops/as_f32.h"
#include "lib/ops/elementwise/elementwise.h"
#include "lib/ops/loops.h"

namespace clnet {

namespace ops {

namespace {

/// Along one dimension: for each of `to` places `taps` old ones and their weights, all first ones first. Weights of 0 fill up.
struct Taps {
  std::int64_t from = 1, to = 1, taps = 1;
  std::vector<std::int32_t> places{0};
  std::vector<double> weights{1};

  struct Tap {
    std::int64_t place;
    double weight;
  };
  Taps() = default;
  Taps(std::int64_t old_extent, const std::vector<std::vector<Tap>>& of_places)
      : from(old_extent), to(static_cast<std::int64_t>(of_places.size())) {
    for (const auto& place : of_places) taps = std::max(taps, static_cast<std::int64_t>(place.size()));
    places.assign(static_cast<std::size_t>(to * taps), 0);
    weights.assign(places.size(), 0);
    for (std::size_t i = 0; i < of_places.size(); ++i)
      for (std::size_t k = 0; k < static_cast<std::size_t>(taps); ++k) {
        if (of_places[i].empty()) continue;
        const auto at = k * of_places.size() + i;
        // What fills up is read, too: a place that is read anyway.
        places[at] = static_cast<std::int32_t>(of_places[i][std::min(k, of_places[i].size() - 1)].place);
        weights[at] = k < of_places[i].size() ? of_places[i][k].weight : 0.0;
      }
  }

  bool nothing() const { return from == 1 && to == 1 && taps == 1 && weights[0] == 1; }

  /// Whether each old place comes equally often in a row.
  bool repeats() const {
    if (taps != 1 || to % from != 0) return false;
    for (std::int64_t i = 0; i < to; ++i)
      if (places[static_cast<std::size_t>(i)] != i / (to / from)) return false;
    return std::all_of(weights.begin(), weights.end(), [](double weight) { return weight == 1; });
  }

  /// Which new places each old one goes to.
  Taps turned() const {
    std::vector<std::vector<Tap>> back(static_cast<std::size_t>(from));
    for (std::int64_t i = 0; i < to; ++i)
      for (std::int64_t k = 0; k < taps; ++k) {
        const auto at = static_cast<std::size_t>(k * to + i);
        if (weights[at] == 0) continue;
        auto& tap = back[static_cast<std::size_t>(places[at])];
        if (!tap.empty() && tap.back().place == i)
          tap.back().weight += weights[at];
        else
          tap.push_back({i, weights[at]});
      }
    return {to, back};
  }
};

Tensor resampled(const Tensor& x, int dim, std::shared_ptr<const Taps> rows, std::shared_ptr<const Taps> columns);

/// A dimension's table on the device.
struct Axis {
  std::int64_t from, to, taps;
  exec::Ref places, weights;
};
struct ResampleProblem {
  exec::Ref x, y;
  std::int64_t outer;
  Axis rows, columns;
};

constexpr std::int64_t few_taps = 4;  // loops that compilers are to unroll

void record_axis(exec::Ref x, exec::Ref y, std::int64_t outer, const Axis& axis, std::int64_t inner, exec::Recorder& recorder) {
  auto& launch = recorder.kernel("resample_separable", "resample_separable").in("x", x).in("places", axis.places);
  launch.in("weights", axis.weights).out("y", y).args({outer, axis.from, axis.to, inner, axis.taps});
  if (axis.taps <= few_taps) launch.define("TAPS", axis.taps);
  if (inner > 1)
    launch.define("INNER", 1).range({inner, outer * axis.to}, {64, 1});
  else
    launch.range({axis.to, outer}, {64, 1});
  launch.detail(fmt::format("{} x {} to {} x {}", outer, axis.from, axis.to, inner));
}

/// One dimension after the other, the one that makes less of it first.
void lower_separable(const ResampleProblem& p, exec::Recorder& recorder) {
  const bool rows_first = p.rows.to * p.columns.from <= p.rows.from * p.columns.to;
  const Shape between = rows_first ? Shape{p.outer, p.rows.to, p.columns.from} : Shape{p.outer, p.rows.from, p.columns.to};
  const auto part = recorder.temporary({between, computed_in(recorder.spec(p.x).dtype)});
  if (rows_first) record_axis(p.x, part, p.outer, p.rows, p.columns.from, recorder);
  record_axis(rows_first ? part : p.x, rows_first ? p.y : part, p.outer * (rows_first ? p.rows.to : p.rows.from), p.columns, 1,
              recorder);
  if (!rows_first) record_axis(part, p.y, p.outer, p.rows, p.columns.to, recorder);
}

void lower_direct(const ResampleProblem& p, exec::Recorder& recorder) {
  const auto lines = p.outer * p.rows.to;
  auto& launch = recorder.kernel("resample_direct", "resample_direct")
                     .in("x", p.x)
                     .in("places", p.rows.places)
                     .in("weights", p.rows.weights);
  launch.out("y", p.y).args({lines, p.rows.from, p.columns.from, p.rows.to, p.columns.to, p.rows.taps, p.columns.taps});
  if (p.rows.taps <= few_taps) launch.define("ROW_TAPS", p.rows.taps);
  if (p.columns.taps <= few_taps) launch.define("COLUMN_TAPS", p.columns.taps);
  launch.range({p.columns.to, lines}, {64, 1});
  launch.detail(fmt::format("{} x {}x{} to {}x{}", p.outer, p.rows.from, p.columns.from, p.rows.to, p.columns.to));
}

const exec::SolverList<ResampleProblem> solvers{
    "resample",
    {{"separable", exec::accepts_everything<ResampleProblem>, lower_separable,
      [](const ResampleProblem&, const DeviceInfo& device) -> std::optional<std::string> {
        if (!device.prefers_vector_kernels) return "caches serve scattered loads, and one launch is less than two";
        return std::nullopt;
      }},
     {"direct", exec::accepts_everything<ResampleProblem>, lower_direct}}};

/// Inputs: x, the places and the weights of rows' and columns' taps. Rows are dimension `dim`, columns the next one; where `rows`
/// do nothing, only columns, which are `dim` then.
class Resample : public Op {
 public:
  Resample(int dim, std::shared_ptr<const Taps> rows, std::shared_ptr<const Taps> columns)
      : dim_(dim), rows_(std::move(rows)), columns_(std::move(columns)) {}
  std::string_view name() const override { return "resample"; }
  Fields fields() const override {
    return {{"dim", std::int64_t{dim_}}, {"two", two()},
            {"rows", rows_->to},         {"row_taps", rows_->taps},
            {"columns", columns_->to},   {"column_taps", columns_->taps}};
  }

  Specs infer(const Specs& inputs) const override {
    auto shape = inputs[0].shape;
    if (two()) shape = shape.with(dim_, rows_->to);
    return {{shape.with(two() ? dim_ + 1 : dim_, columns_->to), inputs[0].dtype}};
  }
  Tensors vjp(const Tensors&, const Tensors&, const Tensors& gradients) const override {
    const auto turned = [](const Taps& taps) { return std::make_shared<const Taps>(taps.turned()); };
    return {resampled(gradients[0], dim_, turned(*rows_), turned(*columns_)), Tensor{}, Tensor{}};
  }
  void lower(exec::Recorder& recorder) const override {
    const auto& shape = recorder.spec(recorder.input(0)).shape;
    if (recorder.spec(recorder.output()).shape.numel() == 0) return;
    std::int64_t outer = 1, inner = 1;
    for (int d = 0; d < dim_; ++d) outer *= shape[d];
    for (int d = dim_ + (two() ? 2 : 1); d < shape.rank(); ++d) inner *= shape[d];
    const Axis rows{rows_->from, rows_->to, rows_->taps, recorder.input(1), recorder.input(2)};
    const auto behind = rows.to * rows.taps;
    require_loops("interpolate", rows.taps * columns_->taps, recorder.device());
    const Axis columns{columns_->from, columns_->to, columns_->taps, rows.places.at(behind), rows.weights.at(behind)};
    if (two())
      solvers.lower({recorder.input(0), recorder.output(), outer, rows, columns}, recorder.device(), recorder);
    else
      record_axis(recorder.input(0), recorder.output(), outer, columns, inner, recorder);
  }

 private:
  bool two() const { return !rows_->nothing(); }

  int dim_;
  std::shared_ptr<const Taps> rows_, columns_;
};

Tensor resampled(const Tensor& x, int dim, std::shared_ptr<const Taps> rows, std::shared_ptr<const Taps> columns) {
  auto places = rows->places;
  auto weights = rows->weights;
  places.insert(places.end(), columns->places.begin(), columns->places.end());
  weights.insert(weights.end(), columns->weights.begin(), columns->weights.end());
  const Shape shape{static_cast<std::int64_t>(places.size())};
  const Tensor weights_tensor = Tensor::from(weights, shape, computed_in(x.dtype()));
  return apply(std::make_shared<Resample>(dim, std::move(rows), std::move(columns)),
               {x, Tensor::from(places, shape), weights_tensor});
}

/// Keys' kernel: the weight of a pixel at a distance below 2, and which of its kind.
double cubic(double distance, double a) {
  const double d = std::abs(distance);
  if (d < 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

/// What interpolate() does along one dimension: from extent to extent, at so many old pixels per new one.
struct Resize {
  std::int64_t from, to;
  double step;
};

std::vector<Taps::Tap> taps_at(const Resize& axis, std::int64_t i, Interpolation mode, bool align_corners) {
  const auto last = axis.from - 1;
  const auto place = static_cast<double>(i);
  const auto inside = [&](double at) { return std::clamp<std::int64_t>(static_cast<std::int64_t>(at), 0, last); };
  switch (mode) {
    case Interpolation::nearest:
    case Interpolation::nearest_exact: {
      // In float, as in PyTorch: which pixel is the nearest may hang on the rounding.
      const float middle = static_cast<float>(i) + (mode == Interpolation::nearest_exact ? 0.5F : 0.0F);
      return {{inside(std::floor(middle * static_cast<float>(axis.step))), 1}};
    }
    case Interpolation::area: {
      const auto first = i * axis.from / axis.to, end = ((i + 1) * axis.from + axis.to - 1) / axis.to;
      std::vector<Taps::Tap> taps;
      for (auto k = first; k < end; ++k) taps.push_back({k, 1 / static_cast<double>(end - first)});
      return taps;
    }
    case Interpolation::bicubic: {
      const double at = align_corners ? axis.step * place : axis.step * (place + 0.5) - 0.5, first = std::floor(at),
                   t = at - first;
      std::vector<Taps::Tap> taps;
      for (int k = 0; k < 4; ++k) {
        const auto from = inside(first + k - 1);
        const double weight = cubic(t - (k - 1), -0.75);
        if (!taps.empty() && taps.back().place == from)
          taps.back().weight += weight;
        else
          taps.push_back({from, weight});
      }
      return taps;
    }
    default: {
      const double at = align_corners ? axis.step * place : std::max(0.0, axis.step * (place + 0.5) - 0.5);
      const auto first = inside(at);
      const double share = std::clamp(at - static_cast<double>(first), 0.0, 1.0);
      if (first == last || share == 0) return {{first, 1}};
      return {{first, 1 - share}, {first + 1, share}};
    }
  }
}

/// With a kernel that is as wide as a new pixel, and weights that add up to 1 at the edges, too.
std::vector<Taps::Tap> smooth_taps_at(const Resize& axis, std::int64_t i, Interpolation mode) {
  const bool is_cubic = mode == Interpolation::bicubic;
  const double width = std::max(axis.step, 1.0), reach = (is_cubic ? 2 : 1) * width;
  const double centre = axis.step * (static_cast<double>(i) + 0.5);
  const auto first = std::max<std::int64_t>(static_cast<std::int64_t>(std::floor(centre - reach)), 0);
  const auto end = std::min<std::int64_t>(static_cast<std::int64_t>(std::ceil(centre + reach)) + 1, axis.from);
  std::vector<Taps::Tap> taps;
  double sum = 0;
  for (auto k = first; k < end; ++k) {
    const double distance = (static_cast<double>(k) + 0.5 - centre) / width;
    const double weight = is_cubic ? cubic(distance, -0.5) : std::max(0.0, 1 - std::abs(distance));
    if (weight == 0) continue;
    taps.push_back({k, weight});
    sum += weight;
  }
  for (auto& tap : taps) tap.weight /= sum;
  return taps;
}

std::shared_ptr<const Taps> taps_of(const Resize& axis, const InterpolateOptions& options) {
  std::vector<std::vector<Taps::Tap>> places;
  for (std::int64_t i = 0; i < axis.to; ++i)
    places.push_back(options.antialias ? smooth_taps_at(axis, i, options.mode)
                                       : taps_at(axis, i, options.mode, options.align_corners));
  return std::make_shared<const Taps>(axis.from, places);
}

std::string_view name_of(Interpolation mode) {
  constexpr std::string_view names[] = {"nearest", "nearest_exact", "linear", "bilinear", "bicubic", "trilinear", "area"};
  return names[static_cast<std::size_t>(mode)];
}

bool takes_corners(Interpolation mode) {
  return mode == Interpolation::linear || mode == Interpolation::bilinear || mode == Interpolation::bicubic ||
         mode == Interpolation::trilinear;
}

void check(const Tensor& x, const InterpolateOptions& options) {
  require_floating("interpolate", x.spec());
  const int dims = x.rank() - 2;
  const auto mode = options.mode;
  const int wanted = mode == Interpolation::linear                                       ? 1
                     : mode == Interpolation::bilinear || mode == Interpolation::bicubic ? 2
                     : mode == Interpolation::trilinear                                  ? 3
                                                                                         : dims;
  if (dims < 1 || dims > 3 || dims != wanted)
    throw ShapeError(fmt::format("interpolate: {} does not interpolate {}", name_of(mode), to_string(x.spec())));
  if (options.align_corners && !takes_corners(mode))
    throw Error(fmt::format("interpolate: align_corners does not go with {}", name_of(mode)));
  if (options.antialias && mode != Interpolation::bilinear && mode != Interpolation::bicubic)
    throw Error(fmt::format("interpolate: antialias does not go with {}", name_of(mode)));
  const auto count = options.size.size() + options.scale_factor.size();
  if (options.size.empty() == options.scale_factor.empty()) throw Error("interpolate: either size or scale_factor must be given");
  if (count != 1 && count != static_cast<std::size_t>(dims))
    throw Error(fmt::format("interpolate: {} numbers for {} dimensions", count, dims));
  if (options.recompute_scale_factor && !options.size.empty())
    throw Error("interpolate: recompute_scale_factor goes with scale_factor only");
  for (int d = 0; d < dims; ++d)
    if (x.size(d + 2) == 0) throw ShapeError(fmt::format("interpolate: {} has no pixels", to_string(x.spec())));
}

/// What becomes of each dimension.
std::vector<Resize> axes_of(const Tensor& x, const InterpolateOptions& options) {
  constexpr double most = 1 << 30;
  std::vector<Resize> axes;
  for (std::size_t d = 0; d + 2 < static_cast<std::size_t>(x.rank()); ++d) {
    const auto own = [&](const auto& numbers) { return numbers[numbers.size() == 1 ? 0 : d]; };
    Resize axis{x.size(static_cast<int>(d) + 2), 0, 0};
    double factor = 0;
    if (options.size.empty()) {
      factor = own(options.scale_factor);
      const double extent = std::floor(static_cast<double>(axis.from) * factor);
      if (!(extent >= 1 && extent <= most))
        throw ShapeError(fmt::format("interpolate: {} times {} is no extent", axis.from, factor));
      axis.to = static_cast<std::int64_t>(extent);
    } else {
      axis.to = own(options.size);
      if (axis.to < 1 || static_cast<double>(axis.to) > most)
        throw ShapeError(fmt::format("interpolate: {} is no extent", axis.to));
    }
    const bool given = factor > 0 && !options.recompute_scale_factor && options.mode != Interpolation::area;
    if (options.align_corners)
      axis.step = axis.to > 1 ? static_cast<double>(axis.from - 1) / static_cast<double>(axis.to - 1) : 0;
    else
      axis.step = given ? 1 / factor : static_cast<double>(axis.from) / static_cast<double>(axis.to);
    axes.push_back(axis);
  }
  return axes;
}

}  // namespace

}  // namespace ops

namespace ops {

namespace {

Tensor interpolated(const Tensor& x, const InterpolateOptions& options) {
  const auto axes = axes_of(x, options);
  std::vector<std::int64_t> extents{x.size(0), x.size(1)};
  for (const auto& axis : axes) extents.push_back(axis.to);
  const Shape result = shape_of("interpolate", std::move(extents));
  if (result.numel() == 0) return reshape(x, result);
  std::vector<std::shared_ptr<const Taps>> taps;
  for (const auto& axis : axes) taps.push_back(taps_of(axis, options));
  const auto alone = std::make_shared<const Taps>();
  if (std::all_of(taps.begin(), taps.end(), [](const auto& axis) { return axis->repeats(); })) {
    // Broadcasting and its sum are twice as fast as tables.
    std::vector<std::int64_t> apart{x.size(0), x.size(1)}, repeated = apart;
    for (const auto& axis : taps) {
      apart.insert(apart.end(), {axis->from, 1});
      repeated.insert(repeated.end(), {axis->from, axis->to / axis->from});
    }
    return reshape(expand(reshape(x, Shape(apart)), Shape(repeated)), result);
  }
  const auto in_planes = [&](const Tensor& y) {
    if (axes.size() == 1 || taps[axes.size() - 2]->nothing()) return resampled(y, x.rank() - 1, alone, taps.back());
    return resampled(y, x.rank() - 2, taps[axes.size() - 2], taps.back());
  };
  if (axes.size() < 3) return in_planes(x);
  // The depth by itself: the planes behind it are single elements then. First what leaves less between the two steps.
  const auto along_depth = [&](const Tensor& y) { return resampled(y, 2, alone, taps[0]); };
  const auto size = [](const Resize& depth, std::int64_t height, std::int64_t width, std::int64_t Resize::*extent) {
    return static_cast<double>(depth.*extent) * static_cast<double>(height) * static_cast<double>(width);
  };
  const bool depth_first =
      size(axes[0], axes[1].from, axes[2].from, &Resize::to) <= size(axes[0], axes[1].to, axes[2].to, &Resize::from);
  const Tensor y = as_f32(x);
  return cast(depth_first ? in_planes(along_depth(y)) : along_depth(in_planes(y)), x.dtype());
}

}  // namespace

}  // namespace ops

Tensor interpolate(const Tensor& x, const InterpolateOptions& options) {
  require_defined("interpolate", {{"x", x}});
  ops::check(x, options);
  return composed(ops::interpolated(x, options), [&] {
    constexpr std::string_view names[] = {"factor0", "factor1", "factor2"};
    const auto& factors = options.scale_factor;
    Fields fields{{"mode", std::string(ops::name_of(options.mode))},
                  {"align_corners", options.align_corners},
                  {"antialias", options.antialias},
                  {"by_factor", !factors.empty() && !options.recompute_scale_factor && !options.align_corners}};
    for (std::size_t d = 0; !factors.empty() && d + 2 < static_cast<std::size_t>(x.rank()); ++d)
      fields.emplace_back(names[d], factors[factors.size() == 1 ? 0 : d]);
    return Composition{"interpolate", {x}, std::move(fields), {}};
  });
}

}  // namespace clnet
