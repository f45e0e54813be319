// scatter, scatter_add and index_add.
#include "lib/ops/index/scatter.h"

#include <fmt/format.h>

#include <cmath>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/exec/choose/solver.h"
#include "lib/exec/launch/recorder.h"
#include "lib/graph/composition.h"
#include "lib/graph/op.h"
#include "lib/graph/require.h"
#include "lib/ops/as_f32.h"
#include "lib/ops/elementwise/elementwise.h"
#include "lib/ops/index/index_add.h"
#include "lib/ops/index/index_add_solvers.h"
#include "lib/ops/lines.h"

namespace clnet {

namespace ops {

namespace {

struct LastPicksProblem {
  exec::Ref indices, y;
  Picking picking;
};

void lower_sorted(const LastPicksProblem& p, exec::Recorder& recorder) {
  const auto& [outer, extent, picks, inner, gather] = p.picking;
  const auto sorted = sort_indices(p.indices, p.picking, recorder);
  const auto all = outer * extent * inner;
  recorder.kernel("last_picks", "last_picks")
      .define("SORTED", 1)
      .in("order", sorted.order)
      .in("starts", sorted.starts)
      .out("y", p.y)
      .args({all, extent, picks, inner})
      .range({all}, {64})
      .detail(fmt::format("{} of {}", picks, extent));
}

/// A work-item for each line, which takes its picks one after the other.
void lower_lines(const LastPicksProblem& p, exec::Recorder& recorder) {
  const auto& by = p.picking;
  const auto lines = by.outer * by.inner, all = lines * by.extent;
  recorder.kernel("last_picks", "last_picks").define("FILL", 1).out("y", p.y).args({all}).range({all}, {64});
  in_pieces(by.picks, [&](std::int64_t begin, std::int64_t end) {
    recorder.kernel("last_picks", "last_picks")
        .in("indices", p.indices)
        .inout("y", p.y)
        .args({lines, by.picks, by.extent, by.inner, begin, end})
        .range({lines}, {64})
        .detail(fmt::format("{} of {}", by.picks, by.extent));
  });
}

const exec::SolverList<LastPicksProblem> last_picks_solvers{
    "last_picks",
    {{"sorted",
      [](const LastPicksProblem& p, const DeviceInfo&) -> std::optional<std::string> {
        if (p.picking.outer * p.picking.inner * p.picking.extent == 0) return "there are no places";
        return std::nullopt;
      },
      lower_sorted, [](const LastPicksProblem& p, const DeviceInfo& device) { return sorting_declines(p.picking, device); },
      [](const LastPicksProblem& p, const DeviceInfo& device) { return sorting_configs(p.picking, device); },
      exec::MadeFor::gpus},
     {"lines", exec::accepts_everything<LastPicksProblem>, lower_lines}}};

/// Which pick of its line comes last to each of `extent` places along a dimension; -1: none. Input: indices.
class LastPicks : public Op {
 public:
  LastPicks(int dim, std::int64_t extent) : dim_(dim), extent_(extent) {}
  std::string_view name() const override { return "last_picks"; }
  Fields fields() const override { return {{"dim", std::int64_t{dim_}}, {"extent", extent_}}; }

  Specs infer(const Specs& inputs) const override { return {{inputs[0].shape.with(dim_, extent_), Dtype::i32}}; }
  Tensors vjp(const Tensors&, const Tensors&, const Tensors&) const override { return Tensors(1); }
  void lower(exec::Recorder& recorder) const override {
    const auto& shape = recorder.spec(recorder.input(0)).shape;
    last_picks_solvers.lower({recorder.input(0), recorder.output(), Picking(shape.with(dim_, extent_), dim_, shape, true)},
                             recorder.device(), recorder);
  }

