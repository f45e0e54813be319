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
#include "lib/ops/norm/normalize.h"
#include "lib/ops/reduce/reduce.h"
#include "lib/ops/rows.h"

namespace clnet {

namespace ops {

namespace {

struct LayerNormProblem {
  enum class What : std::uint8_t { forward, backward, parameters };  // parameters: the gradients of weight and bias
  What what = What::forward;
  bool weighted = false, biased = false;
  double eps = 0;
  std::int64_t rows = 1, length = 1;
  exec::Ref x, weight, bias, mean, rstd;
  exec::Ref y;      // forward
  exec::Ref g, dx;  // backward
  exec::Ref dweight, dbias;
  bool backward() const { return what == What::backward; }
};
using What = LayerNormProblem::What;

LayerNormProblem problem_of(What what, const Shape& x, std::int64_t dims) {
  LayerNormProblem problem;
  problem.what = what;
  for (int d = 0; d < x.rank(); ++d) (d < x.rank() - dims ? problem.rows : problem.length) *= x[d];
  return problem;
}

/// All but the number that the solver divides rows by, and the range.
exec::Launch& launch(const LayerNormProblem& problem, exec::Recorder& recorder, std::string_view program,
                     std::string_view function, std::int64_t divisor) {
  auto& result = recorder.kernel(program, function)
                     .define("BACKWARD", problem.backward() ? 1 : 0)
                     .define("WEIGHTED", problem.weighted ? 1 : 0)
                     .define("BIASED", problem.biased ? 1 : 0)
                     .detail(fmt::format("[{}, {}]", problem.rows, problem.length))
                     .in("x", problem.x);
  if (problem.backward()) result.in("g", problem.g).in("mean", problem.mean).in("rstd", problem.rstd);
  if (problem.weighted) result.in("weight", problem.weight);
  if (problem.biased) result.in("bias", problem.bias);
  if (problem.backward())
    result.out("dx", problem.dx);
  else
    result.out("y", problem.y).out("mean", problem.mean).out("rstd", problem.rstd);
  result.args({problem.rows, problem.length, divisor});
  if (!problem.backward()) result.arg_float(problem.eps);
  return result;
}

void fuse(exec::Launch& launch, const LayerNormProblem& problem, exec::Recorder& recorder) {
  recorder.prologue(launch, problem.backward() ? "g" : "x");
  if (!problem.backward()) recorder.epilogue(launch, problem.length, 1);
}

/// Sums over chunks of rows by `width` lanes, in work-items of many columns or groups of those of one, and over these sums.
void lower_parameters(const LayerNormProblem& problem, exec::Recorder& recorder, std::int64_t width, std::int64_t group,
                      std::int64_t wanted_chunks) {
  constexpr std::int64_t most_rows = 4096;  // so that no sum takes too many values
  const auto& [rows, length] = std::pair(problem.rows, problem.length);
  const auto wanted = std::max(wanted_chunks, ceil_div(rows, most_rows));
  const auto chunk = std::max<std::int64_t>(8, ceil_div(ceil_div(rows, std::max<std::int64_t>(wanted, 1)), 8) * 8);
  const auto chunks = ceil_div(rows, chunk);
  const auto by_weight = recorder.temporary({{chunks, length}, computed_in(recorder.spec(problem.x).dtype)});
  const auto by_bias =
      problem.biased ? recorder.temporary({{chunks, length}, computed_in(recorder.spec(problem.x).dtype)}) : exec::Ref{};
  auto& launch = recorder.kernel("layer_norm_parameters", "layer_norm_parameters")
                     .define("WEIGHTED", 1)
                     .define("BIASED", problem.biased ? 1 : 0)
                     .define("VW", width)
                     .detail(fmt::format("[{}, {}]", rows, length))
                     .in("x", problem.x)
                     .in("g", problem.g)
                     .in("mean", problem.mean)
                     .in("rstd", problem.rstd)
                     .out("by_weight", by_weight);
  if (problem.biased) launch.out("by_bias", by_bias);
  if (width > 1) {
    // Few rows in pieces, and no more columns than the first-level cache holds sums.
    constexpr std::int64_t least = 1024, most = 4096;
    const auto even = ceil_div(ceil_div(length, ceil_div(wanted, std::max<std::int64_t>(chunks, 1))), 64) * 64;
    const auto piece = std::clamp(even, least, most);
    launch.args({rows, length, chunk, piece}).range({chunks, ceil_div(length, piece)}, {1, 1});
  } else {
    launch.args({rows, length, chunk, length}).range({chunks * length}, {group});
  }
  record_reduce(
      {.x = by_weight, .y = problem.dweight, .reduce = chunks, .inner = length, .dtype = recorder.spec(by_weight).dtype},
      recorder);
  if (problem.biased)
    record_reduce({.x = by_bias, .y = problem.dbias, .reduce = chunks, .inner = length, .dtype = recorder.spec(by_bias).dtype},
                  recorder);
}

void cpu_lower(const LayerNormProblem& problem, exec::Recorder& recorder) {
  const auto lanes = recorder.config()["lanes"];
  if (problem.what == What::parameters) {
    constexpr std::int64_t task_elements = 16384;  // some microseconds of work, against about one of overhead
    const auto tasks = std::clamp<std::int64_t>(problem.rows * problem.length / task_elements, 1,
                                                std::int64_t{4} * recorder.device().compute_units);
    return lower_parameters(problem, recorder, lanes, 1, tasks);
  }
  const auto per_item = rows_per_item(problem.rows, problem.length, 8192, recorder.device());
  fuse(launch(problem, recorder, "layer_norm_cpu", problem.backward() ? "layer_norm_backward_cpu" : "layer_norm_cpu", per_item)
           .define("VW", lanes)
           .range({ceil_div(problem.rows, per_item)}, {1}),
       problem, recorder);
}

std::vector<exec::Config> gpu_configs(const LayerNormProblem& problem, const DeviceInfo& device) {
  return problem.what == What::parameters ? line_configs(device) : row_configs(problem.length, device);
}

void gpu_lower(const LayerNormProblem& problem, exec::Recorder& recorder) {
  const auto group = recorder.config()["group"], threads = recorder.config()["threads"];
  if (problem.what == What::parameters) {
    const std::int64_t items = std::int64_t{2048} * recorder.device().compute_units;
    const auto chunks = std::min(ceil_div(items, std::max<std::int64_t>(problem.length, 1)), problem.rows / 32);
    return lower_parameters(problem, recorder, 1, group, chunks);
  }
  const auto function = problem.backward() ? "layer_norm_backward_rows" : "layer_norm_rows";
  fuse(define_group(launch(problem, recorder, "layer_norm_rows", function, threads), recorder)
           .define("ONCE", problem.length <= row_in_registers * threads ? 1 : 0)
           .range({ceil_div(problem.rows, group / threads) * group}, {group}),
       problem, recorder);
}

void direct_lower(const LayerNormProblem& problem, exec::Recorder& recorder) {
  const auto group = std::min<std::int64_t>(64, group_size(recorder.device()));
  if (problem.what == What::parameters) return lower_parameters(problem, recorder, 1, group, 1);
  fuse(launch(problem, recorder, "layer_norm_rows", problem.backward() ? "layer_norm_backward_rows" : "layer_norm_rows", 1)
           .define("GROUP", 0)
           .range({problem.rows}, {group}),
       problem, recorder);
}

const exec::SolverList<LayerNormProblem> layer_norm_solvers{
    "layer_norm",
    {{"cpu", needs_vectors<LayerNormProblem>, cpu_lower, nullptr, lane_configs<LayerNormProblem>},
     {"gpu", exec::accepts_everything<LayerNormProblem>, gpu_lower, nullptr, gpu_configs},
     {"direct", exec::accepts_everything<LayerNormProblem>, direct_lower}}};

/// Inputs: x, the gradient of y, mean, rstd; weight. Output: the gradient of x.
class LayerNormBackward : public Op {
 public:
  LayerNormBackward(std::int64_t dims, bool weighted) : dims_(dims), weighted_(weighted) {}
  std::string_view name() const override { return "layer_norm_backward"; }
  TuningHints tuning(const Specs&) const override { return {.list = "layer_norm", .last = true}; }
  FusionHints fusion(const Specs&) const override { return {.prologue = 1}; }
  Fields fields() const override { return {{"dims", dims_}, {"weighted", weighted_}}; }
  Specs infer(const Specs& inputs) const override { return {inputs[0]}; }
  Tensors vjp(const Tensors& inputs, const Tensors&, const Tensors& gradients) const override {
    const Tensor x = as_computed(inputs[0]), g = as_computed(inputs[1]);
    const Tensor weight = weighted_ ? as_computed(inputs[4]) : Tensor{};
    Dims dims;
    for (int d = x.rank() - static_cast<int>(dims_); d < x.rank(); ++d) dims.push_back(d);
    const auto second =
        normalize_second_order(as_computed(gradients[0]), x, weighted_ ? g * weight : g, inputs[2], inputs[3], dims);
    Tensors result{cast(second.x, inputs[0].dtype()), cast(weighted_ ? second.h * weight : second.h, inputs[1].dtype()),
                   second.mean, second.rstd};
    if (weighted_) result.push_back(cast(sum_to(second.h * g, weight.shape()), inputs[4].dtype()));
    return result;
  }
  void lower(exec::Recorder& recorder) const override {
    auto problem = problem_of(What::backward, recorder.spec(recorder.input(0)).shape, dims_);
    problem.weighted = weighted_;
    problem.x = recorder.input(0);
    problem.g = recorder.input(1);
    problem.mean = recorder.input(2);
    problem.rstd = recorder.input(3);
    if (weighted_) problem.weight = recorder.input(4);
    problem.dx = recorder.output();
    layer_norm_solvers.lower(problem, recorder.device(), recorder);
  }

