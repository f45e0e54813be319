// scatter_reduce: sums by scatter_add's way, products and extremes by an operation of their own.
#include <fmt/format.h>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/exec/choose/solver.h"
#include "lib/exec/launch/recorder.h"
#include "lib/graph/op.h"
#include "lib/graph/require.h"
#include "lib/ops/elementwise/elementwise.h"
#include "lib/ops/index/index_add.h"
#include "lib/ops/index/index_add_solvers.h"
#include "lib/ops/index/scatter.h"
#include "lib/ops/lines.h"
#include "lib/ops/zero_factor_gradient.h"

namespace clnet {

namespace ops {

namespace {

/// A work-item for each line, which takes its picks one after the other.
void lower_lines(const IndexAddProblem& p, exec::Recorder& recorder) {
  const auto& by = p.picking;
  const auto lines = by.outer * by.inner, all = lines * by.extent;
  recorder.kernel("scatter_reduce", "scatter_reduce").define("FILL", 1).in("x", p.x).out("y", p.y).args({all}).range({all}, {64});
  const auto pass = [&](bool first) {
    in_pieces(by.picks, [&](std::int64_t begin, std::int64_t end) {
      auto& launch = recorder.kernel("scatter_reduce", "scatter_reduce").define("KIND", static_cast<std::int64_t>(p.kind));
      if (first) launch.define("FIRST", 1);
      launch.in("indices", p.indices)
          .in("source", p.g)
          .inout("y", p.y)
          .args({lines, by.picks, by.extent, by.inner, begin, end})
          .range({lines}, {64})
          .detail(fmt::format("{} of {}", by.picks, by.extent));
    });
  };
  if (!p.own) pass(true);
  pass(false);
}

const exec::SolverList<IndexAddProblem> scatter_add_solvers{
    "scatter_reduce",
    {{"sorted", index_add_sorted_rejects, index_add_sorted,
      [](const IndexAddProblem& p, const DeviceInfo& device) { return sorting_declines(p.picking, device); },
      index_add_sorted_configs, exec::MadeFor::gpus, true},
     {"lines", exec::accepts_everything<IndexAddProblem>, lower_lines}}};

/// prod, amax or amin. Inputs: x, indices, source, of one shape outside the dimension; f32, or integers.
class ScatterReduce : public Op {
 public:
  ScatterReduce(int dim, ScatterReduction reduction, bool own) : dim_(dim), reduction_(reduction), own_(own) {}
  std::string_view name() const override { return "scatter_reduce"; }
  Fields fields() const override {
    return {{"dim", std::int64_t{dim_}}, {"reduction", static_cast<std::int64_t>(reduction_)}, {"own", own_}};
  }

  Specs infer(const Specs& inputs) const override { return {inputs[0]}; }

  Tensors vjp(const Tensors& inputs, const Tensors& outputs, const Tensors& gradients) const override {
    const Tensor &x = inputs[0], &index = inputs[1], &source = inputs[2], &y = outputs[0], &g = gradients[0];
    const auto extent = static_cast<double>(x.size(dim_));
    const Tensor inside = logical_and(greater_equal(index, -extent), less(index, extent));
    const Tensor none = scalar_like(0, x), one = scalar_like(1, x);
    const auto there = [&](const Tensor& t) { return where(inside, gather(t, dim_, index), none); };
    const auto added = [&](const Tensor& t) { return added_at(t, dim_, index, true, x.shape()); };
    // Where x counts: everywhere, or where no other comes.
    const Tensor counts = own_ ? Tensor{} : less(last_picks(index, dim_, x.size(dim_)), 0.0);
    const auto counted = [&](const Tensor& t) { return own_ ? t : where(counts, t, none); };
    if (reduction_ != ScatterReduction::prod) {
      const Tensor chosen = logical_and(inside, eq(source, there(y)));
      const Tensor own = counted(cast(eq(x, y), x.dtype())), share = g / maximum(own + added(cast(chosen, x.dtype())), 1.0);
      return {own * share, {}, where(chosen, there(share), none)};
    }
    // What is 0 has the product of the others as its slope: that of all with 1 in its place.
    const auto product = [&](const Tensor& of, const Tensor& with) {
      return apply(std::make_shared<ScatterReduce>(dim_, reduction_, own_), {of, index, with});
    };
    const Tensor empty = eq(x, 0.0), some = where(empty, one, x);
    // Where one other source is 0, too, that product has a slope by it, which second derivatives need.
    const Tensor zeros = eq(source, 0.0), filled = where(zeros, one, source), zero = where(zeros, source + 1.0, none);
    const Tensor others_zero = there(added(zero)) - zero, of_others = there(g * product(x, filled));
    const auto with_others = [&](double count) { return logical_and(zeros, eq(others_zero, count)); };
    const Tensor of_one = where(with_others(1), zero_factor_gradient(of_others, others_zero), there(g * y) / filled);
    return {counted(g * product(some, source) / some), {}, where(with_others(0), of_others, of_one)};
  }

