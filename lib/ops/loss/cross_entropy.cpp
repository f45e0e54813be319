// The loss of every row is one operation with its own backward; means and sums over rows are graph around it.
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
#include "lib/ops/loss/labels.h"
#include "lib/ops/rows.h"

namespace clnet {

namespace ops {

namespace {

struct Options {
  bool weighted = false;
  std::int64_t ignore_index = -100;
  double smoothing = 0;

  Fields fields() const { return {{"weighted", weighted}, {"ignore_index", ignore_index}, {"label_smoothing", smoothing}}; }
};

/// Forward, or with `gradient` backward.
struct CrossEntropyProblem {
  Options options;
  std::int64_t rows = 1, classes = 1, positions = 1;
  exec::Ref x, target, weight;
  exec::Ref loss, counted, peak, logs;
  exec::Ref total, gradient, dx;
};

CrossEntropyProblem problem_of(const Options& options, const Shape& logits) {
  CrossEntropyProblem problem{.options = options,
                              .classes = logits[1],
                              .x = {},
                              .target = {},
                              .weight = {},
                              .loss = {},
                              .counted = {},
                              .peak = {},
                              .logs = {},
                              .total = {},
                              .gradient = {},
                              .dx = {}};
  for (int d = 2; d < logits.rank(); ++d) problem.positions *= logits[d];
  problem.rows = logits[0] * problem.positions;
  return problem;
}

/// The inputs that forward and backward begin with.
exec::Launch& launch(const CrossEntropyProblem& problem, exec::Recorder& recorder, std::string_view program) {
  auto& result = recorder.kernel(program, program)
                     .define("WEIGHTED", problem.options.weighted ? 1 : 0)
                     .detail(fmt::format("[{}, {}, {}]", problem.rows / std::max<std::int64_t>(problem.positions, 1),
                                         problem.classes, problem.positions))
                     .in("x", problem.x)
                     .in("target", problem.target);
  if (problem.options.weighted) result.in("weight", problem.weight);
  return result;
}

void forward(const CrossEntropyProblem& problem, exec::Recorder& recorder, std::string_view program, std::int64_t last_size,
             std::int64_t items, std::int64_t group, bool in_groups) {
  auto& result = launch(problem, recorder, program);
  if (in_groups) define_group(result, recorder);
  if (const auto lanes = recorder.config().value("lanes", 0)) result.define("VW", lanes);
  result.out("loss", problem.loss)
      .out("counted", problem.counted)
      .out("peak", problem.peak)
      .out("logs", problem.logs)
      .args({problem.rows, problem.classes, last_size, problem.options.ignore_index})
      .arg_float(problem.options.smoothing)
      .range({items}, {group});
  recorder.prologue(result, "x");
}

void backward(const CrossEntropyProblem& problem, exec::Recorder& recorder, std::string_view program, std::int64_t first_size,
              std::int64_t last_size, std::int64_t items, std::int64_t group) {
  auto& result = launch(problem, recorder, program);
  if (const auto lanes = recorder.config().value("lanes", 0)) result.define("VW", lanes);
  if (problem.options.weighted) result.in("total", problem.total);
  result.in("peak", problem.peak)
      .in("logs", problem.logs)
      .in("gradient", problem.gradient)
      .out("y", problem.dx)
      .args({first_size, problem.classes, last_size, problem.options.ignore_index})
      .arg_float(problem.options.smoothing)
      .range({items}, {group});
}

std::optional<std::string> one_position(const CrossEntropyProblem& problem, const DeviceInfo&) {
  if (problem.positions != 1) return "classes are not the innermost dimension, where one work-item per row is as good";
  return std::nullopt;
}
std::optional<std::string> cpu_rejects(const CrossEntropyProblem& problem, const DeviceInfo& device) {
  if (auto reason = needs_vectors(problem, device)) return reason;
  return one_position(problem, device);
}

const exec::SolverList<CrossEntropyProblem> forward_solvers{
    "cross_entropy",
    {{"cpu", cpu_rejects,
      [](const CrossEntropyProblem& problem, exec::Recorder& recorder) {
        const auto per_item = rows_per_item(problem.rows, problem.classes, 4096, recorder.device());
        forward(problem, recorder, "cross_entropy_cpu", per_item, ceil_div(problem.rows, per_item), 1, false);
      },
      nullptr, lane_configs<CrossEntropyProblem>},
     {"gpu", one_position,
      [](const CrossEntropyProblem& problem, exec::Recorder& recorder) {
        const auto group = recorder.config()["group"], threads = recorder.config()["threads"];
        forward(problem, recorder, "cross_entropy_gpu", threads, ceil_div(problem.rows, group / threads) * group, group, true);
      },
      nullptr, [](const CrossEntropyProblem& problem, const DeviceInfo& device) { return row_configs(problem.classes, device); }},
     {"direct", exec::accepts_everything<CrossEntropyProblem>, [](const CrossEntropyProblem& problem, exec::Recorder& recorder) {
        const auto group = std::min<std::int64_t>(64, group_size(recorder.device()));
        forward(problem, recorder, "cross_entropy_direct", problem.positions, problem.rows, group, false);
      }}}};

const exec::SolverList<CrossEntropyProblem> backward_solvers{
    "cross_entropy_backward",
    {{"cpu", cpu_rejects,
      [](const CrossEntropyProblem& problem, exec::Recorder& recorder) {
        const auto per_item = rows_per_item(problem.rows, problem.classes, 4096, recorder.device());
        backward(problem, recorder, "cross_entropy_backward_cpu", problem.rows, per_item, ceil_div(problem.rows, per_item), 1);
      },
      nullptr, lane_configs<CrossEntropyProblem>},
     {"direct", exec::accepts_everything<CrossEntropyProblem>, [](const CrossEntropyProblem& problem, exec::Recorder& recorder) {
        const auto elements = problem.rows * problem.classes;
        backward(problem, recorder, "cross_entropy_backward_direct", elements, problem.positions, elements,
                 group_size(recorder.device()));
      }}}};

/// {N, C, ...}: whether the class is the row's target.
Tensor is_target(const Tensor& targets, std::int64_t classes) {
  std::vector<std::int64_t> extents(static_cast<std::size_t>(targets.rank()), 1);
  extents[0] = classes;
  return eq(unsqueeze(targets, 1), reshape(arange(classes, 0, 1, targets.dtype()), extents));
}

/// The elements where `condition` holds, 0 elsewhere.
Tensor only(const Tensor& condition, const Tensor& x) { return where(condition, x, scalar_like(0, x)); }

/// Sums {N, C, ...} to {C}.
Tensor per_class(const Tensor& x) {
  Dims dims{0};
  for (int d = 2; d < x.rank(); ++d) dims.push_back(d);
  return sum(x, dims);
}

/// Inputs: logits, targets, the rows' peak and logs, the gradient of their losses; the weights, their sum {1}, and those with
/// which the rows count.
class CrossEntropyBackward : public Op {
 public:
  explicit CrossEntropyBackward(Options options) : options_(options) {}
  std::string_view name() const override { return "cross_entropy_backward"; }
  TuningHints tuning(const Specs& inputs) const override {
    return {.indices = inputs[0].shape[1], .positive = true, .last = true};
  }
  Fields fields() const override { return options_.fields(); }
  Specs infer(const Specs& inputs) const override { return {inputs[0]}; }
  Tensors vjp(const Tensors& inputs, const Tensors&, const Tensors& gradients) const override {
    // dx = g (factor softmax(x) - a constant), with a factor of the target's row.
    const auto &targets = inputs[1], &g = inputs[4];
    const Tensor v = as_computed(gradients[0]), p = softmax(as_computed(inputs[0]), 1);
    const Tensor counts = not_equal(targets, static_cast<double>(options_.ignore_index));
    Tensor factor = cast(counts, computed_in(inputs[0].dtype()));
    if (options_.weighted) {
      const Tensor chosen = inputs[7] * (1 - options_.smoothing);
      const double share = options_.smoothing / static_cast<double>(inputs[0].size(1));
      factor = only(counts, chosen + inputs[6] * share);
    }
    Tensors result(inputs.size()), same = inputs;
    if (options_.weighted) {
      const double share = options_.smoothing / static_cast<double>(inputs[0].size(1)), rest = 1 - options_.smoothing;
      const Tensor weighed = only(counts, g), by_p = sum(p * v, {1});
      const Tensor by_target = sum(only(is_target(targets, inputs[0].size(1)), v), {1});
      result[5] = cast(per_class(unsqueeze(weighed, 1) * v) * -share, inputs[5].dtype());
      result[6] = reshape(sum(weighed * by_p), inputs[6].shape()) * share;
      result[7] = weighed * (by_p - by_target) * rest;
    }
    result[0] = cast(unsqueeze(factor * g, 1) * p * (v - sum(p * v, {1}, true)), inputs[0].dtype());
    same[4] = ones_like(g);
    same[0] = as_computed(inputs[0]);
    result[4] = sum(v * clnet::apply(std::make_shared<CrossEntropyBackward>(options_), std::move(same)), {1});
    return result;
  }
  void lower(exec::Recorder& recorder) const override {
    auto problem = problem_of(options_, recorder.spec(recorder.input(0)).shape);
    problem.x = recorder.input(0);
    problem.target = recorder.input(1);
    problem.peak = recorder.input(2);
    problem.logs = recorder.input(3);
    problem.gradient = recorder.input(4);
    if (options_.weighted) {
      problem.weight = recorder.input(5);
      problem.total = recorder.input(6);
    }
    problem.dx = recorder.output();
    backward_solvers.lower(problem, recorder.device(), recorder);
  }

