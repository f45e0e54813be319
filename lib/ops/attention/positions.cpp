// Positions that queries and keys are told.
#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "clnet/ops/attention.h"
#include "lib/graph/require.h"
#include "lib/ops/as_f32.h"
#include "lib/ops/elementwise/elementwise.h"

namespace clnet {

namespace {

/// What rotary_embedding() takes, whichever way the positions are given.
void require_pairs(const Tensor& x, const RotaryOptions& options) {
  require_defined("rotary_embedding", {{"x", x}});
  ops::require_floating("rotary_embedding", x.spec());
  if (x.rank() < 2 || x.size(-1) % 2 != 0)
    throw ShapeError(fmt::format("rotary_embedding: {} is not {{..., length, width}} with an even width", to_string(x.spec())));
  if (!(options.base > 0) || !std::isfinite(options.base))
    throw Error(fmt::format("rotary_embedding: base {} is not positive", options.base));
}

Tensor rotated(const Tensor& x, const Tensor& positions, const RotaryOptions& options) {
  const auto half = x.size(-1) / 2;
  std::vector<double> speeds(static_cast<std::size_t>(half));
  for (std::int64_t i = 0; i < half; ++i)
    speeds[static_cast<std::size_t>(i)] = std::pow(options.base, -static_cast<double>(i) / static_cast<double>(half));
  const auto dtype = ops::computed_in(x.dtype());
  const Tensor angles = unsqueeze(cast(positions, dtype), -1) * Tensor::from(speeds, {half}, dtype);
  const Tensor c = cos(angles), s = sin(angles), y = ops::as_f32(x);
  // {..., 2, half} or {..., half, 2}: the dimension of the pairs' two elements.
  auto extents = x.shape().extents();
  extents.back() = options.interleaved ? half : 2;
  extents.push_back(options.interleaved ? 2 : half);
  const int at = options.interleaved ? -1 : -2;
  const Tensor pairs = reshape(y, Shape(extents)), a = squeeze(slice(pairs, at, 0, 1), at),
               b = squeeze(slice(pairs, at, 1, 2), at);
  const int dim = options.interleaved ? x.rank() : x.rank() - 1;
  return cast(reshape(stack({a * c - b * s, b * c + a * s}, dim), x.shape()), x.dtype());
}

}  // namespace

Tensor rotary_embedding(const Tensor& x, const Tensor& positions, const RotaryOptions& options) {
  require_pairs(x, options);
  require_defined("rotary_embedding", {{"positions", positions}});
  if (positions.dtype() != Dtype::i32 && positions.dtype() != Dtype::i64)
    throw DtypeError(fmt::format("rotary_embedding: positions must be i32 or i64, got {}", to_string(positions.spec())));
  auto rows = x.shape().extents();
  rows.pop_back();
  if (broadcast(positions.shape(), Shape(rows), "rotary_embedding") != Shape(rows))
    throw ShapeError(fmt::format("rotary_embedding: positions {} do not broadcast to {}", to_string(positions.shape()),
                                 to_string(Shape(rows))));
  return rotated(x, positions, options);
}

Tensor rotary_embedding(const Tensor& x, std::int64_t offset, const RotaryOptions& options) {
  require_pairs(x, options);
  constexpr std::int64_t most = 1 << 24;  // beyond it f32 has not every whole number
  if (offset < -most || offset > most)
    throw Error(fmt::format("rotary_embedding: offset {} is not from -{} to {}", offset, most, most));
  return rotated(x, arange(x.size(-2), static_cast<double>(offset)), options);
}

Tensor sinusoidal_positions(std::int64_t length, std::int64_t width, Dtype dtype, std::int64_t offset) {
  if (!is_floating(dtype)) throw DtypeError(fmt::format("sinusoidal_positions: {} is not floating", to_string(dtype)));
  const Shape shape = shape_of("sinusoidal_positions", {length, width});
  constexpr std::int64_t most = std::int64_t{1} << 53;  // beyond it double has not every whole number
  if (offset < 0 || offset > most) throw Error(fmt::format("sinusoidal_positions: offset {} is not from 0 to {}", offset, most));
  std::vector<double> values(static_cast<std::size_t>(shape.numel()));
  std::size_t at = 0;
  for (std::int64_t p = 0; p < (width == 0 ? 0 : length); ++p)
    for (std::int64_t i = 0; i < width; ++i) {
      const double angle =
          static_cast<double>(offset + p) * std::pow(10000.0, -static_cast<double>(i - i % 2) / static_cast<double>(width));
      values[at++] = i % 2 == 0 ? std::sin(angle) : std::cos(angle);
    }
  return Tensor::from(values, shape, dtype);
}

}  // namespace clnet
