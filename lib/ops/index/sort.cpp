// argsort by merging; sort and topk pick the values by it, so that their gradients are gather's.
#include <fmt/format.h>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/exec/choose/solver.h"
#include "lib/exec/launch/recorder.h"
#include "lib/graph/op.h"
#include "lib/graph/require.h"
#include "lib/ops/lines.h"

namespace clnet {

namespace ops {

namespace {

struct SortProblem {
  exec::Ref x, y;
  std::int64_t lines = 1, extent = 1, inner = 1;
  bool descending = false;
};

exec::Launch& define(exec::Launch& launch, const SortProblem& p) {
  if (p.descending) launch.define("DESCENDING", 1);
  return launch.detail(fmt::format("{} x {}", p.lines, p.extent));
}

/// Sorts blocks, then merges runs until there is one.
void lower_merges(const SortProblem& p, exec::Recorder& recorder, bool by_ranks) {
  constexpr std::int64_t block = 16;
  const std::int64_t local = by_ranks ? 64 : 1;
  const Spec spec{Shape{p.lines, p.extent}, Dtype::i32};
  const bool one_block = p.extent <= block;
  auto from = one_block ? p.y : recorder.temporary(spec);
  auto& blocks = define(recorder.kernel("argsort", "argsort").in("x", p.x).out("y", from), p);
  blocks.define("BLOCK", block).args({p.lines, p.extent, p.inner});
  if (one_block) blocks.define("FINAL", 1);
  blocks.range({(p.extent + block - 1) / block, p.lines}, {local, 1});
  if (one_block) return;
  for (std::int64_t width = block; width < p.extent; width *= 2) {
    const bool last = 2 * width >= p.extent;
    const auto to = last ? p.y : recorder.temporary(spec);
    auto& launch = define(recorder.kernel("argsort", "argsort").in("x", p.x).in("order", from).out("y", to), p);
    launch.args({p.lines, p.extent, p.inner, width});
    if (last) launch.define("FINAL", 1);
    if (by_ranks) launch.define("RANKS", 1);
    launch.range({by_ranks ? p.extent : (p.extent + 2 * width - 1) / (2 * width), p.lines}, {local, 1});
    from = to;
  }
}

const exec::SolverList<SortProblem> sort_solvers{
    "argsort",
    {{"merge_cpu",
      [](const SortProblem&, const DeviceInfo& device) -> std::optional<std::string> {
        if (!device.prefers_vector_kernels) return "a work-item for many elements is for CPUs";
        return std::nullopt;
      },
      [](const SortProblem& p, exec::Recorder& recorder) { lower_merges(p, recorder, false); }},
     {"ranks", exec::accepts_everything<SortProblem>,
      [](const SortProblem& p, exec::Recorder& recorder) { lower_merges(p, recorder, true); }},
     {"direct", exec::accepts_everything<SortProblem>, [](const SortProblem& p, exec::Recorder& recorder) {
        auto& launch = define(recorder.kernel("argsort", "argsort").in("x", p.x).out("y", p.y), p);
        launch.define("DIRECT", 1).define("FINAL", 1).args({p.lines, p.extent, p.inner});
        launch.range({p.extent, p.lines}, {64, 1});
      }}}};

class Argsort : public Op {
 public:
  Argsort(int dim, bool descending) : dim_(dim), descending_(descending) {}
  std::string_view name() const override { return "argsort"; }
  Fields fields() const override { return {{"dim", std::int64_t{dim_}}, {"descending", descending_}}; }

  Specs infer(const Specs& inputs) const override { return {{inputs[0].shape, Dtype::i64}}; }
  Tensors vjp(const Tensors&, const Tensors&, const Tensors&) const override { return Tensors(1); }
  void lower(exec::Recorder& recorder) const override {
    const auto& shape = recorder.spec(recorder.input(0)).shape;
    if (shape.numel() == 0) return;
    const Lines lines(shape, dim_);
    const SortProblem problem{recorder.input(0), recorder.output(), lines.count(), lines.extent, lines.inner, descending_};
    sort_solvers.lower(problem, recorder.device(), recorder);
  }

 private:
  int dim_;
  bool descending_;
};

/// A scalar is a line of one element.
Tensor order_of(std::string_view op, const Tensor& x, int dim, bool descending) {
  require_defined(op, {{"x", x}});
  if (x.rank() == 0 && (dim == 0 || dim == -1)) return zeros({}, Dtype::i64);
  return apply(std::make_shared<Argsort>(require_dim(op, x, dim), descending), {x});
}

SortResult picked(const Tensor& x, int dim, const Tensor& indices) {
  return {x.rank() == 0 ? x : gather(x, dim, indices), indices};
}

}  // namespace

}  // namespace ops

Tensor argsort(const Tensor& x, int dim, bool descending) { return ops::order_of("argsort", x, dim, descending); }

SortResult sort(const Tensor& x, int dim, bool descending) {
  return ops::picked(x, dim, ops::order_of("sort", x, dim, descending));
}

SortResult topk(const Tensor& x, std::int64_t k, int dim, bool largest) {
  const auto order = ops::order_of("topk", x, dim, largest);
  const auto extent = x.rank() == 0 ? 1 : x.size(dim);
  if (k < 0 || k > extent) throw ShapeError(fmt::format("topk: {} of {} elements along dimension {}", k, extent, dim));
  if (x.rank() == 0) return k == 1 ? SortResult{x, order} : SortResult{zeros({0}, x.dtype()), zeros({0}, Dtype::i64)};
  return ops::picked(x, dim, slice(order, dim, 0, k));
}

}  // namespace clnet
