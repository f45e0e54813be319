// Arrangements that views, copies and choices make up.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/graph/require.h"
#include "lib/ops/elementwise/elementwise.h"

namespace clnet {

namespace {

using Extents = std::vector<std::int64_t>;

/// The last two dimensions' elements for which column - row lies from `first` to `last`, else 0.
Tensor band(std::string_view op, const Tensor& x, double first, double last) {
  require_defined(op, {{"x", x}});
  if (x.rank() < 2) throw ShapeError(fmt::format("{}: {} has no rows and columns", op, to_string(x.spec())));
  const Tensor rows = reshape(arange(x.size(-2)), {x.size(-2), 1}), offset = arange(x.size(-1)) - rows;
  return where(logical_and(greater_equal(offset, first), less_equal(offset, last)), x, ops::scalar_like(0, x));
}

/// Everything of x's extents before the last three.
Extents leading(std::string_view op, const Tensor& x, std::int64_t factor) {
  require_defined(op, {{"x", x}});
  if (x.rank() < 3) throw ShapeError(fmt::format("{}: {} is no {{..., C, H, W}}", op, to_string(x.spec())));
  constexpr std::int64_t most = 46340;  // its square is the most channels that a tensor can have
  if (factor < 1 || factor > most) throw Error(fmt::format("{}: factor {} is not from 1 to {}", op, factor, most));
  auto extents = x.shape().extents();
  extents.resize(extents.size() - 3);
  return extents;
}

/// `front`, then `back`.
Extents joined(Extents front, const Extents& back) {
  front.insert(front.end(), back.begin(), back.end());
  return front;
}

/// Leaves the leading dimensions where they are and permutes the others, counted from the first of them.
Tensor permute_last(const Tensor& x, std::size_t leading, std::initializer_list<int> order) {
  std::vector<int> dims;
  for (std::size_t d = 0; d < leading; ++d) dims.push_back(static_cast<int>(d));
  for (int d : order) dims.push_back(static_cast<int>(leading) + d);
  return permute(x, dims);
}

/// x beside itself, for tile() and repeat().
Tensor tiled(std::string_view op, const Tensor& x, const std::vector<std::int64_t>& repeats) {
  for (auto times : repeats)
    if (times < 0) throw ShapeError(fmt::format("{}: repeats [{}] are not all 0 or more", op, fmt::join(repeats, ", ")));
  const auto rank = std::max(repeats.size(), static_cast<std::size_t>(x.rank()));
  Extents own(rank, 1), times(rank, 1), apart, repeated, result;
  std::copy(x.shape().begin(), x.shape().end(), own.end() - x.rank());
  std::copy(repeats.begin(), repeats.end(), times.end() - static_cast<std::ptrdiff_t>(repeats.size()));
  for (std::size_t d = 0; d < rank; ++d) {
    apart.insert(apart.end(), {1, own[d]});
    repeated.insert(repeated.end(), {times[d], own[d]});
    if (times[d] > 0 && own[d] > std::numeric_limits<std::int64_t>::max() / times[d])
      throw ShapeError(fmt::format("{}: {} times {} is too large", op, own[d], times[d]));
    result.push_back(own[d] * times[d]);
  }
  const Shape all = shape_of(op, result);
  return reshape(expand(reshape(x, Shape(apart)), Shape(repeated)), all);
}

}  // namespace

Tensor flip(const Tensor& x, const Dims& dims) {
  require_defined("flip", {{"x", x}});
  Tensor result = x;
  std::vector<bool> seen(static_cast<std::size_t>(std::max(x.rank(), 1)));
  for (int dim : dims) {
    const auto at = static_cast<std::size_t>(require_line("flip", x.shape(), dim));
    if (seen[at]) throw ShapeError(fmt::format("flip: dimension {} is given twice", dim));
    seen[at] = true;
    if (x.rank() > 0) result = slice(result, dim, -1, std::numeric_limits<std::int64_t>::min(), -1);
  }
  return result;
}

Tensor tile(const Tensor& x, const std::vector<std::int64_t>& repeats) {
  require_defined("tile", {{"x", x}});
  return tiled("tile", x, repeats);
}

Tensor repeat(const Tensor& x, const std::vector<std::int64_t>& repeats) {
  require_defined("repeat", {{"x", x}});
  if (repeats.size() < static_cast<std::size_t>(x.rank()))
    throw ShapeError(fmt::format("repeat: {} numbers for {}", repeats.size(), to_string(x.spec())));
  return tiled("repeat", x, repeats);
}

Tensor tril(const Tensor& x, std::int64_t diagonal) {
  return band("tril", x, -std::numeric_limits<double>::infinity(), static_cast<double>(diagonal));
}
Tensor triu(const Tensor& x, std::int64_t diagonal) {
  return band("triu", x, static_cast<double>(diagonal), std::numeric_limits<double>::infinity());
}

Tensor pixel_shuffle(const Tensor& x, std::int64_t factor) {
  const auto front = leading("pixel_shuffle", x, factor);
  const auto c = x.size(-3), h = x.size(-2), w = x.size(-1);
  if (c % (factor * factor) != 0)
    throw ShapeError(
        fmt::format("pixel_shuffle: {} channels of {} are no multiple of {}", c, to_string(x.spec()), factor * factor));
  const auto out = c / (factor * factor);
  const Tensor apart = reshape(x, Shape(joined(front, {out, factor, factor, h, w})));
  return reshape(permute_last(apart, front.size(), {0, 3, 1, 4, 2}), Shape(joined(front, {out, h * factor, w * factor})));
}

Tensor pixel_unshuffle(const Tensor& x, std::int64_t factor) {
  const auto front = leading("pixel_unshuffle", x, factor);
  const auto c = x.size(-3), h = x.size(-2), w = x.size(-1);
  if (h % factor != 0 || w % factor != 0)
    throw ShapeError(fmt::format("pixel_unshuffle: height and width of {} are no multiples of {}", to_string(x.spec()), factor));
  const Tensor apart = reshape(x, Shape(joined(front, {c, h / factor, factor, w / factor, factor})));
  return reshape(permute_last(apart, front.size(), {0, 2, 4, 1, 3}),
                 Shape(joined(front, {c * factor * factor, h / factor, w / factor})));
}

}  // namespace clnet
