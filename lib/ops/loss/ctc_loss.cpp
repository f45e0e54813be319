// ctc_loss: the forward recursion in logarithms, and the backward one for the gradient. Second derivatives go through the
// composed form.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <vector>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/exec/choose/solver.h"
#include "lib/exec/collect/work.h"
#include "lib/exec/launch/recorder.h"
#include "lib/graph/node.h"
#include "lib/graph/require.h"
#include "lib/ops/as_f32.h"
#include "lib/ops/elementwise/elementwise.h"
#include "lib/ops/gradients_through.h"
#include "lib/ops/index/index_add.h"
#include "lib/ops/loops.h"
#include "lib/ops/loss/ctc.h"
#include "lib/ops/loss/reduced.h"

namespace clnet {

namespace ops {

namespace {

/// What both directions read: log_probs {T, N, C}, targets {N, S}, and the lengths of either. `sums` {N, T, 2 S + 1} are the
/// logarithms of the probabilities of all beginnings (or ends) by state: blank, first target, blank, second target, ..., blank.
struct CtcProblem {
  std::array<exec::Ref, 4> inputs;
  exec::Ref sums, loss;
  std::int64_t steps = 0, batch = 0, classes = 0, targets = 0, blank = 0;
  bool backwards = false;
};

CtcProblem problem_of(exec::Recorder& recorder, std::int64_t blank) {
  const auto &x = recorder.spec(recorder.input(0)).shape, &targets = recorder.spec(recorder.input(1)).shape;
  return {
      {recorder.input(0), recorder.input(1), recorder.input(2), recorder.input(3)}, {}, {}, x[0], x[1], x[2], targets[1], blank};
}

exec::Launch& launch_of(const CtcProblem& p, exec::Recorder& recorder, std::string_view function) {
  auto& launch = recorder.kernel(function, function).in("x", p.inputs[0]).in("targets", p.inputs[1]);
  launch.in("input_lengths", p.inputs[2]).in("target_lengths", p.inputs[3]);
  return launch.detail(fmt::format("{} x {} x {}, {} targets", p.steps, p.batch, p.classes, p.targets));
}

/// By so many work-items for each sequence, which share a step's states.
void lower_sums(const CtcProblem& p, exec::Recorder& recorder, std::int64_t lanes) {
  const auto states = 2 * p.targets + 1;
  require_loops("ctc_loss", p.targets + 2 * p.steps * (1 + states / lanes), recorder.device());
  auto& launch = launch_of(p, recorder, "ctc_sums").out("sums", p.sums);
  if (p.backwards)
    launch.define("BACKWARDS", 1);
  else
    launch.out("loss", p.loss);
  launch.define("LANES", lanes).args({p.batch, p.steps, p.classes, p.targets, p.blank}).range({p.batch * lanes}, {lanes});
}

constexpr std::int64_t group = 64;

const exec::SolverList<CtcProblem> solvers{
    "ctc_loss",
    {{"group",
      [](const CtcProblem&, const DeviceInfo& device) -> std::optional<std::string> {
        if (device.max_work_group_size < static_cast<std::size_t>(group)) return "the device's work-groups are too small";
        return std::nullopt;
      },
      [](const CtcProblem& p, exec::Recorder& recorder) { lower_sums(p, recorder, group); },
      [](const CtcProblem&, const DeviceInfo& device) -> std::optional<std::string> {
        if (device.prefers_vector_kernels) return "barriers are for GPUs";
        return std::nullopt;
      }},
     {"direct", exec::accepts_everything<CtcProblem>,
      [](const CtcProblem& p, exec::Recorder& recorder) { lower_sums(p, recorder, 1); }}}};

/// Inputs: log_probs, targets, input lengths, target lengths, the losses, their sums, the losses' gradient.
class CtcGradient : public Op {
 public:
  explicit CtcGradient(std::int64_t blank) : blank_(blank) {}
  std::string_view name() const override { return "ctc_gradient"; }
  Fields fields() const override { return {{"blank", blank_}}; }
  Specs infer(const Specs& inputs) const override { return {inputs[0]}; }

