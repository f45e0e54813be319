// Diagonals, and elements repeated in place.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/graph/require.h"
#include "lib/ops/elementwise/elementwise.h"

namespace clnet {

Tensor repeat_interleave(const Tensor& x, std::int64_t repeats, int dim) {
  require_defined("repeat_interleave", {{"x", x}});
  const int at = require_dim("repeat_interleave", x, dim);
  const auto extent = x.size(at);
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  if (repeats < 0 || repeats > most || extent * repeats > most)
    throw ShapeError(fmt::format("repeat_interleave: {} times {} is no extent", extent, repeats));
  auto extents = x.shape().extents();
  extents.insert(extents.begin() + at + 1, repeats);
  return reshape(expand(unsqueeze(x, at + 1), Shape(extents)), x.shape().with(at, extent * repeats));
}

Tensor diagonal(const Tensor& x, std::int64_t offset, int dim1, int dim2) {
  require_defined("diagonal", {{"x", x}});
  const int first = require_dim("diagonal", x, dim1), second = require_dim("diagonal", x, dim2);
  if (first == second) throw ShapeError(fmt::format("diagonal: dimensions {} and {} are one", dim1, dim2));
  std::vector<int> order;
  for (int d = 0; d < x.rank(); ++d)
    if (d != first && d != second) order.push_back(d);
  order.insert(order.end(), {first, second});
  const auto rows = x.size(first), columns = x.size(second);
  const auto above = std::clamp(offset, -rows, columns);
  const auto start = above >= 0 ? above : -above * columns;
  const auto count = std::max<std::int64_t>(0, above >= 0 ? std::min(rows, columns - above) : std::min(rows + above, columns));
  // Of the matrix in one row, every so many elements.
  const auto matrices = permute(x, order);
  auto extents = matrices.shape().extents();
  extents.pop_back();
  extents.back() = rows * columns;
  const int last = static_cast<int>(extents.size()) - 1;
  const auto stop = count == 0 ? start : start + (count - 1) * (columns + 1) + 1;
  return slice(reshape(matrices, Shape(extents)), last, start, stop, columns + 1);
}

Tensor diag(const Tensor& x, std::int64_t offset) {
  require_defined("diag", {{"x", x}});
  if (x.rank() == 2) return diagonal(x, offset);
  if (x.rank() != 1) throw ShapeError(fmt::format("diag: {} is neither a vector nor a matrix", to_string(x.spec())));
  constexpr std::int64_t most = 46340;  // its square is the most elements that a tensor can have
  if (offset < -most || offset > most) throw ShapeError(fmt::format("diag: offset {} is too large", offset));
  const auto beside = offset < 0 ? -offset : offset, extent = x.size(0) + beside;
  shape_of("diag", {extent, extent});
  // A row's element lies `offset` to its right; below the main diagonal, a column's lies so much below.
  const auto padded = pad(x, {0}, {beside});
  const auto places = arange(extent);
  const auto is_on = eq(unsqueeze(places, 0) - unsqueeze(places, 1), static_cast<double>(offset));
  return where(is_on, unsqueeze(padded, offset < 0 ? 0 : 1), ops::scalar_like(0, x));
}

Tensor trace(const Tensor& x) {
  require_defined("trace", {{"x", x}});
  if (x.rank() != 2) throw ShapeError(fmt::format("trace: {} is no matrix", to_string(x.spec())));
  return sum(diagonal(x));
}

}  // namespace clnet
