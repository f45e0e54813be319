// grid_sample and affine_grid. Places and weights of pixels are graph over the grid, so that gradients go to it.
#include <fmt/format.h>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/graph/composition.h"
#include "lib/graph/require.h"
#include "lib/ops/as_f32.h"
#include "lib/ops/elementwise/elementwise.h"
#include "lib/ops/image/sample_taps.h"

namespace clnet {

namespace ops {

namespace {

/// Places mirrored at both ends of `extent` pixels: at the centres of the last ones, or at their edges.
Tensor mirrored(const Tensor& places, std::int64_t extent, bool align_corners) {
  const double low = align_corners ? 0 : -0.5, span = static_cast<double>(align_corners ? extent - 1 : extent);
  if (span == 0) return places * 0.0;
  const Tensor distance = abs(places - low), rest = fmod(distance, span);
  const Tensor odd = eq(fmod(floor(distance / span), 2.0), 1.0);
  return where(odd, span - rest, rest) + low;
}

Tensor within(const Tensor& places, std::int64_t extent, const GridSampleOptions& options) {
  if (options.padding == GridPadding::zeros) return places;
  const bool mirrors = options.padding == GridPadding::reflection;
  return clamp(mirrors ? mirrored(places, extent, options.align_corners) : places, 0, static_cast<double>(extent - 1));
}

/// Keys' kernel with a = -3/4: the weight of a pixel at a distance from 1 to 2, and from 0 to 1.
Tensor keys_far(const Tensor& d) { return ((d * -0.75 + 3.75) * d - 6.0) * d + 3.0; }
Tensor keys_near(const Tensor& d) { return (d * 1.25 - 2.25) * d * d + 1.0; }

/// Of coordinates {N, 1, P} from -1 to 1: {N, taps, P}.
AxisTaps grid_taps(const Tensor& coordinates, std::int64_t extent, const GridSampleOptions& options) {
  const auto size = static_cast<double>(extent);
  const Tensor at = options.align_corners ? (coordinates + 1.0) * ((size - 1) / 2) : (coordinates + 1.0) * (size / 2) - 0.5;
  switch (options.mode) {
    case Interpolation::nearest: return axis_taps(round(within(at, extent, options)), ones_like(at), extent);
    case Interpolation::bicubic: {
      const Tensor first = floor(at), t = at - first;
      const Tensor places = concat({first - 1.0, first, first + 1.0, first + 2.0}, 1);
      const Tensor weights = concat({keys_far(t + 1.0), keys_near(t), keys_near(1.0 - t), keys_far(2.0 - t)}, 1);
      return axis_taps(floor(within(places, extent, options)), weights, extent);
    }
    default: {
      const Tensor inner = within(at, extent, options), first = floor(inner), t = inner - first;
      return axis_taps(concat({first, first + 1.0}, 1), concat({1.0 - t, t}, 1), extent);
    }
  }
}

/// The number of pixels of {N, C, ...}.
std::int64_t image_size(const Shape& shape) {
  std::int64_t count = 1;
  for (int d = 2; d < shape.rank(); ++d) count *= shape[d];
  return count;
}

/// The places of `extent` pixels from -1 to 1, along dimension `dim` of `dims` behind the first.
Tensor centres(std::int64_t extent, bool align_corners, int dim, int dims, Dtype dtype) {
  const double last = align_corners ? (extent > 1 ? 1 : 0) : 1 - 1 / static_cast<double>(extent);
  std::vector<std::int64_t> extents(static_cast<std::size_t>(dims) + 2, 1);
  extents[static_cast<std::size_t>(dim) + 1] = extent;
  return reshape(linspace(-last, last, extent, dtype), extents);
}

}  // namespace

}  // namespace ops

using namespace ops;

Tensor grid_sample(const Tensor& x, const Tensor& grid, const GridSampleOptions& options) {
  constexpr std::string_view op = "grid_sample";
  require_defined(op, {{"x", x}, {"grid", grid}});
  require_floating(op, x.spec());
  require_same_dtype(op, x.spec(), grid.spec());
  const int axes = x.rank() - 2;
  if ((axes != 2 && axes != 3) || grid.rank() != x.rank() || grid.size(0) != x.size(0) || grid.size(-1) != axes)
    throw ShapeError(
        fmt::format("{}: x {} and grid {} must be {{N, C, H, W}} and {{N, h, w, 2}}, or {{N, C, D, H, W}} and {{N, d, "
                    "h, w, 3}}",
                    op, to_string(x.shape()), to_string(grid.shape())));
  if (image_size(x.shape()) == 0) throw ShapeError(fmt::format("{}: {} has no pixels", op, to_string(x.spec())));
  const auto mode = options.mode;
  if (mode != Interpolation::nearest && mode != Interpolation::bilinear && mode != Interpolation::bicubic)
    throw Error(fmt::format("{}: the mode must be bilinear, nearest or bicubic", op));
  const auto images = x.size(0);
  auto extents = grid.shape().extents();
  extents.pop_back();
  extents.insert(extents.begin() + 1, x.size(1));
  const Shape shape(extents);
  if (shape.numel() == 0) return zeros(shape, x.dtype());
  const auto places = image_size(shape);
  const Tensor wide = reshape(as_f32(grid), {images, places, axes});
  // Each dimension's taps have one of their own; the grid's first coordinate is of the last dimension.
  std::vector<AxisTaps> along;
  std::int64_t taps = 1;
  for (int d = 0; d < axes; ++d) {
    const auto which = axes - 1 - d;
    along.push_back(grid_taps(reshape(slice(wide, 2, which, which + 1), {images, 1, places}), x.size(d + 2), options));
    const auto count = along.back().weights.size(1);
    taps *= count;
    std::vector<std::int64_t> own(static_cast<std::size_t>(axes) + 2, 1);
    own.front() = images;
    own[static_cast<std::size_t>(d) + 1] = count;
    own.back() = places;
    for (auto* part : {&along.back().places, &along.back().inside, &along.back().weights}) *part = reshape(*part, own);
  }
  std::vector<std::int64_t> ones_behind(static_cast<std::size_t>(axes) + 2, 1);
  ones_behind.front() = images;
  const Tensor image = reshape(arange(images, 0, 1, Dtype::i32), ones_behind);
  return composed(reshape(sampled(op, x, along, image, {images, taps, places}), shape), [&] {
    constexpr std::string_view paddings[] = {"zeros", "border", "reflection"};
    const std::string_view name = mode == Interpolation::nearest   ? "nearest"
                                  : mode == Interpolation::bicubic ? "bicubic"
                                                                   : "bilinear";
    return Composition{op,
                       {x, grid},
                       {{"mode", std::string(name)},
                        {"padding", std::string(paddings[static_cast<std::size_t>(options.padding)])},
                        {"align_corners", options.align_corners}},
                       {}};
  });
}

Tensor affine_grid(const Tensor& theta, const Shape& size, bool align_corners) {
  constexpr std::string_view op = "affine_grid";
  require_defined(op, {{"theta", theta}});
  require_floating(op, theta.spec());
  const int dims = size.rank() - 2;
  if ((dims != 2 && dims != 3) || theta.shape() != Shape{size[0], dims, dims + 1})
    throw ShapeError(
        fmt::format("{}: theta {} is not {{N, 2, 3}} or {{N, 3, 4}} for size {}", op, to_string(theta.shape()), to_string(size)));
  // The first coordinate is of the last dimension.
  const Tensor wide = as_f32(theta);
  std::vector<std::int64_t> column(static_cast<std::size_t>(dims) + 2, 1);
  column.front() = size[0];
  column.back() = dims;
  const auto factor = [&](std::int64_t which) { return reshape(slice(wide, 2, which, which + 1), column); };
  Tensor grid = factor(dims);
  for (int d = 0; d < dims; ++d)
    grid = grid + factor(d) * centres(size[size.rank() - 1 - d], align_corners, dims - 1 - d, dims, wide.dtype());
  return rounded(grid, theta.dtype());
}

}  // namespace clnet
