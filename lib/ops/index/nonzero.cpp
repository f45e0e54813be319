// Results with shapes that depend on values, which are read at once.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/graph/capture.h"
#include "lib/graph/require.h"
#include "lib/ops/index/known.h"
#include "lib/ops/lines.h"

namespace clnet {

namespace ops {

void require_known(std::string_view op) {
  if (capturing()) throw Error(fmt::format("{}: the shape depends on values; not inside compile()", op));
}

namespace {

std::vector<std::int64_t> places_of_true(const std::vector<bool>& truth) {
  std::vector<std::int64_t> places;
  for (std::size_t i = 0; i < truth.size(); ++i)
    if (truth[i]) places.push_back(static_cast<std::int64_t>(i));
  return places;
}

Tensor places_of_nonzero(std::string_view op, const Tensor& x) {
  require_defined(op, {{"x", x}});
  require_known(op);
  const auto places = places_of_true(x.to_vector<bool>());
  const auto count = static_cast<std::int64_t>(places.size());
  std::vector<std::int64_t> coordinates(places.size() * static_cast<std::size_t>(x.rank()));
  auto to = coordinates.begin();
  for (auto place : places) {
    for (int d = x.rank(); d-- > 0; place /= x.size(d)) to[d] = place % x.size(d);
    to += x.rank();
  }
  return Tensor::from(coordinates, {count, x.rank()});
}

/// Runs of equal elements in `order`, which begins with the first of each.
template <class T>
UniqueResult runs_of(const Tensor& x, const std::vector<T>& values, const std::vector<std::int64_t>& order) {
  std::vector<std::int64_t> firsts, counts, inverse(values.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto place = static_cast<std::size_t>(order[i]);
    if (i == 0 || !(values[static_cast<std::size_t>(order[i - 1])] == values[place])) {
      firsts.push_back(order[i]);
      counts.push_back(0);
    }
    ++counts.back();
    inverse[place] = static_cast<std::int64_t>(firsts.size()) - 1;
  }
  const Tensor all = reshape(stop_gradient(x), std::vector<std::int64_t>{-1});
  return {index_select(all, 0, Tensor::from(firsts)), Tensor::from(inverse, x.shape()), Tensor::from(counts)};
}

template <class T>
UniqueResult unique_of(const Tensor& x, bool sorted) {
  const auto values = x.to_vector<T>();
  std::vector<std::int64_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  // NaN behind all numbers.
  const auto smaller = [](T a, T b) { return b == b ? a < b : a == a; };
  if (sorted)
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t i, std::int64_t j) {
      return smaller(values[static_cast<std::size_t>(i)], values[static_cast<std::size_t>(j)]);
    });
  return runs_of(x, values, order);
}

UniqueResult unique_in(std::string_view op, const Tensor& x, bool sorted) {
  require_defined(op, {{"x", x}});
  require_known(op);
  if (x.numel() == 0) return {zeros({0}, x.dtype()), zeros(x.shape(), Dtype::i64), zeros({0}, Dtype::i64)};
  return is_floating(x.dtype()) ? unique_of<float>(x, sorted) : unique_of<std::int64_t>(x, sorted);
}

}  // namespace

}  // namespace ops

Tensor nonzero(const Tensor& x) { return ops::places_of_nonzero("nonzero", x); }
Tensor argwhere(const Tensor& x) { return ops::places_of_nonzero("argwhere", x); }

Tensor masked_select(const Tensor& x, const Tensor& mask) {
  require_defined("masked_select", {{"x", x}, {"mask", mask}});
  if (mask.dtype() != Dtype::boolean)
    throw DtypeError(fmt::format("masked_select: the mask must be bool, got {}", to_string(mask.spec())));
  ops::require_known("masked_select");
  const auto shape = broadcast(x.shape(), mask.shape(), "masked_select");
  const auto places = ops::places_of_true(expand(mask, shape).to_vector<bool>());
  return index_select(reshape(expand(x, shape), std::vector<std::int64_t>{-1}), 0, Tensor::from(places));
}

UniqueResult unique(const Tensor& x) { return ops::unique_in("unique", x, true); }
UniqueResult unique_consecutive(const Tensor& x) { return ops::unique_in("unique_consecutive", x, false); }

}  // namespace clnet
