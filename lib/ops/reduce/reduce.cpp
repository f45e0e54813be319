#include "lib/ops/reduce/reduce.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/graph/require.h"
#include "lib/ops/as_f32.h"
#include "lib/ops/elementwise/elementwise.h"
#include "lib/ops/lines.h"
#include "lib/ops/zero_factor_gradient.h"

namespace clnet {

namespace ops {

std::vector<bool> reduced_dims(std::string_view op, const Shape& shape, const Dims& dims) {
  // A scalar's one dimension is not among the extents.
  const auto rank = static_cast<std::size_t>(shape.rank());
  std::vector<bool> reduced(std::max<std::size_t>(rank, 1), dims.empty());
  for (int dim : dims) {
    auto entry = reduced[static_cast<std::size_t>(require_line(op, shape, dim))];
    if (entry) throw ShapeError(fmt::format("{}: dimension {} is given twice", op, dim));
    entry = true;
  }
  reduced.resize(rank);
  return reduced;
}

namespace {

enum class Kind : std::uint8_t { sum, mean, prod, max, min };
constexpr std::string_view names[] = {"sum", "mean", "prod", "max", "min"};

/// The shape with extents of 1 in place of the reduced ones, or without them.
Shape reduced_shape(const Shape& shape, const std::vector<bool>& reduced, bool keepdim) {
  std::vector<std::int64_t> extents;
  for (int d = 0; d < shape.rank(); ++d) {
    if (!reduced[static_cast<std::size_t>(d)])
      extents.push_back(shape[d]);
    else if (keepdim)
      extents.push_back(1);
  }
  return Shape(std::move(extents));
}

std::int64_t reduced_count(const Shape& shape, const std::vector<bool>& reduced) {
  std::int64_t count = 1;
  for (int d = 0; d < shape.rank(); ++d)
    if (reduced[static_cast<std::size_t>(d)]) count *= shape[d];
  return count;
}

class Reduce : public Op {
 public:
  Reduce(Kind kind, Dims dims, bool keepdim) : kind_(kind), dims_(std::move(dims)), keepdim_(keepdim) {}
  std::string_view name() const override { return names[static_cast<std::size_t>(kind_)]; }
  TuningHints tuning(const Specs&) const override { return {.list = "reduce", .positive = true, .last = true}; }
  Precision precision() const override { return kind_ == Kind::max || kind_ == Kind::min ? Precision::widest : Precision::full; }
  Fields fields() const override {
    return {{"dims", std::vector<std::int64_t>(dims_.begin(), dims_.end())}, {"keepdim", keepdim_}};
  }

  Specs infer(const Specs& inputs) const override {
    const auto& x = inputs[0];
    const auto reduced = reduced_dims(name(), x.shape, dims_);
    if (kind_ == Kind::mean) require_floating(name(), x);
    const bool extremum = kind_ == Kind::max || kind_ == Kind::min;
    if (extremum && reduced_count(x.shape, reduced) == 0)
      throw ShapeError(fmt::format("{}: there is no element to choose from in {}", name(), to_string(x)));
    return {{reduced_shape(x.shape, reduced, keepdim_), result_dtype(x.dtype)}};
  }

  Tensors vjp(const Tensors& inputs, const Tensors& outputs, const Tensors& gradients) const override {
    const auto& x = inputs[0];
    const auto reduced = reduced_dims(name(), x.shape(), dims_);
    const auto kept = reduced_shape(x.shape(), reduced, true);
    const Tensor g = reshape(gradients[0], kept);
    switch (kind_) {
      case Kind::sum: return {expand(g, x.shape())};
      case Kind::mean: return {expand(g / static_cast<double>(reduced_count(x.shape(), reduced)), x.shape())};
      case Kind::prod: {
        // The product of the others: of all without the zeros, divided by x, where no other one is zero. Where one is, it has
        // a slope by that one, which second derivatives need.
        const Tensor values = as_f32(x), is_zero = eq(values, 0.0), none = scalar_like(0, values);
        const Tensor zero = where(is_zero, values + 1.0, none), others_zero = sum(zero, dims_, true) - zero;
        const Tensor safe = where(is_zero, scalar_like(1, values), values);
        const Tensor others = as_f32(g) * (prod(safe, dims_, true) / safe);
        const Tensor vanishing = zero_factor_gradient(others, others_zero);
        return {cast(where(eq(others_zero, 0.0), others, where(eq(others_zero, 1.0), vanishing, none)), x.dtype())};
      }
      default: {
        // Counted in f32 or f64: f16 ends at 65504, and bf16 knows 257 no more.
        const Tensor chosen = cast(eq(x, reshape(outputs[0], kept)), computed_in(x.dtype()));
        return {cast(chosen * (as_f32(g) / sum(chosen, dims_, true)), x.dtype())};
      }
    }
  }

