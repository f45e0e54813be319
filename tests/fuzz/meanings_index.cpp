// What operations mean that choose, order, draw and resize.
#include "tests/fuzz/interpret.h"
#include "tests/reference/index/scatter.h"
#include "tests/reference/index/sort.h"
#include "tests/reference/loss/ctc.h"
#include "tests/reference/random/philox.h"
#include "tests/reference/reduce/cumsum.h"

namespace clnet::fuzz {

namespace reference = testing::reference;

namespace {

int dim_of(const Call& call) {
  const auto dim = call.integer("dim");
  return static_cast<int>(dim < 0 ? dim + call.shape().rank() : dim);
}

/// From the other end: of the array turned round.
Arrays cumsum(const Call& call) {
  if (call.in[0].numel() == 0) return {call.in[0]};
  const int dim = dim_of(call);
  if (!call.flag("backwards")) return {reference::cumsum(call.in[0], dim)};
  std::int64_t inner = 1;
  for (int d = dim + 1; d < call.shape().rank(); ++d) inner *= call.shape()[d];
  const auto turned = [&](const Array& x) {
    Array y = x;
    const auto extent = x.shape[dim];
    for (std::int64_t i = 0; i < x.numel(); ++i) y[i + (extent - 1 - 2 * (i / inner % extent)) * inner] = x[i];
    return y;
  };
  return {turned(reference::cumsum(turned(call.in[0]), dim))};
}

Arrays argsort(const Call& call) { return {reference::argsort(call.in[0], dim_of(call), call.flag("descending"))}; }

Arrays topk(const Call& call) {
  const int dim = dim_of(call);
  return {reference::first_of(reference::argsort(call.in[0], dim, call.flag("descending")), dim, call.integer("count"))};
}

/// Which pick of its line is the last one to each place.
Arrays last_picks(const Call& call) {
  Array y(call.shape());
  std::fill(y.values.begin(), y.values.end(), -1.0);
  const int dim = dim_of(call);
  std::int64_t inner = 1;
  for (int d = dim + 1; d < call.shape().rank(); ++d) inner *= call.shape()[d];
  reference::each_scattered(call.shape(), dim, call.in[0],
                            [&](auto pick, auto to) { y[to] = static_cast<double>(pick / inner % call.in[0].shape[dim]); });
  return {y};
}

Arrays scatter_reduce(const Call& call) {
  return {reference::scatter_reduce(call.in[0], dim_of(call), call.in[1], call.in[2],
                                    static_cast<reference::Fold>(call.integer("reduction")), call.flag("own"))};
}

Arrays randint(const Call& call) {
  Array y(call.shape());
  for (std::int64_t i = 0; i < y.numel(); ++i) {
    const auto bits = reference::philox(as_unsigned(call.in[2]), as_unsigned(call.in[3]), static_cast<std::uint64_t>(i));
    const auto draw = (std::uint64_t{bits[0]} << 32 | bits[1]) % as_unsigned(call.in[1]);
    y[i] = static_cast<double>(static_cast<std::int64_t>(as_unsigned(call.in[0]) + draw));
  }
  return {y};
}

Arrays place_among(const Call& call) {
  const auto &bounds = call.in[0], &values = call.in[1];
  Array y(call.shape());
  const auto n = bounds.size(1), count = values.size(1);
  for (std::int64_t i = 0; i < y.numel(); ++i)
    for (std::int64_t k = 0; k + 1 < n; ++k) y[i] += bounds[i / count * n + k] <= values[i];
  return {y};
}

/// By its two tables; the columns' taps lie behind the rows'.
Arrays resample(const Call& call) {
  const auto &x = call.in[0], &places = call.in[1], &weights = call.in[2];
  const int dim = dim_of(call);
  Array y = x;
  std::int64_t table = 0;
  const auto along = [&](int at, std::int64_t extent, std::int64_t taps) {
    const Array old = y;
    y = Array(old.shape.with(at, extent));
    std::int64_t inner = 1;
    for (int d = at + 1; d < old.shape.rank(); ++d) inner *= old.shape[d];
    for (std::int64_t i = 0; i < y.numel(); ++i)
      for (std::int64_t tap = 0; tap < taps; ++tap) {
        const auto entry = table + tap * extent + i / inner % extent;
        const auto from = i / inner / extent * old.shape[at] + static_cast<std::int64_t>(places[entry]);
        if (weights[entry] != 0) y[i] += weights[entry] * old[from * inner + i % inner];
      }
    table += extent * taps;
  };
  const bool two = call.flag("two");
  if (two)
    along(dim, call.integer("rows"), call.integer("row_taps"));
  else
    table = 1;
  along(two ? dim + 1 : dim, call.integer("columns"), call.integer("column_taps"));
  return {y};
}

/// The sums of the steps are the operation's own matter.
Arrays ctc_loss(const Call& call) {
  return {reference::ctc(call.in[0], call.in[1], call.in[2], call.in[3], static_cast<int>(call.integer("blank"))),
          Array(call.shape(1))};
}

Arrays ctc_gradient(const Call& call) {
  return {reference::ctc_gradient(call.in[0], call.in[1], call.in[2], call.in[3], call.in[6],
                                  static_cast<int>(call.integer("blank")))};
}

}  // namespace

Meanings index_meanings() {
  return {{"cumsum", {cumsum, false, 2}},
          {"argsort", {argsort, true}},
          {"topk", {topk, true}},
          {"scatter_reduce", {scatter_reduce, false, 4}},
          {"last_picks", {last_picks, true}},
          {"randint", {randint, true}},
          {"place_among", {place_among, true}},
          {"resample", {resample}},
          {"ctc_loss", {ctc_loss, false, 4}},
          {"ctc_gradient", {ctc_gradient, false, 4}}};
}

}  // namespace clnet::fuzz
