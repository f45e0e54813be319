// Dimensions that are moved, dropped, split and turned, by views and copies.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/graph/require.h"
#include "lib/ops/elementwise/elementwise.h"

namespace clnet {

namespace {

/// Each as 0 .. rank - 1; none may come twice.
std::vector<int> places(std::string_view op, const Tensor& x, const Dims& dims) {
  std::vector<int> result;
  for (int dim : dims) {
    const int at = require_dim(op, x, dim);
    if (std::find(result.begin(), result.end(), at) != result.end())
      throw ShapeError(fmt::format("{}: dimension {} is given twice", op, dim));
    result.push_back(at);
  }
  return result;
}

Tensor turned_over(std::string_view op, const Tensor& x, int dim) {
  require_defined(op, {{"x", x}});
  if (x.rank() <= dim) throw ShapeError(fmt::format("{}: {} has no dimension {}", op, to_string(x.spec()), dim));
  return flip(x, {dim});
}

}  // namespace

Tensor squeeze(const Tensor& x) {
  require_defined("squeeze", {{"x", x}});
  std::vector<std::int64_t> extents;
  for (auto extent : x.shape())
    if (extent != 1) extents.push_back(extent);
  return static_cast<int>(extents.size()) == x.rank() ? x : reshape(x, Shape(std::move(extents)));
}

Tensor movedim(const Tensor& x, const Dims& sources, const Dims& destinations) {
  require_defined("movedim", {{"x", x}});
  if (sources.size() != destinations.size())
    throw ShapeError(fmt::format("movedim: {} dimensions for {} places", sources.size(), destinations.size()));
  const auto from = places("movedim", x, sources), to = places("movedim", x, destinations);
  std::vector<int> order(static_cast<std::size_t>(x.rank()), -1);
  for (std::size_t i = 0; i < from.size(); ++i) order[static_cast<std::size_t>(to[i])] = from[i];
  int next = 0;
  for (auto& dim : order) {
    if (dim >= 0) continue;
    while (std::find(from.begin(), from.end(), next) != from.end()) ++next;
    dim = next++;
  }
  return x.rank() == 0 ? x : permute(x, order);
}
Tensor movedim(const Tensor& x, int source, int destination) { return movedim(x, Dims{source}, Dims{destination}); }

Tensor unflatten(const Tensor& x, int dim, const std::vector<std::int64_t>& extents) {
  require_defined("unflatten", {{"x", x}});
  const int at = require_dim("unflatten", x, dim);
  auto parts = extents;
  std::int64_t known = 1;
  auto unknown = parts.end();
  for (auto part = parts.begin(); part != parts.end(); ++part) {
    const bool fits =
        *part == -1 ? unknown == parts.end() : *part >= 0 && (*part == 0 || known <= x.size(at) / *part || x.size(at) == 0);
    if (!fits)
      throw ShapeError(fmt::format("unflatten: extents [{}] do not make up dimension {} of {}", fmt::join(extents, ", "), at,
                                   to_string(x.spec())));
    if (*part == -1)
      unknown = part;
    else
      known *= *part;
  }
  if (unknown != parts.end()) *unknown = known == 0 ? 0 : x.size(at) / known;
  if ((unknown == parts.end() ? known : known * *unknown) != x.size(at))
    throw ShapeError(fmt::format("unflatten: extents [{}] do not make up dimension {} of {}", fmt::join(extents, ", "), at,
                                 to_string(x.spec())));
  auto all = x.shape().extents();
  all.erase(all.begin() + at);
  all.insert(all.begin() + at, parts.begin(), parts.end());
  return reshape(x, shape_of("unflatten", std::move(all)));
}

Tensor fliplr(const Tensor& x) { return turned_over("fliplr", x, 1); }
Tensor flipud(const Tensor& x) { return turned_over("flipud", x, 0); }

Tensor rot90(const Tensor& x, int times, const Dims& dims) {
  require_defined("rot90", {{"x", x}});
  const auto plane = places("rot90", x, dims);
  if (plane.size() != 2) throw ShapeError(fmt::format("rot90: needs two dimensions, got {}", plane.size()));
  switch ((times % 4 + 4) % 4) {
    case 1: return transpose(flip(x, {plane[1]}), plane[0], plane[1]);
    case 2: return flip(x, {plane[0], plane[1]});
    case 3: return flip(transpose(x, plane[0], plane[1]), {plane[1]});
    default: return x;
  }
}

Tensor diag_embed(const Tensor& x, std::int64_t offset, int dim1, int dim2) {
  require_defined("diag_embed", {{"x", x}});
  if (x.rank() == 0) throw ShapeError("diag_embed: a scalar has no last dimension");
  constexpr std::int64_t most = 46340;  // its square is the most elements that a tensor can have
  if (offset < -most || offset > most) throw ShapeError(fmt::format("diag_embed: offset {} is too large", offset));
  const auto beside = offset < 0 ? -offset : offset, extent = x.size(-1) + beside;
  auto extents = x.shape().extents();
  extents.back() = extent;
  extents.push_back(extent);
  const auto shape = shape_of("diag_embed", extents);
  const auto place = [&](int dim) {
    const int at = dim < 0 ? dim + shape.rank() : dim;
    if (at < 0 || at >= shape.rank())
      throw ShapeError(
          fmt::format("diag_embed: there is no dimension {} in matrices of the lines of {}", dim, to_string(x.spec())));
    return at;
  };
  const int rows = place(dim1), columns = place(dim2);
  if (rows == columns) throw ShapeError(fmt::format("diag_embed: dimensions {} and {} are one", dim1, dim2));
  // A row's element lies `offset` to its right; below the main diagonal, a column's lies so much below.
  std::vector<std::int64_t> none(static_cast<std::size_t>(x.rank())), after = none;
  after.back() = beside;
  const Tensor padded = beside == 0 ? x : pad(x, none, after), places = arange(extent);
  const Tensor is_on = eq(unsqueeze(places, 0) - unsqueeze(places, 1), static_cast<double>(offset));
  const Tensor matrices = where(is_on, unsqueeze(padded, offset < 0 ? -2 : -1), ops::scalar_like(0, x));
  return movedim(matrices, Dims{-2, -1}, Dims{rows, columns});
}

Tensor atleast_1d(const Tensor& x) {
  require_defined("atleast_1d", {{"x", x}});
  return x.rank() > 0 ? x : unsqueeze(x, 0);
}
Tensor atleast_2d(const Tensor& x) {
  require_defined("atleast_2d", {{"x", x}});
  return x.rank() > 1 ? x : unsqueeze(atleast_1d(x), 0);
}
Tensor atleast_3d(const Tensor& x) {
  require_defined("atleast_3d", {{"x", x}});
  return x.rank() > 2 ? x : unsqueeze(atleast_2d(x), 2);
}

}  // namespace clnet