  void lower(exec::Recorder& recorder) const override {
    const auto& x = recorder.spec(recorder.input(0));
    scatter_add_solvers.lower({recorder.input(2), recorder.input(1), recorder.output(),
                               Picking(x.shape, dim_, recorder.spec(recorder.input(1)).shape, true), x.dtype,
                               reduction_ == ScatterReduction::prod   ? ReduceKind::prod
                               : reduction_ == ScatterReduction::amax ? ReduceKind::max
                                                                      : ReduceKind::min,
                               recorder.input(0), own_},
                              recorder.device(), recorder);
  }

 private:
  int dim_;
  ScatterReduction reduction_;
  bool own_;
};

/// The part of x that indices of this shape reach.
Tensor reached(const Tensor& x, int dim, const Shape& indices) {
  Tensor part = x;
  for (int d = 0; d < x.rank(); ++d)
    if (d != dim && indices[d] != x.size(d)) part = slice(part, d, 0, indices[d]);
  return part;
}

}  // namespace

}  // namespace ops

using namespace ops;

Tensor scatter_reduce(const Tensor& x, int dim, const Tensor& indices, const Tensor& source, ScatterReduction reduction,
                      bool include_self) {
  constexpr std::string_view op = "scatter_reduce";
  const auto [at, to, picks, from] = require_scatter(op, x, dim, indices, source);
  if (reduction == ScatterReduction::mean) require_floating(fmt::format("{}'s mean", op), x.spec());
  const Tensor all = summable(op, to), more = summable(op, from);
  if (indices.numel() == 0) return x;
  const auto shape = picks.shape().with(at, to.size(at));
  if (reduction == ScatterReduction::sum || reduction == ScatterReduction::mean) {
    const Tensor taken = padded(greater_equal(last_picks(picks, at, to.size(at)), 0.0), to.shape(), 0);
    const Tensor own = include_self ? all : where(taken, scalar_like(0, all), all);
    Tensor result = own + padded(added_at(more, at, picks, true, shape), to.shape(), 0);
    if (reduction == ScatterReduction::mean) {
      const Tensor count = padded(added_at(ones(picks.shape(), all.dtype()), at, picks, true, shape), to.shape(), 0);
      result = result / (include_self ? count + 1.0 : maximum(count, 1.0));
    }
    return reshape(cast(result, x.dtype()), x.shape());
  }
  const Tensor part = apply(std::make_shared<ScatterReduce>(at, reduction, include_self), {reached(all, at, shape), picks, more});
  if (shape == to.shape()) return reshape(cast(part, x.dtype()), x.shape());
  const Tensor inside = padded(ones(shape, Dtype::boolean), to.shape(), 0);
  return cast(where(inside, padded(part, to.shape(), 0), all), x.dtype());
}

}  // namespace clnet