 private:
  Options options_;
};

/// Inputs: logits, targets, and the classes' weights. Outputs per row: the loss, the weight with which it counts, and the largest
/// logit and the logarithm of the sum of exponentials below it, for backward; all f32.
class CrossEntropyRows : public Op {
 public:
  explicit CrossEntropyRows(Options options) : options_(options) {}
  std::string_view name() const override { return "cross_entropy"; }
  TuningHints tuning(const Specs& inputs) const override {
    return {.indices = inputs[0].shape[1], .positive = true, .last = true};
  }
  Precision precision() const override { return Precision::own; }
  FusionHints fusion(const Specs&) const override { return {.prologue = 0}; }
  Fields fields() const override { return options_.fields(); }

  Specs infer(const Specs& inputs) const override {
    const auto &logits = inputs[0], &targets = inputs[1];
    require_floating(name(), logits);
    if (targets.dtype != Dtype::i32 && targets.dtype != Dtype::i64)
      throw DtypeError(fmt::format("cross_entropy: targets must be i32 or i64, got {}", to_string(targets)));
    if (logits.shape.rank() < 2)
      throw ShapeError(fmt::format("cross_entropy: logits must be {{N, C, ...}}, got {}", to_string(logits)));
    auto extents = logits.shape.extents();
    extents.erase(extents.begin() + 1);
    const Shape rows(std::move(extents));
    if (targets.shape != rows)
      throw ShapeError(fmt::format("cross_entropy: logits {} need targets of shape {}, got {}", to_string(logits),
                                   to_string(rows), to_string(targets.shape)));
    if (logits.shape[1] == 0)
      throw ShapeError(fmt::format("cross_entropy: there are no classes in logits {}", to_string(logits)));
    if (options_.weighted) {
      require_floating("cross_entropy's weight", inputs[2]);
      if (logits.dtype == Dtype::f64 || inputs[2].dtype == Dtype::f64) require_same_dtype(name(), logits, inputs[2]);
      if (inputs[2].shape != Shape{logits.shape[1]})
        throw ShapeError(fmt::format("cross_entropy: logits {} need a weight of shape [{}], got {}", to_string(logits),
                                     logits.shape[1], to_string(inputs[2].shape)));
    }
    return Specs(4, Spec{rows, computed_in(logits.dtype)});
  }