  /// It is a function of log_probs and g; losses and sums are only there to save work.
  Tensors vjp(const Tensors& inputs, const Tensors&, const Tensors& gradients) const override {
    const Tensor &x = inputs[0], &losses = inputs[4], &g = inputs[6];
    Tensors result(inputs.size());
    if (x.numel() == 0) return result;
    const auto first = Node::next_sequence();
    const Tensor composed = ctc_composed({x, inputs[1], inputs[2], inputs[3], losses, blank_});
    const auto gradient = gradients_through({composed}, {g}, {x}, first);
    const auto second = gradients_through(gradient, gradients, {x, g}, first);
    // As NaN as the gradient is.
    const Tensor undefined = logical_and(not_equal(losses, losses), not_equal(g, 0.0));
    const auto marked = [&](const Tensor& part, const Tensor& mask) {
      return masked_fill(part, mask, std::numeric_limits<double>::quiet_NaN());
    };
    result[0] = marked(second[0], unsqueeze(undefined, 1));
    result[6] = marked(second[1], undefined);
    return result;
  }

  void lower(exec::Recorder& recorder) const override {
    if (recorder.spec(recorder.output()).shape.numel() == 0) return;
    auto problem = problem_of(recorder, blank_);
    // Each state looks for those of its class.
    const auto states = 2 * problem.targets + 1;
    require_loops(name(), std::max(problem.classes, states * (states + 5)), recorder.device());
    const auto ends = recorder.temporary(recorder.spec(recorder.input(5)));
    problem.sums = ends;
    problem.backwards = true;
    solvers.lower(problem, recorder.device(), recorder);
    launch_of(problem, recorder, "ctc_gradient")
        .in("loss", recorder.input(4))
        .in("beginnings", recorder.input(5))
        .in("ends", ends)
        .in("g", recorder.input(6))
        .out("y", recorder.output())
        .args({problem.batch, problem.steps, problem.classes, problem.targets, blank_})
        .range({problem.batch * problem.steps}, {64});
  }

 private:
  std::int64_t blank_;
};

/// Inputs: log_probs, targets, input lengths, target lengths. Outputs: the losses {N} and the forward sums.
class CtcLoss : public Op {
 public:
  explicit CtcLoss(std::int64_t blank) : blank_(blank) {}
  std::string_view name() const override { return "ctc_loss"; }
  Precision precision() const override { return Precision::full; }
  Fields fields() const override { return {{"blank", blank_}}; }

  Specs infer(const Specs& inputs) const override {
    const auto &x = inputs[0].shape, &targets = inputs[1].shape;
    const auto dtype = computed_in(inputs[0].dtype);
    return {{Shape{x[1]}, dtype}, {Shape{x[1], x[0], 2 * targets[1] + 1}, dtype}};
  }
  Tensors vjp(const Tensors& inputs, const Tensors& outputs, const Tensors& gradients) const override {
    Tensors result(4);
    if (gradients[0].defined())
      result[0] = apply(std::make_shared<CtcGradient>(blank_),
                        {inputs[0], inputs[1], inputs[2], inputs[3], outputs[0], outputs[1], gradients[0]});
    return result;
  }
  void lower(exec::Recorder& recorder) const override {
    auto problem = problem_of(recorder, blank_);
    if (problem.batch == 0) return;
    problem.loss = recorder.output(0);
    problem.sums = recorder.output(1);
    solvers.lower(problem, recorder.device(), recorder);
  }

