// Results with shapes that depend on values, which are read at once: places of elements, and elements at places.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/graph/capture.h"
#include "lib/graph/require.h"
#include "lib/ops/index/known.h"

namespace clnet {

namespace ops {

void require_known(std::string_view op) {
  if (capturing()) throw Error(fmt::format("{}: the shape depends on values; not inside compile()", op));
}

std::vector<std::int32_t> places_of_nonzero(const Tensor& x) {
  const auto truth = cast(not_equal(x, 0.0), Dtype::u8).to_vector<std::uint8_t>();
  // Each place is written before it is known whether it stays: without a branch.
  std::vector<std::int32_t> places(truth.size() + 1);
  std::size_t count = 0;
  for (std::size_t i = 0; i < truth.size(); ++i) {
    places[count] = static_cast<std::int32_t>(i);
    count += truth[i];
  }
  places.resize(count);
  return places;
}

namespace {

Tensor coordinates_of_nonzero(std::string_view op, const Tensor& x) {
  require_defined(op, {{"x", x}});
  require_known(op);
  const auto places = places_of_nonzero(x);
  const auto count = static_cast<std::int64_t>(places.size());
  if (x.rank() == 0) return zeros({count, 0}, Dtype::i64);
  const auto line = static_cast<std::int32_t>(x.size(-1));
  std::vector<std::int64_t> coordinates(places.size() * static_cast<std::size_t>(x.rank()));
  // The coordinates of the line at hand, and where it begins.
  std::vector<std::int64_t> outer(static_cast<std::size_t>(x.rank()));
  std::int32_t first = 0, end = 0;
  auto to = coordinates.begin();
  for (const auto place : places) {
    if (place >= end) {
      first = place / line * line;
      end = first + line;
      auto rest = static_cast<std::int64_t>(place / line);
      for (int d = x.rank() - 1; d-- > 0; rest /= x.size(d)) outer[static_cast<std::size_t>(d)] = rest % x.size(d);
    }
    outer.back() = place - first;
    to = std::copy(outer.begin(), outer.end(), to);
  }
  return Tensor::from(coordinates, {count, x.rank()});
}

/// Parts along the first dimensions, which are those of the mask.
Tensor masked_parts(const Tensor& x, const Tensor& mask) {
  const auto extents = x.shape().extents();
  const auto dims = mask.rank();
  if (dims > x.rank() || !std::equal(mask.shape().begin(), mask.shape().end(), extents.begin()))
    throw ShapeError(
        fmt::format("x[mask]: the mask {} does not have the first extents of {}", to_string(mask.spec()), to_string(x.spec())));
  require_known("x[mask]");
  const auto places = places_of_nonzero(mask);
  std::vector<std::int64_t> rows(extents.begin() + dims, extents.end());
  rows.insert(rows.begin(), mask.numel());
  return index_select(reshape(x, Shape(rows)), 0, Tensor::from(places));
}

}  // namespace

}  // namespace ops

Tensor nonzero(const Tensor& x) { return ops::coordinates_of_nonzero("nonzero", x); }
Tensor argwhere(const Tensor& x) { return ops::coordinates_of_nonzero("argwhere", x); }

Tensor masked_select(const Tensor& x, const Tensor& mask) {
  require_defined("masked_select", {{"x", x}, {"mask", mask}});
  if (mask.dtype() != Dtype::boolean)
    throw DtypeError(fmt::format("masked_select: the mask must be bool, got {}", to_string(mask.spec())));
  ops::require_known("masked_select");
  const auto shape = broadcast(x.shape(), mask.shape(), "masked_select");
  const auto places = ops::places_of_nonzero(expand(mask, shape));
  return index_select(reshape(expand(x, shape), std::vector<std::int64_t>{-1}), 0, Tensor::from(places));
}

Tensor Tensor::operator[](const Tensor& indices) const {
  require_defined("x[...]", {{"x", *this}, {"indices", indices}});
  return indices.dtype() == Dtype::boolean ? ops::masked_parts(*this, indices) : index_select(0, indices);
}

}  // namespace clnet
