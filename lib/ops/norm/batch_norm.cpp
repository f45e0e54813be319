// Statistics by chunks, then one kernel per channel that finishes them, then one pass that applies them (on GPUs one kernel does
// both); backward likewise.
#include "lib/ops/norm/batch_norm.h"

#include <fmt/format.h>

#include <algorithm>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/exec/choose/nontemporal_stores.h"
#include "lib/exec/choose/solver.h"
#include "lib/exec/launch/recorder.h"
#include "lib/graph/composition.h"
#include "lib/graph/require.h"
#include "lib/ops/as_f32.h"
#include "lib/ops/elementwise/elementwise.h"
#include "lib/ops/group.h"
#include "lib/ops/norm/normalize.h"
#include "lib/ops/rows.h"

namespace clnet {

namespace ops {

namespace {

void require_channels(std::string_view op, std::string_view what, const Spec& x, const Spec& spec) {
  require_floating(fmt::format("{}'s {}", op, what), spec);
  if (x.dtype == Dtype::f64 || spec.dtype == Dtype::f64) require_same_dtype(op, x, spec);
  if (spec.shape != Shape{x.shape[1]})
    throw ShapeError(
        fmt::format("{}: {} must have shape [{}] for x {}, got {}", op, what, x.shape[1], to_string(x), to_string(spec.shape)));
}

void require_batch(std::string_view op, const Spec& x) {
  require_floating(op, x);
  if (x.shape.rank() < 2) throw ShapeError(fmt::format("{}: x must be {{N, C, ...}}, got {}", op, to_string(x)));
}

/// {1, C, 1, ...}, to broadcast along x's channels.
Shape per_channel(const Shape& x) {
  std::vector<std::int64_t> extents(static_cast<std::size_t>(x.rank()), 1);
  extents[1] = x[1];
  return Shape(std::move(extents));
}

struct BatchNormProblem {
  bool backward = false, weighted = false, biased = false;
  double eps = 0;
  std::int64_t n = 1, channels = 1, spatial = 1;
  exec::Ref x, weight, bias, mean, rstd, low;  // low: what the mean lost when it was rounded
  exec::Ref y, var;                            // forward
  exec::Ref g, dx, dweight, dbias;             // backward
};

BatchNormProblem problem_of(bool backward, const Shape& x) {
  BatchNormProblem problem;
  problem.backward = backward;
  problem.n = x[0];
  problem.channels = x[1];
  for (int d = 2; d < x.rank(); ++d) problem.spatial *= x[d];
  return problem;
}

/// What the kernels hand on: partial sums of chunks, and the factors of each channel.
struct Partials {
  std::int64_t chunk, chunks;
  exec::Ref first, second, by_x, by_g, constant;
};

Partials make_partials(const BatchNormProblem& problem, exec::Recorder& recorder, std::int64_t chunk) {
  const auto chunks = std::max<std::int64_t>(1, ceil_div(problem.n * problem.spatial, chunk));
  const Spec parts{{problem.channels, chunks}, computed_in(recorder.spec(problem.x).dtype)};
  const auto first = recorder.temporary(parts), second = recorder.temporary(parts);
  return {.chunk = chunk, .chunks = chunks, .first = first, .second = second, .by_x = {}, .by_g = {}, .constant = {}};
}

/// The kernel that sums chunks; its arguments after the extents and its range are the caller's.
exec::Launch& partial(const BatchNormProblem& problem, const Partials& partials, exec::Recorder& recorder,
                      std::string_view program) {
  auto& launch = recorder.kernel(program, program).define("BACKWARD", problem.backward ? 1 : 0).in("x", problem.x);
  if (problem.backward) launch.in("g", problem.g).in("mean", problem.mean);
  return launch.out("first", partials.first)
      .out("second", partials.second)
      .args({problem.n, problem.channels, problem.spatial})
      .detail(fmt::format("[{}, {}, {}]", problem.n, problem.channels, problem.spatial));
}

void finish(const BatchNormProblem& problem, Partials& partials, exec::Recorder& recorder) {
  const Spec channels{{problem.channels}, computed_in(recorder.spec(problem.x).dtype)};
  partials.by_x = recorder.temporary(channels);
  if (problem.backward) partials.by_g = recorder.temporary(channels);
  partials.constant = recorder.temporary(channels);
  auto& launch = recorder.kernel("batch_norm_finish", problem.backward ? "batch_norm_finish_backward" : "batch_norm_finish")
                     .define("BACKWARD", problem.backward ? 1 : 0)
                     .define("WEIGHTED", problem.weighted ? 1 : 0)
                     .define("BIASED", problem.biased ? 1 : 0);
  if (!problem.backward) launch.in("x", problem.x);
  launch.in("first", partials.first).in("second", partials.second);
  if (problem.weighted) launch.in("weight", problem.weight);
  const auto elements = problem.n * problem.spatial;
  if (problem.backward) {
    launch.in("rstd", problem.rstd)
        .in("low", problem.low)
        .out("dweight", problem.dweight)
        .out("dbias", problem.dbias)
        .out("by_x", partials.by_x)
        .out("by_g", partials.by_g)
        .out("constant_", partials.constant)
        .args({problem.channels, elements, partials.chunks});
  } else {
    if (problem.biased) launch.in("bias", problem.bias);
    launch.out("mean", problem.mean)
        .out("variance", problem.var)
        .out("rstd", problem.rstd)
        .out("low", problem.low)
        .out("by_x", partials.by_x)
        .out("constant_", partials.constant)
        .args({problem.channels, problem.spatial, elements, partials.chunk, partials.chunks})
        .arg_float(problem.eps);
  }
  launch.range({problem.channels}, {std::min<std::int64_t>(64, group_size(recorder.device()))});
}

exec::Launch& apply_factors(const BatchNormProblem& problem, const Partials& partials, exec::Recorder& recorder,
                            std::string_view function) {
  auto& launch = recorder.kernel("batch_norm_apply", function)
                     .define("BACKWARD", problem.backward ? 1 : 0)
                     .in("x", problem.x)
                     .in("mean", problem.mean)
                     .in("by_x", partials.by_x)
                     .in("constant_", partials.constant);
  if (problem.backward) launch.in("g", problem.g).in("by_g", partials.by_g);
  return launch.out("y", problem.backward ? problem.dx : problem.y)
      .detail(fmt::format("[{}, {}, {}]", problem.n, problem.channels, problem.spatial));
}

void apply_per_element(const BatchNormProblem& problem, const Partials& partials, exec::Recorder& recorder) {
  const auto elements = problem.n * problem.channels * problem.spatial;
  auto& launch = apply_factors(problem, partials, recorder, "batch_norm_apply");
  launch.define("CPU", 0)
      .define("COLUMNS", 0)
      .args({elements, problem.channels, problem.spatial})
      .range({elements}, {group_size(recorder.device())});
  recorder.epilogue(launch, problem.channels, problem.spatial);
}

void finish_and_apply(const BatchNormProblem& problem, const Partials& partials, exec::Recorder& recorder, std::int64_t piece,
                      std::int64_t lanes) {
  const auto group = recorder.config()["group"], pieces = ceil_div(problem.n * problem.spatial, piece);
  auto& launch = recorder.kernel("batch_norm_apply_gpu", "batch_norm_apply_gpu")
                     .define("BACKWARD", problem.backward ? 1 : 0)
                     .define("WEIGHTED", problem.weighted ? 1 : 0)
                     .define("BIASED", problem.biased ? 1 : 0)
                     .define("LANES", lanes)
                     .in("x", problem.x)
                     .in("first", partials.first)
                     .in("second", partials.second);
  define_group(launch, recorder);
  if (problem.backward) launch.in("g", problem.g).in("mean", problem.mean).in("rstd", problem.rstd).in("low", problem.low);
  if (problem.weighted) launch.in("weight", problem.weight);
  if (problem.biased) launch.in("bias", problem.bias);
  if (problem.backward)
    launch.out("dweight", problem.dweight).out("dbias", problem.dbias);
  else
    launch.out("mean", problem.mean).out("variance", problem.var).out("rstd", problem.rstd).out("low", problem.low);
  launch.out("y", problem.backward ? problem.dx : problem.y)
      .args({problem.n, problem.channels, problem.spatial, partials.chunk, partials.chunks, piece, pieces})
      .arg_float(problem.eps)
      .range({problem.channels * pieces * group}, {group})
      .detail(fmt::format("[{}, {}, {}]", problem.n, problem.channels, problem.spatial));
  recorder.epilogue(launch, problem.channels, problem.spatial);
}

void cpu_lower(const BatchNormProblem& problem, exec::Recorder& recorder) {
  const auto& device = recorder.device();
  const auto width = recorder.config()["lanes"];
  const std::int64_t tasks = std::int64_t{4} * device.compute_units;
  // A chunk stays in the second-level cache between its passes.
  constexpr std::int64_t least = 1024, most = 16384;
  const bool columns = problem.spatial == 1;
  const auto units = columns ? ceil_div(problem.channels, width) : problem.channels;
  const auto unit_elements = columns ? width : 1;
  const auto elements = problem.n * problem.spatial;
  const auto wanted = ceil_div(tasks, std::max<std::int64_t>(units, 1));
  const auto chunk = std::clamp(ceil_div(elements, wanted), ceil_div(least, unit_elements), ceil_div(most, unit_elements));
  auto partials = make_partials(problem, recorder, chunk);
  partial(problem, partials, recorder, columns ? "batch_norm_columns_cpu" : "batch_norm_cpu")
      .define("VW", width)
      .args({partials.chunk, partials.chunks})
      .range({units * partials.chunks}, {1});
  finish(problem, partials, recorder);
  if (columns) {
    const auto per_item = rows_per_item(problem.n, problem.channels, most, device);
    auto& launch = apply_factors(problem, partials, recorder, "batch_norm_apply_columns");
    launch.define("CPU", 1)
        .define("COLUMNS", 1)
        .define("VW", width)
        .args({problem.n, problem.channels, per_item})
        .range({ceil_div(problem.n, per_item)}, {1});
    recorder.epilogue(launch, problem.channels, 1);
  } else {
    const auto images = problem.n * problem.channels, piece = std::min(std::max<std::int64_t>(problem.spatial, 1), most);
    const auto pieces = ceil_div(problem.spatial, piece), per_item = pieces > 1 ? 1 : rows_per_item(images, piece, most, device);
    auto& launch = apply_factors(problem, partials, recorder, "batch_norm_apply_rows");
    if (exec::nontemporal_stores(device, recorder.spec(problem.backward ? problem.dx : problem.y).bytes()))
      launch.define("NONTEMPORAL_STORES", 1);
    launch.define("CPU", 1)
        .define("COLUMNS", 0)
        .define("VW", width)
        .args({images, problem.channels, problem.spatial, piece, pieces, per_item})
        .range({ceil_div(images, per_item) * pieces}, {1});
    recorder.epilogue(launch, problem.channels, problem.spatial);
  }
}

std::vector<exec::Config> gpu_configs(const BatchNormProblem& problem, const DeviceInfo& device) {
  std::vector<exec::Config> result;
  const auto groups = group_configs(device);
  const auto add = [&](const exec::Config& config, std::int64_t lanes) {
    result.push_back({{"group", config["group"]}, {"lanes", lanes}, {"sub_groups", config["sub_groups"]}});
  };
  // 16 bytes at a time where planes are of whole ones.
  const bool whole = problem.spatial % 4 == 0;
  for (const auto& config : groups) add(config, whole ? 4 : 1);
  if (whole) add(groups[0], 1);
  return result;
}

void gpu_lower(const BatchNormProblem& problem, exec::Recorder& recorder) {
  const auto& device = recorder.device();
  const auto wanted = ceil_div(std::int64_t{8} * device.compute_units, std::max<std::int64_t>(problem.channels, 1));
  const auto group = recorder.config()["group"], lanes = recorder.config()["lanes"];
  const auto chunk =
      std::clamp<std::int64_t>(ceil_div(ceil_div(problem.n * problem.spatial, wanted), lanes) * lanes, 4096, 65536);
  auto partials = make_partials(problem, recorder, chunk);
  define_group(partial(problem, partials, recorder, "batch_norm_gpu"), recorder)
      .define("LANES", lanes)
      .args({partials.chunk, partials.chunks})
      .range({problem.channels * partials.chunks * group}, {group});
  // Pieces of a channel are next to each other in memory only where it has planes.
  constexpr std::int64_t least_plane = 16;
  if (problem.spatial >= least_plane) {
    finish_and_apply(problem, partials, recorder, std::min<std::int64_t>(partials.chunk / 2 / lanes * lanes, 4096), lanes);
  } else {
    finish(problem, partials, recorder);
    apply_per_element(problem, partials, recorder);
  }
}

void direct_lower(const BatchNormProblem& problem, exec::Recorder& recorder) {
  // llvmpipe leaves a kernel's loops after 65535 iterations, and here are four in a row.
  auto partials = make_partials(problem, recorder, 8192);
  partial(problem, partials, recorder, "batch_norm_direct")
      .args({partials.chunk, partials.chunks})
      .range({problem.channels * partials.chunks}, {std::min<std::int64_t>(64, group_size(recorder.device()))});
  finish(problem, partials, recorder);
  apply_per_element(problem, partials, recorder);
}

const exec::SolverList<BatchNormProblem> batch_norm_solvers{
    "batch_norm",
    {{"cpu", needs_vectors<BatchNormProblem>, cpu_lower, nullptr, lane_configs<BatchNormProblem>},
     {"gpu", exec::accepts_everything<BatchNormProblem>, gpu_lower, nullptr, gpu_configs},
     {"direct", exec::accepts_everything<BatchNormProblem>, direct_lower}}};

/// Inputs: x, the gradient of y, mean, rstd, low; weight. Outputs: the gradients of x, weight and bias.
class BatchNormBackward : public Op {
 public:
  explicit BatchNormBackward(bool weighted) : weighted_(weighted) {}
  std::string_view name() const override { return "batch_norm_backward"; }
  TuningHints tuning(const Specs&) const override { return {.list = "batch_norm", .last = true}; }
  FusionHints fusion(const Specs&) const override { return {.epilogue = true}; }
  Fields fields() const override { return {{"weighted", weighted_}}; }
  Specs infer(const Specs& inputs) const override { return {inputs[0], inputs[2], inputs[2]}; }
  Tensors vjp(const Tensors& inputs, const Tensors&, const Tensors& gradients) const override {
    const auto channel = per_channel(inputs[0].shape());
    const Tensor x = as_computed(inputs[0]), g = as_computed(inputs[1]);
    const Tensor mean = reshape(inputs[2], channel), rstd = reshape(inputs[3], channel);
    const Tensor weight = weighted_ ? reshape(as_computed(inputs[5]), channel) : Tensor{};
    Tensor dx, dg, dmean, drstd, dweight;
    const auto add = [](Tensor& to, const Tensor& more) { to = to.defined() ? to + more : more; };
    if (gradients[0].defined()) {
      Dims dims{0};
      for (int d = 2; d < x.rank(); ++d) dims.push_back(d);
      const auto second = normalize_second_order(as_computed(gradients[0]), x, weighted_ ? g * weight : g, mean, rstd, dims);
      dx = second.x;
      dg = weighted_ ? second.h * weight : second.h;
      dmean = second.mean;
      drstd = second.rstd;
      if (weighted_) dweight = sum_to(second.h * g, channel);
    }
    if (gradients[1].defined()) {  // of the weight's gradient, rstd sum(g (x - mean))
      const Tensor factor = reshape(gradients[1], channel), slope = factor * rstd;
      add(dx, g * slope);
      add(dg, (x - mean) * slope);
      add(dmean, -sum_to(g * slope, channel));
      add(drstd, factor * sum_to(g * (x - mean), channel));
    }
    if (gradients[2].defined()) add(dg, expand(reshape(gradients[2], channel), x.shape()));
    Tensors result(inputs.size());
    if (dx.defined()) result[0] = cast(dx, inputs[0].dtype());
    result[1] = cast(dg, inputs[1].dtype());
    if (dmean.defined()) result[2] = reshape(dmean, inputs[2].shape());
    if (drstd.defined()) result[3] = reshape(drstd, inputs[3].shape());
    if (dweight.defined()) result[5] = cast(reshape(dweight, inputs[5].shape()), inputs[5].dtype());
    return result;
  }
  void lower(exec::Recorder& recorder) const override {
    auto problem = problem_of(true, recorder.spec(recorder.input(0)).shape);
    problem.weighted = weighted_;
    problem.x = recorder.input(0);
    problem.g = recorder.input(1);
    problem.mean = recorder.input(2);
    problem.rstd = recorder.input(3);
    problem.low = recorder.input(4);
    if (weighted_) problem.weight = recorder.input(5);
    problem.dx = recorder.output(0);
    problem.dweight = recorder.output(1);
    problem.dbias = recorder.output(2);
    batch_norm_solvers.lower(problem, recorder.device(), recorder);
  }

