// cummax, cummin and logcumsumexp. The first two pick their values by index, so that their gradients are gather's.
#include <fmt/format.h>

#include <limits>
#include <vector>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/exec/choose/solver.h"
#include "lib/exec/launch/recorder.h"
#include "lib/graph/op.h"
#include "lib/graph/require.h"
#include "lib/ops/as_f32.h"
#include "lib/ops/elementwise/elementwise.h"
#include "lib/ops/lines.h"
#include "lib/ops/reduce/linear_scan.h"
#include "lib/ops/rows.h"

namespace clnet {

namespace ops {

namespace {

enum class RunningKind : std::uint8_t { most, least, log_sum };
struct RunningProblem {
  exec::Ref x, y;
  Lines lines;
  RunningKind kind;
  Dtype dtype = Dtype::f32;
};

/// A work-item for each line.
void lower_running_lines(const RunningProblem& p, exec::Recorder& recorder) {
  const auto& lines = p.lines;
  const auto* name = p.kind == RunningKind::log_sum ? "logcumsumexp" : "cummax";
  in_pieces(lines.extent, [&](std::int64_t begin, std::int64_t end) {
    auto& launch = recorder.kernel(name, name).in("x", p.x);
    if (p.kind == RunningKind::least) launch.define("LEAST", 1);
    begin == 0 ? launch.out("y", p.y) : launch.inout("y", p.y);
    launch.args({lines.count(), lines.extent, lines.inner, begin, end});
    launch.range({lines.count()}, {64}).detail(fmt::format("{} x {}", lines.count(), lines.extent));
  });
}

/// A work-item for each element, and a launch for each doubling of what is known.
void lower_running_doubling(const RunningProblem& p, exec::Recorder& recorder) {
  const auto& lines = p.lines;
  const auto all = lines.count() * lines.extent;
  const bool sums = p.kind == RunningKind::log_sum;
  const Spec spec{Shape{all}, sums ? computed_in(recorder.spec(p.x).dtype) : Dtype::i32};
  exec::Ref known = p.x;
  for (std::int64_t width = 1;; width *= 2) {
    const bool first = width == 1, last = 2 * width >= lines.extent;
    const auto to = last ? p.y : recorder.temporary(spec);
    auto& launch = recorder.kernel("scan_doubling", "scan_doubling").define("KIND", static_cast<std::int64_t>(p.kind));
    if (first && !sums) launch.define("FIRST", 1);
    launch.in("x", sums ? known : p.x);
    if (!first && !sums) launch.in("known", known);
    launch.out("y", to).args({all, lines.extent, lines.inner, width});
    launch.range({all}, {64}).detail(fmt::format("{} x {}, {}", lines.count(), lines.extent, width));
    if (last) return;
    known = to;
  }
}

std::optional<std::string> declines_doubling(const RunningProblem& p, const DeviceInfo& device) {
  constexpr std::int64_t few = 64, lines_of_a_unit = 256;
  if (p.lines.extent <= few) return "so few elements are taken one after the other faster";
  if (p.lines.count() >= lines_of_a_unit * device.compute_units) return "there are lines enough for all units";
  return std::nullopt;
}

std::optional<std::string> rejects_running_vectors(const RunningProblem& p, const DeviceInfo& device) {
  if (auto refusal = needs_vectors(p, device)) return refusal;
  if (!is_floating(p.dtype)) return "it is of integers";
  if (p.lines.inner != 1) return "lines do not lie in one piece";
  return std::nullopt;
}

void lower_running_vectors(const RunningProblem& p, exec::Recorder& recorder) {
  constexpr std::int64_t item_elements = 16384;
  const auto count = p.lines.count(), length = p.lines.extent;
  const auto per_item = rows_per_item(count, length, item_elements, recorder.device());
  auto& launch = recorder.kernel("cummax_vectors_cpu", "cummax_vectors_cpu").in("x", p.x).out("y", p.y);
  launch.define("VW", recorder.config()["lanes"]);
  if (p.kind == RunningKind::least) launch.define("LEAST", 1);
  launch.args({count, length, per_item}).range({ceil_div(count, per_item)}, {1}).detail(fmt::format("{} x {}", count, length));
}

const exec::SolverList<RunningProblem> cummax_solvers{
    "cummax",
    {{"vectors_cpu", rejects_running_vectors, lower_running_vectors, nullptr, lane_configs<RunningProblem>},
     {"doubling", exec::accepts_everything<RunningProblem>, lower_running_doubling, declines_doubling, nullptr,
      exec::MadeFor::gpus},
     {"lines", exec::accepts_everything<RunningProblem>, lower_running_lines}}};
const exec::SolverList<RunningProblem> logcumsumexp_solvers{
    "logcumsumexp",
    {{"doubling", exec::accepts_everything<RunningProblem>, lower_running_doubling, declines_doubling, nullptr,
      exec::MadeFor::gpus},
     {"lines", exec::accepts_everything<RunningProblem>, lower_running_lines}}};

/// The index of the largest, or smallest, element so far.
class RunningExtreme : public Op {
 public:
  RunningExtreme(int dim, bool least) : dim_(dim), least_(least) {}
  std::string_view name() const override { return least_ ? "cummin" : "cummax"; }
  Fields fields() const override { return {{"dim", std::int64_t{dim_}}}; }