 private:
  int dim_;
  std::int64_t extent_;
};

}  // namespace

Scattered require_scatter(std::string_view op, const Tensor& x, int dim, const Tensor& indices, const Tensor& source) {
  require_defined(op, {{"x", x}, {"indices", indices}, {"source", source}});
  require_indices(op, indices);
  require_same_dtype(op, x.spec(), source.spec());
  Scattered result{require_line(op, x.shape(), dim), as_line(x), as_line(indices), as_line(source)};
  const auto &to = result.x.shape(), &picks = result.indices.shape(), &from = result.source.shape();
  bool fits = picks.rank() == to.rank() && from.rank() == to.rank();
  for (int d = 0; d < to.rank() && fits; ++d) fits = picks[d] <= from[d] && (d == result.dim || picks[d] <= to[d]);
  if (!fits)
    throw ShapeError(fmt::format("{}: indices {} must be no larger than source {}, nor than {} outside dimension {}", op,
                                 to_string(indices.shape()), to_string(source.shape()), to_string(x.shape()), result.dim));
  for (int d = 0; d < to.rank(); ++d) result.source = slice(result.source, d, 0, picks[d]);
  return result;
}

Tensor summable(std::string_view op, const Tensor& x) {
  if (x.dtype() == Dtype::boolean) throw DtypeError(fmt::format("{}: bool has no sums, got {}", op, to_string(x.spec())));
  return x.dtype() == Dtype::i8 || x.dtype() == Dtype::u8 ? cast(x, Dtype::i32) : as_f32(x);
}

Tensor padded(const Tensor& part, const Shape& shape, double value) {
  const std::vector<std::int64_t> none(static_cast<std::size_t>(shape.rank()), 0);
  auto after = none;
  for (int d = 0; d < shape.rank(); ++d) after[static_cast<std::size_t>(d)] = shape[d] - part.size(d);
  return after == none ? part : pad(part, none, after, value);
}

Tensor last_picks(const Tensor& indices, int dim, std::int64_t extent) {
  return clnet::apply(std::make_shared<LastPicks>(dim, extent), {indices});
}

}  // namespace ops

using namespace ops;

namespace {

/// A function of x, indices and source, whose parts have one rank.
Tensor noted_scatter(const Tensor& y, std::string_view op, const Tensor& x, int dim, const Tensor& indices,
                     const Tensor& source) {
  return composed(y, [&] { return Composition{op, {x, indices, source}, {{"dim", std::int64_t{dim}}}, {}}; });
}

}  // namespace

Tensor scatter(const Tensor& x, int dim, const Tensor& indices, const Tensor& source) {
  const auto [at, to, picks, from] = require_scatter("scatter", x, dim, indices, source);
  if (indices.numel() == 0) return x;
  const auto last = last_picks(picks, at, to.size(at));
  const auto picked = gather(from, at, maximum(last, 0.0));
  const Tensor y = reshape(where(greater_equal(padded(last, to.shape(), -1), 0.0), padded(picked, to.shape(), 0), to), x.shape());
  return noted_scatter(y, "scatter", x, at, indices, from);
}

Tensor scatter(const Tensor& x, int dim, const Tensor& indices, double value) {
  require_defined("scatter", {{"x", x}, {"indices", indices}});
  ops::require_held("scatter", value, x.dtype());
  return scatter(x, dim, indices, full(indices.shape(), value, x.dtype()));
}

Tensor scatter_add(const Tensor& x, int dim, const Tensor& indices, const Tensor& source) {
  const auto [at, to, picks, from] = require_scatter("scatter_add", x, dim, indices, source);
  const auto sums = added_at(summable("scatter_add", from), at, picks, true, picks.shape().with(at, to.size(at)));
  const Tensor y = reshape(cast(summable("scatter_add", to) + padded(sums, to.shape(), 0), x.dtype()), x.shape());
  return noted_scatter(y, "scatter_add", x, at, indices, from);
}

Tensor index_add(const Tensor& x, int dim, const Tensor& indices, const Tensor& source, double alpha) {
  require_defined("index_add", {{"x", x}, {"indices", indices}, {"source", source}});
  require_indices("index_add", indices);
  require_same_dtype("index_add", x.spec(), source.spec());
  const int at = require_line("index_add", x.shape(), dim);
  const Tensor to = as_line(x), picks = as_line(indices), from = x.rank() == 0 ? as_line(source) : source;
  if (picks.rank() != 1 || source.rank() != x.rank() || from.shape() != to.shape().with(at, indices.numel()))
    throw ShapeError(fmt::format("index_add: source {} is not {} with one element at dimension {} for each of indices {}",
                                 to_string(source.shape()), to_string(x.shape()), at, to_string(indices.shape())));
  if (!is_floating(x.dtype())) {
    const double most = x.dtype() == Dtype::i64 ? 0x1p63 : 0x1p31;
    if (std::floor(alpha) != alpha || alpha < -most || alpha >= most)
      throw Error(fmt::format("index_add: alpha {} of {} is not a whole number that fits it", alpha, to_string(x.spec())));
  }
  const Tensor sums = added_at(summable("index_add", from), at, picks, false, to.shape());
  return reshape(cast(summable("index_add", to) + (alpha == 1 ? sums : sums * alpha), x.dtype()), x.shape());
}

}  // namespace clnet