 private:
  bool weighted_;
};

/// Inputs: x; weight; bias. Outputs: y, and f32 per channel: mean, unbiased variance, reciprocal of the standard deviation, and
/// low.
class BatchNorm : public Op {
 public:
  BatchNorm(bool weighted, bool biased, double eps) : weighted_(weighted), biased_(biased), eps_(eps) {}
  std::string_view name() const override { return "batch_norm"; }
  TuningHints tuning(const Specs&) const override { return {.last = true}; }
  Precision precision() const override { return Precision::own; }
  FusionHints fusion(const Specs&) const override { return {.cheap = true, .epilogue = true}; }
  Fields fields() const override { return {{"weighted", weighted_}, {"biased", biased_}, {"eps", eps_}}; }

  Specs infer(const Specs& inputs) const override {
    const auto& x = inputs[0];
    require_batch("batch_norm_training", x);
    std::size_t next = 1;
    if (weighted_) require_channels("batch_norm_training", "weight", x, inputs[next++]);
    if (biased_) require_channels("batch_norm_training", "bias", x, inputs[next]);
    if (x.shape.numel() <= x.shape[1])
      throw ShapeError(
          fmt::format("batch_norm_training: expected more than 1 value per channel when training, got x {}", to_string(x)));
    const Spec statistic{{x.shape[1]}, computed_in(x.dtype)};
    return {x, statistic, statistic, statistic, statistic};
  }