 private:
  std::int64_t dims_;
  bool weighted_;
};

/// The gradients of weight and bias, in f32. Inputs: x, the gradient of y, mean, rstd.
class LayerNormParameters : public Op {
 public:
  LayerNormParameters(std::int64_t dims, bool biased) : dims_(dims), biased_(biased) {}
  std::string_view name() const override { return "layer_norm_parameters"; }
  TuningHints tuning(const Specs&) const override { return {.list = "layer_norm", .last = true}; }
  Fields fields() const override { return {{"dims", dims_}, {"biased", biased_}}; }
  Specs infer(const Specs& inputs) const override {
    const auto& x = inputs[0].shape;
    const Spec normalized{Shape(std::vector<std::int64_t>(x.end() - dims_, x.end())), computed_in(inputs[0].dtype)};
    return Specs(biased_ ? 2 : 1, normalized);
  }
  Tensors vjp(const Tensors& inputs, const Tensors&, const Tensors& gradients) const override {
    const Tensor x = as_computed(inputs[0]), g = as_computed(inputs[1]), &mean = inputs[2], &rstd = inputs[3];
    Tensor dx, dg, dmean, drstd;
    if (gradients[0].defined()) {  // of the weight's gradient, the sum of g (x - mean) rstd
      const Tensor slope = g * gradients[0], by_x = slope * rstd;
      dx = by_x;
      dg = (x - mean) * rstd * gradients[0];
      dmean = -sum_to(by_x, mean.shape());
      drstd = sum_to(slope * (x - mean), rstd.shape());
    }
    if (biased_ && gradients[1].defined()) {
      const Tensor wide = expand(gradients[1], x.shape());
      dg = dg.defined() ? dg + wide : wide;
    }
    return {dx.defined() ? cast(dx, inputs[0].dtype()) : Tensor{}, cast(dg, inputs[1].dtype()), dmean, drstd};
  }
  void lower(exec::Recorder& recorder) const override {
    auto problem = problem_of(What::parameters, recorder.spec(recorder.input(0)).shape, dims_);
    problem.biased = biased_;
    problem.x = recorder.input(0);
    problem.g = recorder.input(1);
    problem.mean = recorder.input(2);
    problem.rstd = recorder.input(3);
    problem.dweight = recorder.output(0);
    if (biased_) problem.dbias = recorder.output(1);
    layer_norm_solvers.lower(problem, recorder.device(), recorder);
  }