  Tensors vjp(const Tensors& inputs, const Tensors& outputs, const Tensors& gradients) const override {
    Tensors result(inputs.size());
    if (gradients[0].defined()) {
      Tensors all{inputs[0], inputs[1], outputs[2], outputs[3], gradients[0]};
      if (options_.weighted) all.insert(all.end(), {inputs[2], sum(as_computed(inputs[2]), {}, true), outputs[1]});
      result[0] = clnet::apply(std::make_shared<CrossEntropyBackward>(options_), std::move(all));
    }
    if (options_.weighted) result[2] = cast(weight_gradient(inputs, gradients), inputs[2].dtype());
    return result;
  }

  void lower(exec::Recorder& recorder) const override {
    auto problem = problem_of(options_, recorder.spec(recorder.input(0)).shape);
    problem.x = recorder.input(0);
    problem.target = recorder.input(1);
    if (options_.weighted) problem.weight = recorder.input(2);
    problem.loss = recorder.output(0);
    problem.counted = recorder.output(1);
    problem.peak = recorder.output(2);
    problem.logs = recorder.output(3);
    forward_solvers.lower(problem, recorder.device(), recorder);
  }

 private:
  /// A row's loss is linear in the weights, and its target's weight is the one with which it counts.
  Tensor weight_gradient(const Tensors& inputs, const Tensors& gradients) const {
    const auto& targets = inputs[1];
    const auto classes = inputs[0].size(1);
    const Tensor counts = not_equal(targets, static_cast<double>(options_.ignore_index));
    const Tensor mine = logical_and(is_target(targets, classes), unsqueeze(counts, 1));
    Tensor result = zeros(inputs[2].shape(), computed_in(inputs[0].dtype()));
    if (gradients[0].defined()) {
      // Not of the peak and the logarithm that the kernels hand on: this formula has a gradient of its own.
      const Tensor losses = -log_softmax(as_computed(inputs[0]), 1);
      const Tensor g = unsqueeze(gradients[0], 1);
      result = result + per_class(only(mine, losses * g)) * (1 - options_.smoothing);
      if (options_.smoothing > 0)
        result = result + per_class(only(unsqueeze(counts, 1), losses * g)) * (options_.smoothing / static_cast<double>(classes));
    }
    if (gradients[1].defined())
      result = result + per_class(cast(mine, computed_in(inputs[0].dtype())) * unsqueeze(gradients[1], 1));
    return result;
  }