  Tensors vjp(const Tensors& inputs, const Tensors& outputs, const Tensors& gradients) const override {
    const auto& x = inputs[0];
    const auto channel = per_channel(x.shape());
    const auto count = static_cast<double>(x.numel() / x.size(1));
    Tensors result(inputs.size());
    Tensor dx;
    if (gradients[0].defined()) {
      Tensors all{x, gradients[0], outputs[1], outputs[3], outputs[4]};
      if (weighted_) all.push_back(inputs[1]);
      const auto back = apply_all(std::make_shared<BatchNormBackward>(weighted_), std::move(all));
      dx = back[0];
      std::size_t next = 1;
      if (weighted_) result[next++] = cast(back[1], inputs[1].dtype());
      if (biased_) result[next] = cast(back[2], inputs[next].dtype());
    }
    const auto add = [&](const Tensor& more) { dx = dx.defined() ? dx + more : more; };
    if (gradients[1].defined() || gradients[2].defined() || gradients[3].defined()) {
      const auto shaped = [&](const Tensor& t) { return t.defined() ? reshape(t, channel) : t; };
      const Tensor wide = as_computed(x), mean = shaped(outputs[1]);
      const Tensor more = statistics_gradient(wide, mean, shaped(outputs[3]), shaped(gradients[1]), shaped(gradients[3]));
      if (more.defined()) add(cast(more, x.dtype()));
      if (gradients[2].defined()) add(cast((wide - mean) * (shaped(gradients[2]) * (2 / (count - 1))), x.dtype()));
    }
    result[0] = dx;
    return result;
  }