  Specs infer(const Specs& inputs) const override { return {{inputs[0].shape, Dtype::i64}}; }
  Tensors vjp(const Tensors&, const Tensors&, const Tensors&) const override { return Tensors(1); }
  void lower(exec::Recorder& recorder) const override {
    const auto& shape = recorder.spec(recorder.output()).shape;
    if (shape.numel() == 0) return;
    cummax_solvers.lower({recorder.input(0), recorder.output(), Lines(shape, dim_),
                          least_ ? RunningKind::least : RunningKind::most, recorder.spec(recorder.input(0)).dtype},
                         recorder.device(), recorder);
  }

 private:
  int dim_;
  bool least_;
};

SortResult running_extreme(std::string_view op, const Tensor& x, int dim, bool least) {
  require_defined(op, {{"x", x}});
  const int at = require_line(op, x.shape(), dim);
  const Tensor line = as_line(x), indices = apply(std::make_shared<RunningExtreme>(at, least), {line});
  return {reshape(gather(line, at, indices), x.shape()), reshape(indices, x.shape())};
}

/// Of f32.
class LogCumsumExp : public Op {
 public:
  explicit LogCumsumExp(int dim) : dim_(dim) {}
  std::string_view name() const override { return "logcumsumexp"; }
  Precision precision() const override { return Precision::full; }
  Fields fields() const override { return {{"dim", std::int64_t{dim_}}}; }

  Specs infer(const Specs& inputs) const override { return {inputs[0]}; }

  Tensors vjp(const Tensors& inputs, const Tensors& outputs, const Tensors& gradients) const override {
    // exp(x[j]) times the sum of g[i] exp(-y[i]) from j on, as exp(x[j] - y[j]) times that of g[i] exp(y[j] - y[i]): y never
    // falls, so no factor is above 1.
    const Tensor &x = inputs[0], &y = outputs[0], none = scalar_like(0, y), next = roll(y, {-1}, dim_);
    std::vector<std::int64_t> places(static_cast<std::size_t>(y.rank()), 1);
    places[static_cast<std::size_t>(dim_)] = y.size(dim_);
    const Tensor last = eq(reshape(arange(y.size(dim_)), places), static_cast<double>(y.size(dim_) - 1));
    const double nothing = -std::numeric_limits<double>::infinity();
    const Tensor step = where(logical_or(last, eq(next, nothing)), none, y - next), absent = eq(x, nothing);
    const Tensor sums = linear_scan(exp(step), gradients[0], dim_, true);
    return {where(absent, none, exp(where(absent, none, x - y)) * sums)};
  }

  void lower(exec::Recorder& recorder) const override {
    const auto& shape = recorder.spec(recorder.output()).shape;
    if (shape.numel() == 0) return;
    logcumsumexp_solvers.lower({recorder.input(0), recorder.output(), Lines(shape, dim_), RunningKind::log_sum},
                               recorder.device(), recorder);
  }

 private:
  int dim_;
};

}  // namespace

}  // namespace ops

SortResult cummax(const Tensor& x, int dim) { return ops::running_extreme("cummax", x, dim, false); }
SortResult cummin(const Tensor& x, int dim) { return ops::running_extreme("cummin", x, dim, true); }

Tensor logcumsumexp(const Tensor& x, int dim) {
  require_defined("logcumsumexp", {{"x", x}});
  ops::require_floating("logcumsumexp", x.spec());
  const int at = require_line("logcumsumexp", x.shape(), dim);
  const Tensor sums = apply(std::make_shared<ops::LogCumsumExp>(at), {ops::as_f32(ops::as_line(x))});
  return reshape(ops::rounded(sums, x.dtype()), x.shape());
}

}  // namespace clnet
