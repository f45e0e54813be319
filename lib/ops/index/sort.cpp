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
  Dtype dtype = Dtype::f32;
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

/// Keys are numbers of 32 bits.
std::optional<std::string> rejects_keys(Dtype dtype, const DeviceInfo& device) {
  if (!device.prefers_vector_kernels) return "a work-item for many elements is for CPUs";
  if (size_of(dtype) > sizeof(std::uint32_t)) return "keys have 32 bits";
  return std::nullopt;
}

exec::Launch& define_keys(exec::Launch& launch, Dtype dtype, bool descending) {
  if (is_floating(dtype)) launch.define("FLOATS", 1);
  if (descending) launch.define("DESCENDING", 1);
  return launch;
}

/// A work-item for each line.
void lower_radix(const SortProblem& p, exec::Recorder& recorder) {
  // More digits at once are fewer passes, and more counters.
  constexpr std::int64_t long_line = 8192, digit = 8, long_digit = 11;
  const Spec spec{Shape{p.lines, p.extent}, Dtype::i64};
  auto& launch = recorder.kernel("argsort_radix_cpu", "argsort_radix_cpu").in("x", p.x);
  launch.out("pairs", recorder.temporary(spec)).out("more", recorder.temporary(spec)).out("y", p.y);
  define_keys(launch, p.dtype, p.descending).define("BITS", p.extent < long_line ? digit : long_digit);
  launch.args({p.lines, p.extent, p.inner}).range({p.lines}, {1}).detail(fmt::format("{} x {}", p.lines, p.extent));
}

std::optional<std::string> rejects_radix(const SortProblem& p, const DeviceInfo& device) {
  constexpr std::int64_t most = std::int64_t{1} << 27;
  if (p.lines * p.extent > most) return "pairs of keys and places would take much memory";
  return rejects_keys(p.dtype, device);
}

std::optional<std::string> declines_radix(const SortProblem& p, const DeviceInfo&) {
  constexpr std::int64_t short_line = 64;
  if (p.extent < short_line) return "counting digits takes longer than merging so few elements";
  return std::nullopt;
}

const exec::SolverList<SortProblem> sort_solvers{
    "argsort",
    {{"radix_cpu", rejects_radix, lower_radix, declines_radix},
     {"merge_cpu",
      [](const SortProblem&, const DeviceInfo& device) -> std::optional<std::string> {
        if (!device.prefers_vector_kernels) return "a work-item for many elements is for CPUs";
        return std::nullopt;
      },
      [](const SortProblem& p, exec::Recorder& recorder) { lower_merges(p, recorder, false); }, nullptr, nullptr,
      exec::MadeFor::all, true},
     {"ranks", exec::accepts_everything<SortProblem>,
      [](const SortProblem& p, exec::Recorder& recorder) { lower_merges(p, recorder, true); }, nullptr, nullptr,
      exec::MadeFor::all, true},
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
    const SortProblem problem{recorder.input(0),
                              recorder.output(),
                              lines.count(),
                              lines.extent,
                              lines.inner,
                              descending_,
                              recorder.spec(recorder.input(0)).dtype};
    sort_solvers.lower(problem, recorder.device(), recorder);
  }

 private:
  int dim_;
  bool descending_;
};

struct TopProblem {
  SortProblem sort;
  std::int64_t count = 1;
};

constexpr std::int64_t most_kept = 64;

std::optional<std::string> rejects_kept(const TopProblem& p, const DeviceInfo& device) {
  if (p.count > most_kept) return "so many elements are not kept beside the others";
  return rejects_keys(p.sort.dtype, device);
}

/// A work-item for each line, which keeps the first elements so far.
void lower_kept(const TopProblem& p, exec::Recorder& recorder) {
  const auto& sort = p.sort;
  std::int64_t most = 1;
  while (most < p.count) most *= 4;
  auto& launch = recorder.kernel("topk", "topk").in("x", sort.x).out("y", sort.y);
  define_keys(launch, sort.dtype, sort.descending).define("MOST", most);
  if (sort.dtype == Dtype::f32 && sort.inner == 1) launch.define("DENSE", 1);
  launch.args({sort.lines, sort.extent, p.count, sort.inner}).range({sort.lines}, {1});
  launch.detail(fmt::format("{} of {} x {}", p.count, sort.lines, sort.extent));
}

void lower_sorted(const TopProblem& p, exec::Recorder& recorder) {
  auto sort = p.sort;
  sort.y = recorder.temporary({Shape{sort.lines, sort.extent}, Dtype::i64});
  sort_solvers.lower(sort, recorder.device(), recorder);
  const auto all = sort.lines * p.count;
  auto& launch = recorder.kernel("topk", "topk").define("COPY", 1).in("order", sort.y).out("y", p.sort.y);
  launch.args({all, sort.extent, p.count, sort.inner}).range({all}, {64});
  launch.detail(fmt::format("{} of {} x {}", p.count, sort.lines, sort.extent));
}

const exec::SolverList<TopProblem> top_solvers{
    "topk", {{"kept_cpu", rejects_kept, lower_kept}, {"sorted", exec::accepts_everything<TopProblem>, lower_sorted}}};

/// The indices of the first elements in order.
class Top : public Op {
 public:
  Top(int dim, std::int64_t count, bool descending) : dim_(dim), count_(count), descending_(descending) {}
  std::string_view name() const override { return "topk"; }
  Fields fields() const override { return {{"dim", std::int64_t{dim_}}, {"count", count_}, {"descending", descending_}}; }

  Specs infer(const Specs& inputs) const override { return {{inputs[0].shape.with(dim_, count_), Dtype::i64}}; }
  Tensors vjp(const Tensors&, const Tensors&, const Tensors&) const override { return Tensors(1); }
  void lower(exec::Recorder& recorder) const override {
    const auto& [shape, dtype] = recorder.spec(recorder.input(0));
    const Lines lines(shape, dim_);
    if (lines.count() == 0) return;
    top_solvers.lower(
        {{recorder.input(0), recorder.output(), lines.count(), lines.extent, lines.inner, descending_, dtype}, count_},
        recorder.device(), recorder);
  }

 private:
  int dim_;
  std::int64_t count_;
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
  require_defined("topk", {{"x", x}});
  const int at = require_line("topk", x.shape(), dim);
  const auto extent = x.rank() == 0 ? 1 : x.size(at);
  if (k < 0 || k > extent) throw ShapeError(fmt::format("topk: {} of {} elements along dimension {}", k, extent, dim));
  if (x.rank() == 0)
    return k == 1 ? SortResult{x, zeros({}, Dtype::i64)} : SortResult{zeros({0}, x.dtype()), zeros({0}, Dtype::i64)};
  if (k == 0 || x.numel() == 0) return {zeros(x.shape().with(at, k), x.dtype()), zeros(x.shape().with(at, k), Dtype::i64)};
  return ops::picked(x, at, apply(std::make_shared<ops::Top>(at, k, largest), {x}));
}

}  // namespace clnet
