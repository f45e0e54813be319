#include <fmt/format.h>

#include <algorithm>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/exec/choose/solver.h"
#include "lib/exec/launch/recorder.h"
#include "lib/graph/require.h"
#include "lib/ops/as_f32.h"
#include "lib/ops/elementwise/elementwise.h"
#include "lib/ops/group.h"
#include "lib/ops/lines.h"
#include "lib/ops/loops.h"
#include "lib/ops/rows.h"

namespace clnet {

namespace ops {

namespace {

struct SoftmaxProblem {
  bool logarithm;
  exec::Ref x, y;
  std::int64_t outer = 1, axis = 1, inner = 1;
};

class Softmax : public Op {
 public:
  Softmax(bool logarithm, int dim) : logarithm_(logarithm), dim_(dim) {}
  std::string_view name() const override { return logarithm_ ? "log_softmax" : "softmax"; }
  Precision precision() const override { return Precision::full; }
  Fields fields() const override { return {{"dim", std::int64_t{dim_}}}; }

  Specs infer(const Specs& inputs) const override {
    const auto& x = inputs[0];
    require_floating(name(), x);
    require_line(name(), x.shape, dim_);
    return {x};
  }

  Tensors vjp(const Tensors&, const Tensors& outputs, const Tensors& gradients) const override {
    const Tensor y = as_f32(outputs[0]), g = as_f32(gradients[0]);
    const Tensor dx = logarithm_ ? g - exp(y) * sum(g, {dim_}, true) : y * (g - sum(g * y, {dim_}, true));
    return {cast(dx, outputs[0].dtype())};
  }

  TuningHints tuning(const Specs&) const override { return {.list = "softmax", .last = true}; }
  FusionHints fusion(const Specs&) const override { return {.epilogue = true, .prologue = 0}; }
  void lower(exec::Recorder& recorder) const override;

 private:
  bool logarithm_;
  int dim_;
};

exec::Launch& launch(const SoftmaxProblem& problem, exec::Recorder& recorder, std::string_view program,
                     std::string_view function) {
  return recorder.kernel(program, function)
      .define("LOGARITHM", problem.logarithm ? 1 : 0)
      .in("x", problem.x)
      .out("y", problem.y)
      .detail(fmt::format("[{}, {}, {}]", problem.outer, problem.axis, problem.inner));
}

void fuse(exec::Launch& launch, const SoftmaxProblem& problem, exec::Recorder& recorder) {
  recorder.prologue(launch, "x");
  recorder.epilogue(launch, problem.axis, problem.inner);
}

void cpu_lower(const SoftmaxProblem& problem, exec::Recorder& recorder) {
  const auto width = recorder.config()["lanes"];
  const bool f32 = recorder.spec(problem.y).dtype == Dtype::f32;
  if (problem.inner == 1) {
    const bool narrow = problem.axis < width;
    const auto rows = rows_per_item(problem.outer, problem.axis, 4096, recorder.device());
    const auto per_item = narrow ? ceil_div(rows, width) * width : rows;
    fuse(launch(problem, recorder, "softmax_cpu", narrow ? "softmax_narrow_rows_cpu" : "softmax_rows_cpu")
             .define("VW", width)
             .define("KEEP_EXP", f32 && !problem.logarithm ? 1 : 0)
             .args({problem.outer, problem.axis, per_item})
             .range({ceil_div(problem.outer, per_item)}, {1}),
         problem, recorder);
  } else {
    fuse(launch(problem, recorder, "softmax_cpu", "softmax_columns_cpu")
             .define("VW", width)
             .define("KEEP_EXP", f32 && !problem.logarithm ? 1 : 0)
             .args({problem.axis, problem.inner})
             .range({problem.outer * ceil_div(problem.inner, width)}, {1}),
         problem, recorder);
  }
}

/// A work-item per line.
void lower_lines(const SoftmaxProblem& problem, exec::Recorder& recorder, std::string_view kernel, std::int64_t group) {
  require_loops("softmax", 3 * problem.axis, recorder.device());
  const auto lines = problem.outer * problem.inner;
  fuse(launch(problem, recorder, kernel, kernel).args({lines, problem.axis, problem.inner}).range({lines}, {group}), problem,
       recorder);
}

std::vector<exec::Config> gpu_configs(const SoftmaxProblem& problem, const DeviceInfo& device) {
  return problem.inner == 1 ? row_configs(problem.axis, device) : line_configs(device);
}

void gpu_lower(const SoftmaxProblem& problem, exec::Recorder& recorder) {
  const auto group = recorder.config()["group"], threads = recorder.config()["threads"];
  if (problem.inner != 1) return lower_lines(problem, recorder, "softmax_lines_gpu", group);
  fuse(define_group(launch(problem, recorder, "softmax_gpu", "softmax_gpu"), recorder)
           .define("ONCE", problem.axis <= row_in_registers * threads ? 1 : 0)
           .args({problem.outer, problem.axis, threads})
           .range({ceil_div(problem.outer, group / threads) * group}, {group}),
       problem, recorder);
}

void direct_lower(const SoftmaxProblem& problem, exec::Recorder& recorder) {
  lower_lines(problem, recorder, "softmax_direct", std::min<std::int64_t>(64, group_size(recorder.device())));
}

const exec::SolverList<SoftmaxProblem> softmax_solvers{
    "softmax",
    {{"cpu", needs_vectors<SoftmaxProblem>, cpu_lower, nullptr, lane_configs<SoftmaxProblem>},
     {"gpu", exec::accepts_everything<SoftmaxProblem>, gpu_lower, nullptr, gpu_configs},
     {"direct", exec::accepts_everything<SoftmaxProblem>, direct_lower}}};

void Softmax::lower(exec::Recorder& recorder) const {
  const auto& shape = recorder.spec(recorder.input(0)).shape;
  const Lines lines(shape, require_line(name(), shape, dim_));
  const SoftmaxProblem problem{.logarithm = logarithm_,
                               .x = recorder.input(0),
                               .y = recorder.output(),
                               .outer = lines.outer,
                               .axis = lines.extent,
                               .inner = lines.inner};
  softmax_solvers.lower(problem, recorder.device(), recorder);
}

}  // namespace

}  // namespace ops

Tensor softmax(const Tensor& x, int dim) {
  require_defined("softmax", {{"x", x}});
  return apply(std::make_shared<ops::Softmax>(false, dim), {x});
}
Tensor log_softmax(const Tensor& x, int dim) {
  require_defined("log_softmax", {{"x", x}});
  return apply(std::make_shared<ops::Softmax>(true, dim), {x});
}

Tensor softmin(const Tensor& x, int dim) {
  require_defined("softmin", {{"x", x}});
  ops::require_floating("softmin", x.spec());
  return softmax(-x, require_line("softmin", x.shape(), dim));
}

}  // namespace clnet