  Options options_;
};

/// -sum over the classes of weight * target * log_softmax, with the target mixed with 1 / C.
Tensor cross_entropy_of_probabilities(const Tensor& logits, const Tensor& targets, const CrossEntropyOptions& options) {
  if (targets.shape() != logits.shape() || logits.rank() < 2)
    throw ShapeError(fmt::format(
        "cross_entropy: targets {} of a floating dtype are probabilities, of the shape of logits {{N, C, ...}}, which are {}; "
        "labels are i32 or i64",
        to_string(targets.spec()), to_string(logits.spec())));
  const auto classes = logits.size(1);
  if (logits.dtype() == Dtype::f64 || targets.dtype() == Dtype::f64)
    require_same_dtype("cross_entropy", logits.spec(), targets.spec());
  Tensor wanted = as_computed(targets);
  if (options.label_smoothing > 0)
    wanted = wanted * (1 - options.label_smoothing) + options.label_smoothing / static_cast<double>(classes);
  if (options.weight.defined()) {
    if (options.weight.shape() != Shape{classes})
      throw ShapeError(fmt::format("cross_entropy: logits {} need a weight of shape [{}], got {}", to_string(logits.spec()),
                                   classes, to_string(options.weight.shape())));
    std::vector<std::int64_t> extents(static_cast<std::size_t>(logits.rank() - 1), 1);
    extents[0] = classes;
    wanted = wanted * reshape(cast(options.weight, wanted.dtype()), extents);
  }
  const Tensor rows = -sum(wanted * log_softmax(as_computed(logits), 1), {1});
  switch (options.reduction) {
    case Reduction::none: return rounded(rows, logits.dtype());
    case Reduction::sum: return rounded(sum(rows), logits.dtype());
    default: return rounded(mean(rows), logits.dtype());
  }
}

}  // namespace

}  // namespace ops

Tensor cross_entropy(const Tensor& logits, const Tensor& targets, const CrossEntropyOptions& options) {
  require_defined("cross_entropy", {{"logits", logits}, {"targets", targets}});
  if (!(options.label_smoothing >= 0 && options.label_smoothing <= 1))
    throw Error(fmt::format("cross_entropy: label_smoothing must be from 0 to 1, got {}", options.label_smoothing));
  // One sample is a batch of it.
  if (logits.rank() == 1 && targets.rank() == (is_floating(targets.dtype()) ? 1 : 0)) {
    const Tensor loss = cross_entropy(unsqueeze(logits, 0), unsqueeze(targets, 0), options);
    return options.reduction == Reduction::none ? squeeze(loss, 0) : loss;
  }
  if (is_floating(targets.dtype()) && is_floating(logits.dtype()))
    return ops::cross_entropy_of_probabilities(logits, targets, options);
  const ops::Options rows_options{options.weight.defined(), options.ignore_index, options.label_smoothing};
  std::vector<Tensor> inputs{logits, targets};
  if (options.weight.defined()) inputs.push_back(options.weight);
  const auto rows = apply_all(std::make_shared<ops::CrossEntropyRows>(rows_options), std::move(inputs));
  ops::require_classes("cross_entropy", targets, logits.size(1), options.ignore_index);
  switch (options.reduction) {
    case Reduction::none: return ops::rounded(rows[0], logits.dtype());
    case Reduction::sum: return ops::rounded(sum(rows[0]), logits.dtype());
    default: return ops::rounded(sum(rows[0]) / sum(rows[1]), logits.dtype());
  }
}

Tensor cross_entropy(const Tensor& logits, const Tensor& targets) { return cross_entropy(logits, targets, {}); }

}  // namespace clnet