  std::optional<Alias> alias(const Specs& inputs, std::size_t) const override {
    // Where only extents of 1 are reduced, the values are the result.
    const auto& x = inputs[0];
    const bool same = reduced_count(x.shape, reduced_dims(name(), x.shape, dims_)) == 1 && result_dtype(x.dtype) == x.dtype;
    return same ? std::optional(Alias{}) : std::nullopt;
  }

  FusionHints fusion(const Specs& inputs) const override {
    FusionHints hints{.epilogue = true, .prologue = 0};
    if (kind_ != Kind::sum) return hints;
    const auto reduced = reduced_dims(name(), inputs[0].shape, dims_);
    if (const auto first = std::find(reduced.begin(), reduced.end(), true); first != reduced.end())
      hints.summed_dims = {static_cast<int>(first - reduced.begin())};
    return hints;
  }

  void lower(exec::Recorder& recorder) const override {
    // Runs of dimensions that are all kept or all reduced, outermost first; those of extent 1 belong to any run.
    struct Run {
      std::int64_t extent;
      bool reduced;
    };
    std::vector<Run> runs;
    const auto& spec = recorder.spec(recorder.input(0));
    const auto reduced = reduced_dims(name(), spec.shape, dims_);
    for (int d = 0; d < spec.shape.rank(); ++d) {
      const bool is_reduced = reduced[static_cast<std::size_t>(d)];
      if (spec.shape[d] == 1) continue;
      if (!runs.empty() && runs.back().reduced == is_reduced)
        runs.back().extent *= spec.shape[d];
      else
        runs.push_back({spec.shape[d], is_reduced});
    }
    // Nothing to reduce, but another dtype to give.
    if (std::none_of(runs.begin(), runs.end(), [](const Run& run) { return run.reduced; })) runs.insert(runs.begin(), {1, true});

    // One run after the other, the innermost first: it leaves the least.
    static constexpr ReduceKind kinds[] = {ReduceKind::sum, ReduceKind::sum, ReduceKind::prod, ReduceKind::max, ReduceKind::min};
    const auto count = reduced_count(spec.shape, reduced);
    ReduceProblem problem{.kind = kinds[static_cast<std::size_t>(kind_)], .x = recorder.input(0), .y = {}};
    while (true) {
      const auto last = std::find_if(runs.rbegin(), runs.rend(), [](const Run& run) { return run.reduced; }).base() - 1;
      problem.reduce = last->extent;
      problem.outer = problem.inner = 1;
      for (auto run = runs.begin(); run != last; ++run) problem.outer *= run->extent;
      for (auto run = last + 1; run != runs.end(); ++run) problem.inner *= run->extent;
      runs.erase(last);
      const bool final = std::none_of(runs.begin(), runs.end(), [](const Run& run) { return run.reduced; });
      if (final && kind_ == Kind::mean) problem.scale = 1.0 / static_cast<double>(count);
      problem.y = final ? recorder.output() : recorder.temporary({{problem.outer, problem.inner}, accumulator(spec.dtype)});
      record_reduce(problem, recorder);
      if (final) return;
      problem.x = problem.y;
    }
  }

 private:
  /// Sums and products of integers are wide.
  Dtype result_dtype(Dtype x) const { return kind_ == Kind::max || kind_ == Kind::min || is_floating(x) ? x : Dtype::i64; }