 private:
  std::int64_t dims_;
  bool biased_;
};

/// Inputs: x; weight; bias. Outputs: y, and f32 per row: mean and reciprocal of the standard deviation.
class LayerNorm : public Op {
 public:
  LayerNorm(std::int64_t dims, bool weighted, bool biased, double eps)
      : dims_(dims), weighted_(weighted), biased_(biased), eps_(eps) {}
  std::string_view name() const override { return "layer_norm"; }
  TuningHints tuning(const Specs&) const override { return {.last = true}; }
  Precision precision() const override { return Precision::full; }
  FusionHints fusion(const Specs&) const override { return {.epilogue = true, .prologue = 0}; }
  Fields fields() const override { return {{"dims", dims_}, {"weighted", weighted_}, {"biased", biased_}, {"eps", eps_}}; }

  Specs infer(const Specs& inputs) const override {
    const auto& x = inputs[0];
    require_floating(name(), x);
    if (dims_ < 1 || dims_ > x.shape.rank())
      throw ShapeError(fmt::format("layer_norm: x {} has no last {} dimensions", to_string(x), dims_));
    const auto split = x.shape.end() - dims_;
    const Shape normalized(std::vector<std::int64_t>(split, x.shape.end()));
    if (normalized.numel() == 0) throw ShapeError(fmt::format("layer_norm: there is nothing to normalise in x {}", to_string(x)));
    for (std::size_t i = 1; i < inputs.size(); ++i) {
      const auto what = i == 1 && weighted_ ? "weight" : "bias";
      require_floating(fmt::format("layer_norm's {}", what), inputs[i]);
      if (x.dtype == Dtype::f64 || inputs[i].dtype == Dtype::f64) require_same_dtype(name(), x, inputs[i]);
      if (inputs[i].shape != normalized)
        throw ShapeError(fmt::format("layer_norm: {} must have shape {} for the last {} dimensions of x {}, got {}", what,
                                     to_string(normalized), dims_, to_string(x), to_string(inputs[i].shape)));
    }
    std::vector<std::int64_t> rows(x.shape.begin(), split);
    rows.resize(static_cast<std::size_t>(x.shape.rank()), 1);
    const Spec statistic{Shape(std::move(rows)), computed_in(x.dtype)};
    return {x, statistic, statistic};
  }