  void lower(exec::Recorder& recorder) const override {
    auto problem = problem_of(false, recorder.spec(recorder.input(0)).shape);
    problem.weighted = weighted_;
    problem.biased = biased_;
    problem.eps = eps_;
    problem.x = recorder.input(0);
    std::size_t next = 1;
    if (weighted_) problem.weight = recorder.input(next++);
    if (biased_) problem.bias = recorder.input(next);
    problem.y = recorder.output(0);
    problem.mean = recorder.output(1);
    problem.var = recorder.output(2);
    problem.rstd = recorder.output(3);
    problem.low = recorder.output(4);
    batch_norm_solvers.lower(problem, recorder.device(), recorder);
  }

 private:
  bool weighted_, biased_;
  double eps_;
};

}  // namespace

}  // namespace ops

BatchNormResult batch_norm_training(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
  require_defined("batch_norm_training", {{"x", x}});
  std::vector<Tensor> inputs{x};
  if (weight.defined()) inputs.push_back(weight);
  if (bias.defined()) inputs.push_back(bias);
  const auto all = apply_all(std::make_shared<ops::BatchNorm>(weight.defined(), bias.defined(), eps), std::move(inputs));
  return {all[0], all[1], all[2]};
}

namespace ops {

Tensor batch_norm_of_layer(const Tensor& x, const Tensor& mean, const Tensor& var, const Tensor& weight, const Tensor& bias,
                           double eps, std::optional<double> kept) {
  require_defined("batch_norm_inference", {{"x", x}, {"mean", mean}, {"var", var}});
  constexpr std::string_view op = "batch_norm_inference";
  require_batch(op, x.spec());
  require_channels(op, "mean", x.spec(), mean.spec());
  require_channels(op, "var", x.spec(), var.spec());
  const auto channel = per_channel(x.shape());
  Tensor scale = rsqrt(as_computed(var) + eps);
  if (weight.defined()) {
    require_channels(op, "weight", x.spec(), weight.spec());
    scale = scale * as_computed(weight);
  }
  Tensor y = (as_computed(x) - reshape(as_computed(mean), channel)) * reshape(scale, channel);
  if (bias.defined()) {
    require_channels(op, "bias", x.spec(), bias.spec());
    y = y + reshape(as_computed(bias), channel);
  }
  return composed(cast(y, x.dtype()), [&] {
    Fields fields{{"eps", eps}};
    if (kept) fields.emplace_back("kept", *kept);
    return Composition{op, {x, mean, var, weight, bias}, std::move(fields), {}};
  });
}

}  // namespace ops

Tensor batch_norm_inference(const Tensor& x, const Tensor& mean, const Tensor& var, const Tensor& weight, const Tensor& bias,
                            double eps) {
  return ops::batch_norm_of_layer(x, mean, var, weight, bias, eps, std::nullopt);
}

}  // namespace clnet
