// Different elements and slices, in the order of their values or as they come. Values are read at once.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <numeric>
#include <optional>
#include <vector>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/graph/require.h"
#include "lib/ops/index/known.h"

namespace clnet {

namespace ops {

namespace {

using Key = std::uint64_t;
using Place = std::uint32_t;

/// Behind all numbers; each NaN is an element of its own.
constexpr Key nan_key = 0xffffffff, nan_key_f64 = ~Key{0};

std::optional<Key> nan_key_of(Dtype dtype) {
  if (!is_floating(dtype)) return std::nullopt;
  return dtype == Dtype::f64 ? nan_key_f64 : nan_key;
}

/// Slices of `width` elements as numbers that are ordered as these.
struct Slices {
  std::vector<Key> keys;
  std::size_t width = 1;
  std::optional<Key> nan = std::nullopt;  ///< of floating elements

  std::size_t count() const { return keys.size() / width; }
  bool equal(Place a, Place b) const {
    const auto *one = &keys[a * width], *other = &keys[b * width];
    for (std::size_t i = 0; i < width; ++i)
      if (one[i] != other[i] || one[i] == nan) return false;
    return true;
  }
};

std::vector<Key> keys_of(const Tensor& x) {
  std::vector<Key> keys(static_cast<std::size_t>(x.numel()));
  if (x.dtype() == Dtype::f64) {
    const auto values = x.to_vector<double>();
    std::transform(values.begin(), values.end(), keys.begin(), [](double value) -> Key {
      constexpr Key sign = Key{1} << 63;
      if (value != value) return nan_key_f64;
      const auto bits = std::bit_cast<Key>(value == 0 ? 0.0 : value);
      return (bits & sign) != 0 ? ~bits : bits | sign;
    });
  } else if (is_floating(x.dtype())) {
    const auto key_of = [](float value) -> Key {
      constexpr std::uint32_t sign = 0x80000000U;
      if (value != value) return nan_key;
      const auto bits = std::bit_cast<std::uint32_t>(value == 0 ? 0.0F : value);
      return (bits & sign) != 0 ? ~bits : bits | sign;
    };
    const auto values = x.to_vector<float>();
    std::transform(values.begin(), values.end(), keys.begin(), key_of);
  } else {
    const auto values = x.to_vector<std::int64_t>();
    std::transform(values.begin(), values.end(), keys.begin(),
                   [](std::int64_t value) { return static_cast<Key>(value) ^ (Key{1} << 63); });
  }
  return keys;
}

/// The places of the keys in ascending order, those of equal ones as they come. Keys that span 32 bits or less are sorted
/// together with their places by digits, from the lowest on (Knuth, "The Art of Computer Programming", 5.2.5).
std::vector<Place> sorted_places(const std::vector<Key>& keys) {
  std::vector<Place> order(keys.size());
  std::iota(order.begin(), order.end(), Place{0});
  const auto [least, most] = std::minmax_element(keys.begin(), keys.end());
  const Key low = *least, span = *most - low;
  constexpr int place_bits = 32, digit_bits = 11;
  if (span >> place_bits != 0) {
    std::stable_sort(order.begin(), order.end(), [&](Place a, Place b) { return keys[a] < keys[b]; });
    return order;
  }
  constexpr Key digits = Key{1} << digit_bits;
  std::vector<Key> pairs(keys.size()), next(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) pairs[i] = (keys[i] - low) << place_bits | i;
  for (int shift = 0; shift < place_bits && span >> shift != 0; shift += digit_bits) {
    const auto digit = [=](Key pair) { return static_cast<std::size_t>(pair >> (place_bits + shift) & (digits - 1)); };
    std::array<std::size_t, digits> starts{};
    for (const auto pair : pairs) ++starts[digit(pair)];
    std::exclusive_scan(starts.begin(), starts.end(), starts.begin(), std::size_t{0});
    for (const auto pair : pairs) next[starts[digit(pair)]++] = pair;
    pairs.swap(next);
  }
  std::transform(pairs.begin(), pairs.end(), order.begin(), [](Key pair) { return static_cast<Place>(pair); });
  return order;
}

std::vector<Place> slice_order(const Slices& slices, bool sorted) {
  if (sorted && slices.width == 1) return sorted_places(slices.keys);
  std::vector<Place> order(slices.count());
  std::iota(order.begin(), order.end(), Place{0});
  const auto begin = [&](Place place) { return slices.keys.begin() + static_cast<std::ptrdiff_t>(place * slices.width); };
  const auto end = [&](Place place) { return begin(place) + static_cast<std::ptrdiff_t>(slices.width); };
  if (sorted)
    std::stable_sort(order.begin(), order.end(),
                     [&](Place a, Place b) { return std::lexicographical_compare(begin(a), end(a), begin(b), end(b)); });
  return order;
}

/// Of the slices of x along `dim`, whose keys these are; runs of equal ones begin with the first of each.
UniqueResult runs_of(const Tensor& x, int dim, const Slices& slices, bool sorted) {
  const auto order = slice_order(slices, sorted);
  std::vector<std::int32_t> firsts;
  std::vector<std::int64_t> counts, inverse(order.size());
  for (std::size_t i = 0, first = 0; i < order.size(); ++i) {
    if (i == 0 || !slices.equal(order[i - 1], order[i])) {
      if (i > 0) counts.push_back(static_cast<std::int64_t>(i - first));
      firsts.push_back(static_cast<std::int32_t>(order[i]));
      first = i;
    }
    inverse[order[i]] = static_cast<std::int64_t>(firsts.size()) - 1;
    if (i + 1 == order.size()) counts.push_back(static_cast<std::int64_t>(order.size() - first));
  }
  return {index_select(stop_gradient(x), dim, Tensor::from(firsts)), Tensor::from(inverse), Tensor::from(counts)};
}

/// Runs of equal neighbours. The device compares them, and makes the places once somebody asks for them.
UniqueResult runs_of_neighbours(const Tensor& line) {
  const auto n = line.size(0);
  const Tensor first = zeros({1}, Dtype::boolean);
  // NaN differs from itself: each is an element of its own.
  const Tensor differs = n == 1 ? first : concat({first, not_equal(slice(line, 0, 1), slice(line, 0, 0, n - 1))}, 0);
  auto firsts = places_of_nonzero(differs);
  firsts.insert(firsts.begin(), 0);
  std::vector<std::int64_t> counts(firsts.size());
  for (std::size_t i = 0; i < counts.size(); ++i) counts[i] = (i + 1 < counts.size() ? firsts[i + 1] : n) - firsts[i];
  return {index_select(line, 0, Tensor::from(firsts)), cumsum(cast(differs, Dtype::i64), 0), Tensor::from(counts)};
}

UniqueResult unique_elements(std::string_view op, const Tensor& x, bool sorted) {
  require_defined(op, {{"x", x}});
  require_known(op);
  if (x.numel() == 0) return {zeros({0}, x.dtype()), zeros(x.shape(), Dtype::i64), zeros({0}, Dtype::i64)};
  const Tensor line = reshape(stop_gradient(x), std::vector<std::int64_t>{-1});
  auto result = sorted ? runs_of(line, 0, {keys_of(x), 1, nan_key_of(x.dtype())}, true) : runs_of_neighbours(line);
  result.inverse = reshape(result.inverse, x.shape());
  return result;
}

UniqueResult unique_slices(std::string_view op, const Tensor& x, int dim, bool sorted) {
  require_defined(op, {{"x", x}});
  require_known(op);
  const int at = require_dim(op, x, dim);
  const auto extent = x.size(at);
  if (extent == 0) return {stop_gradient(x), zeros({0}, Dtype::i64), zeros({0}, Dtype::i64)};
  if (x.numel() == 0)
    throw ShapeError(fmt::format("{}: slices of {} along dimension {} have no elements", op, to_string(x.spec()), at));
  const Slices slices{keys_of(movedim(x, at, 0)), static_cast<std::size_t>(x.numel() / extent), nan_key_of(x.dtype())};
  return runs_of(x, at, slices, sorted);
}

}  // namespace

}  // namespace ops

UniqueResult unique(const Tensor& x) { return ops::unique_elements("unique", x, true); }
UniqueResult unique(const Tensor& x, int dim) { return ops::unique_slices("unique", x, dim, true); }
UniqueResult unique_consecutive(const Tensor& x) { return ops::unique_elements("unique_consecutive", x, false); }
UniqueResult unique_consecutive(const Tensor& x, int dim) { return ops::unique_slices("unique_consecutive", x, dim, false); }

}  // namespace clnet