  Tensors vjp(const Tensors& inputs, const Tensors& outputs, const Tensors& gradients) const override {
    Tensors result(inputs.size());
    const auto &x = inputs[0], &g = gradients[0];
    const Tensor wide = as_computed(x);
    if (g.defined()) {
      Tensors all{x, g, outputs[1], outputs[2]};
      if (weighted_) all.push_back(inputs[1]);
      // A line of one element does not depend on it. The kernels' rounding would come out times 1 / sqrt(eps). NaN stays NaN.
      result[0] = inputs[0].numel() == outputs[1].numel()
                      ? x * 0.0 * g
                      : clnet::apply(std::make_shared<LayerNormBackward>(dims_, weighted_), std::move(all));
      if (weighted_) {
        const auto both = apply_all(std::make_shared<LayerNormParameters>(dims_, biased_), {x, g, outputs[1], outputs[2]});
        result[1] = cast(both[0], inputs[1].dtype());
        if (biased_) result[2] = cast(both[1], inputs[2].dtype());
      } else if (biased_) {
        result[1] = cast(sum_to(as_computed(g), inputs[1].shape()), inputs[1].dtype());
      }
    }
    if (const Tensor more = statistics_gradient(wide, outputs[1], outputs[2], gradients[1], gradients[2]); more.defined())
      result[0] = result[0].defined() ? result[0] + cast(more, x.dtype()) : cast(more, x.dtype());
    return result;
  }

  void lower(exec::Recorder& recorder) const override {
    auto problem = problem_of(What::forward, recorder.spec(recorder.input(0)).shape, dims_);
    problem.weighted = weighted_;
    problem.biased = biased_;
    problem.eps = eps_;
    problem.x = recorder.input(0);
    std::size_t next = 1;
    if (weighted_) problem.weight = recorder.input(next++);
    if (biased_) problem.bias = recorder.input(next);
    problem.y = recorder.output(0);
    problem.mean = recorder.output(1);
    problem.rstd = recorder.output(2);
    layer_norm_solvers.lower(problem, recorder.device(), recorder);
  }

 private:
  std::int64_t dims_;
  bool weighted_, biased_;
  double eps_;
};

}  // namespace

}  // namespace ops

Tensor layer_norm(const Tensor& x, int normalized_dims, const Tensor& weight, const Tensor& bias, double eps) {
  require_defined("layer_norm", {{"x", x}});
  std::vector<Tensor> inputs{x};
  if (weight.defined()) inputs.push_back(weight);
  if (bias.defined()) inputs.push_back(bias);
  const int dims = weight.defined() ? weight.rank() : normalized_dims;
  return apply_all(std::make_shared<ops::LayerNorm>(dims, weight.defined(), bias.defined(), eps), std::move(inputs))[0];
}

}  // namespace clnet