 private:
  std::int64_t blank_;
};

/// The lengths, if they are numbers of the host.
std::optional<std::vector<std::int64_t>> known_lengths(const Tensor& lengths) {
  const auto known = exec::asked_value_of(lengths);
  if (!known || !known->on_host()) return std::nullopt;
  return lengths.to_vector<std::int64_t>();
}

/// Targets {sum of lengths} of one sequence behind the other as {N, S}.
Tensor side_by_side(const Tensor& targets, const Tensor& lengths) {
  const auto all = targets.numel(), batch = lengths.numel();
  auto most = all;
  if (const auto known = known_lengths(lengths)) {
    std::int64_t total = 0;
    most = 0;
    for (auto length : *known) {
      total += std::max<std::int64_t>(length, 0);
      most = std::max(most, length);
    }
    if (total != all)
      throw ShapeError(fmt::format("ctc_loss: targets {} are not as many as the target_lengths add up to, {}",
                                   to_string(targets.shape()), total));
  }
  if (batch == 0 || most == 0) return zeros({batch, most}, targets.dtype());
  const Tensor each = maximum(cast(lengths, Dtype::i64), 0.0), ends = cumsum(each, 0);
  const Tensor place = unsqueeze(ends - each, 1) + arange(most);
  // What is beyond is no class, and NaN where it counts.
  const Tensor inside = logical_and(less(place, static_cast<double>(all)), greater_equal(place, 0.0));
  const Tensor found = index_select(targets, 0, where(inside, place, Tensor::scalar(0, Dtype::i64)));
  return where(inside, found, Tensor::scalar(-1, targets.dtype()));
}

}  // namespace

}  // namespace ops

Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths, const Tensor& target_lengths,
                const CtcOptions& options) {
  require_defined(
      "ctc_loss",
      {{"log_probs", log_probs}, {"targets", targets}, {"input_lengths", input_lengths}, {"target_lengths", target_lengths}});
  ops::require_floating("ctc_loss", log_probs.spec());
  for (const auto& [name, tensor] :
       {Argument{"targets", targets}, Argument{"input_lengths", input_lengths}, Argument{"target_lengths", target_lengths}})
    if (tensor.dtype() != Dtype::i32 && tensor.dtype() != Dtype::i64)
      throw DtypeError(fmt::format("ctc_loss: {} must be i32 or i64, got {}", name, to_string(tensor.spec())));
  if (log_probs.rank() == 2 && targets.rank() == 1 && input_lengths.numel() == 1 && target_lengths.numel() == 1) {
    const auto loss = ctc_loss(unsqueeze(log_probs, 1), unsqueeze(targets, 0), reshape(input_lengths, {1}),
                               reshape(target_lengths, {1}), options);
    return options.reduction == Reduction::none ? squeeze(loss, 0) : loss;
  }
  if (log_probs.rank() != 3)
    throw ShapeError(
        fmt::format("ctc_loss: log_probs {} are not {{T, N, C}}, or {{T, C}} with targets {{S}} and one length of each",
                    to_string(log_probs.spec())));
  const auto batch = log_probs.size(1), classes = log_probs.size(2);
  if (targets.rank() == 1 && target_lengths.shape() == Shape{batch})
    return ctc_loss(log_probs, ops::side_by_side(targets, target_lengths), input_lengths, target_lengths, options);
  if (targets.rank() != 2 || targets.size(0) != batch)
    throw ShapeError(fmt::format("ctc_loss: targets {} are not {{N, S}} for N = {}, or {{sum of lengths}}",
                                 to_string(targets.shape()), batch));
  if (input_lengths.shape() != Shape{batch} || target_lengths.shape() != Shape{batch})
    throw ShapeError(fmt::format("ctc_loss: lengths {} and {} are not {{N}} for N = {}", to_string(input_lengths.shape()),
                                 to_string(target_lengths.shape()), batch));
  if (options.blank < 0 || options.blank >= classes)
    throw Error(fmt::format("ctc_loss: blank {} is none of {} classes", options.blank, classes));
  const auto outputs =
      apply_all(std::make_shared<ops::CtcLoss>(options.blank), {log_probs, targets, input_lengths, target_lengths});
  Tensor losses = outputs[0];
  if (options.zero_infinity)
    losses = where(eq(losses, std::numeric_limits<double>::infinity()), Tensor::scalar(0, losses.dtype()), losses);
  if (options.reduction == Reduction::mean) losses = losses / maximum(cast(target_lengths, losses.dtype()), 1.0);
  return ops::reduced(losses, options.reduction, log_probs.dtype());
}

Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths, const Tensor& target_lengths) {
  return ctc_loss(log_probs, targets, input_lengths, target_lengths, {});
}

}  // namespace clnet