  Kind kind_;
  Dims dims_;
  bool keepdim_;
};

class ArgReduce : public Op {
 public:
  ArgReduce(bool greatest, int dim, bool keepdim) : greatest_(greatest), dim_(dim), keepdim_(keepdim) {}
  std::string_view name() const override { return greatest_ ? "argmax" : "argmin"; }
  TuningHints tuning(const Specs&) const override { return {.list = "arg_reduce", .last = true}; }
  Fields fields() const override { return {{"dim", std::int64_t{dim_}}, {"keepdim", keepdim_}}; }

  Specs infer(const Specs& inputs) const override {
    const auto& x = inputs[0];
    const auto reduced = reduced_dims(name(), x.shape, {dim_});
    if (reduced_count(x.shape, reduced) == 0)
      throw ShapeError(fmt::format("{}: there is no element to choose from in {}", name(), to_string(x)));
    return {{reduced_shape(x.shape, reduced, keepdim_), Dtype::i64}};
  }

  Tensors vjp(const Tensors&, const Tensors&, const Tensors&) const override { return {Tensor{}}; }

  void lower(exec::Recorder& recorder) const override {
    const auto& shape = recorder.spec(recorder.input(0)).shape;
    const Lines lines(shape, require_line(name(), shape, dim_));
    const ArgReduceProblem problem{.greatest = greatest_,
                                   .x = recorder.input(0),
                                   .y = recorder.output(),
                                   .outer = lines.outer,
                                   .reduce = lines.extent,
                                   .inner = lines.inner,
                                   .dtype = recorder.spec(recorder.input(0)).dtype};
    record_arg_reduce(problem, recorder);
  }

 private:
  bool greatest_;
  int dim_;
  bool keepdim_;
};

Tensor reduce(Kind kind, const Tensor& x, const Dims& dims, bool keepdim) {
  auto op = std::make_shared<Reduce>(kind, dims, keepdim);
  require_defined(op->name(), {{"x", x}});
  return apply(std::move(op), {x});
}

}  // namespace

}  // namespace ops

using namespace ops;

Tensor sum(const Tensor& x, const Dims& dims, bool keepdim) { return reduce(Kind::sum, x, dims, keepdim); }
Tensor mean(const Tensor& x, const Dims& dims, bool keepdim) { return reduce(Kind::mean, x, dims, keepdim); }
Tensor prod(const Tensor& x, const Dims& dims, bool keepdim) { return reduce(Kind::prod, x, dims, keepdim); }
Tensor max(const Tensor& x, const Dims& dims, bool keepdim) { return reduce(Kind::max, x, dims, keepdim); }
Tensor min(const Tensor& x, const Dims& dims, bool keepdim) { return reduce(Kind::min, x, dims, keepdim); }

Tensor argmax(const Tensor& x, int dim, bool keepdim) {
  require_defined("argmax", {{"x", x}});
  return apply(std::make_shared<ArgReduce>(true, dim, keepdim), {x});
}
Tensor argmin(const Tensor& x, int dim, bool keepdim) {
  require_defined("argmin", {{"x", x}});
  return apply(std::make_shared<ArgReduce>(false, dim, keepdim), {x});
}

Tensor var(const Tensor& x, const Dims& dims, int correction, bool keepdim) {
  require_defined("var", {{"x", x}});
  require_floating("var", x.spec());
  const auto count = reduced_count(x.shape(), reduced_dims("var", x.shape(), dims));
  // Squares of f16 would overflow, and those of bf16 lose what the difference has left.
  const Tensor wide = as_computed(x);
  const Tensor squares = sum(square(wide - mean(wide, dims, true)), dims, keepdim);
  return rounded(squares / static_cast<double>(std::max<std::int64_t>(0, count - correction)), x.dtype());
}

Tensor sum_to(const Tensor& x, const Shape& shape) {
  require_defined("sum_to", {{"x", x}});
  if (x.shape() == shape) return x;
  if (broadcast(x.shape(), shape, "sum_to") != x.shape())
    throw ShapeError(fmt::format("sum_to: shape {} does not broadcast to {}", to_string(shape), to_string(x.shape())));
  const int leading = x.rank() - shape.rank();
  Dims dims;
  for (int d = 0; d < x.rank(); ++d)
    if (d < leading || shape[d - leading] != x.size(d)) dims.push_back(d);
  return reshape(cast(dims.empty() ? x : sum(x, dims, true), x.dtype()), shape);
}

}  // namespace clnet
