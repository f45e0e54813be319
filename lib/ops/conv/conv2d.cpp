// 2-d convolution and the gradients of its input and of its weight. Each one's gradient is made of the other two.
#include "lib/ops/conv/conv2d.h"

#include <fmt/format.h>

#include "lib/graph/node.h"
#include "lib/graph/op.h"
#include "lib/ops/as_f32.h"
#include "lib/ops/conv/conv2d_strips.h"

namespace clnet {

namespace ops {

namespace {

Pair size_of(const Tensor& t) { return {t.size(2), t.size(3)}; }

/// What the three have in common: the options, and a size that the inputs' shapes leave open. The first two know volumes.
class ConvOp : public Op {
 public:
  ConvOp(Conv2dFuncOptions options, Pair size, std::int64_t slices = 1) : options_(options), size_(size), slices_(slices) {}
  ConvOp(Conv2dFuncOptions options, Pair size, const DepthWindows& volume)
      : options_(options), size_(size), slices_(volume.out), volume_(volume) {}

  Fields fields() const override {
    const auto& o = options_;
    std::vector<std::int64_t> depth;
    if (volume_) {
      const auto& [extent, out, kernel, axis] = *volume_;
      depth = {extent, out, kernel, axis.stride, axis.before, axis.dilation};
    }
    return {{"stride", std::vector{o.stride.height, o.stride.width}},
            {"padding", std::vector{o.padding.top, o.padding.left, o.padding.bottom, o.padding.right}},
            {"dilation", std::vector{o.dilation.height, o.dilation.width}},
            {"groups", o.groups},
            {"size", std::vector{size_.height, size_.width}},
            {"slices", slices_},
            {"depth", depth}};
  }
  /// How many of a batch belong together.
  std::int64_t unit() const { return volume_ ? 1 : slices_; }

  void lower(exec::Recorder& recorder) const override {
    const auto problem = describe(recorder);
    solvers().lower(problem, recorder.device(), recorder);
  }

 protected:
  using Problem = Conv2dProblem;

  virtual Problem describe(const exec::Recorder& recorder) const = 0;
  virtual const exec::SolverList<Problem>& solvers() const = 0;

  Problem problem(const exec::Recorder& recorder, exec::Ref x, exec::Ref weight, exec::Ref y) const {
    auto result = problem(recorder.spec(x), recorder.spec(weight), recorder.spec(y));
    result.x = x, result.weight = weight, result.y = y;
    return result;
  }

  Problem problem(const Spec& x, const Spec& weight, const Spec& y) const {
    const auto &xs = x.shape, &ws = weight.shape, &ys = y.shape;
    const int row = volume_ ? 3 : 2;
    return {.n = xs[0] * (volume_ ? slices_ : 1),
            .c = xs[1] * (volume_ ? volume_->kernel : 1),
            .h = xs[row],
            .w = xs[row + 1],
            .o = ws[0],
            .kh = ws[2],
            .kw = ws[3],
            .oh = ys[2] / slices_,
            .ow = ys[3],
            .stride = options_.stride,
            .top = options_.padding.top,
            .left = options_.padding.left,
            .dilation = options_.dilation,
            .groups = options_.groups,
            .slices = slices_,
            .volume = volume_,
            .x = {},
            .weight = {},
            .y = {},
            .bias = {},
            .dtype = x.dtype};
  }

  Conv2dFuncOptions options_;
  Pair size_;
  std::int64_t slices_;
  std::optional<DepthWindows> volume_;
};

// A solver's functions for one of the three.

/// Of a solver that knows images only: volumes are unfolded for it, or folded from what it makes.
template <Conv2dDirection direction, Conv2dRecord lower>
void record(const Conv2dProblem& problem, exec::Recorder& recorder) {
  if (!problem.volume) return lower(problem, direction, recorder);
  auto images = problem;
  images.volume.reset();
  // What is folded is summed once more, and rounded to the dtype at the end only.
  images.x = recorder.temporary({Shape{problem.n, problem.c, problem.h, problem.w},
                                 direction == Conv2dDirection::forward ? problem.dtype : computed_in(problem.dtype)});
  if (direction == Conv2dDirection::forward) {
    record_unfold_depth(problem.x, images.x, *problem.volume, recorder);
    return lower(images, direction, recorder);
  }
  if (problem.slices > 1) {
    images.slices = 1;
    images.y = recorder.temporary({Shape{problem.n, problem.o, problem.oh, problem.ow}, problem.dtype});
    recorder.kernel("conv2d_swap", "conv2d_swap")
        .define("ARRAYS", 1)
        .in("x", problem.y)
        .out("y", images.y)
        .args({problem.o, problem.slices, problem.pixels()})
        .range({problem.pixels(), problem.o * problem.slices, problem.n / problem.slices}, {64, 1, 1});
  }
  lower(images, direction, recorder);
  record_fold_depth(images.x, problem.x, *problem.volume, recorder);
}
/// Of a solver for CPUs that is given what a 1x1 convolution sees.
template <Conv2dDirection direction, Conv2dRecord lower>
void record_unstrided(const Conv2dProblem& problem, exec::Recorder& recorder) {
  if (problem.volume) return record<direction, lower>(problem, recorder);
  conv2d_strided_1x1_cpu(problem, direction, lower, recorder);
}
template <Conv2dDirection direction>
void record_cpu(const Conv2dProblem& problem, exec::Recorder& recorder) {
  if (conv3d_cpu_serves(problem, direction, recorder.device())) return conv2d_cpu(problem, direction, recorder);
  record_unstrided<direction, conv2d_cpu>(problem, recorder);
}
template <Conv2dDirection direction,
          std::optional<std::string> (*rejects)(const Conv2dProblem&, Conv2dDirection, const DeviceInfo&)>
std::optional<std::string> refuse(const Conv2dProblem& problem, const DeviceInfo& device) {
  return rejects(problem, direction, device);
}
template <Conv2dDirection direction,
          std::optional<std::string> (*rejects)(const Conv2dProblem&, Conv2dDirection, const DeviceInfo&)>
std::optional<std::string> refuse_unstrided(const Conv2dProblem& problem, const DeviceInfo& device) {
  return rejects(conv2d_unstrided(problem), direction, device);
}
template <Conv2dDirection direction,
          std::vector<exec::Config> (*configs)(const Conv2dProblem&, Conv2dDirection, const DeviceInfo&)>
std::vector<exec::Config> list_configs(const Conv2dProblem& problem, const DeviceInfo& device) {
  return configs(problem, direction, device);
}
template <Conv2dDirection direction,
          std::vector<exec::Config> (*configs)(const Conv2dProblem&, Conv2dDirection, const DeviceInfo&)>
std::vector<exec::Config> list_unstrided_configs(const Conv2dProblem& problem, const DeviceInfo& device) {
  return configs(conv2d_unstrided(problem), direction, device);
}

template <Conv2dDirection direction>
std::vector<exec::Solver<Conv2dProblem>> candidates() {
  return {{"pointwise_cpu", refuse_unstrided<direction, conv2d_pointwise_cpu_rejects>,
           record_unstrided<direction, conv2d_pointwise_cpu>, refuse_unstrided<direction, conv2d_pointwise_cpu_declines>,
           list_unstrided_configs<direction, conv2d_pointwise_cpu_configs>},
          {"depthwise_cpu", refuse<direction, conv2d_depthwise_cpu_rejects>, record<direction, conv2d_depthwise_cpu>, nullptr,
           list_configs<direction, conv2d_depthwise_cpu_configs>},
          {"nchw_cpu", refuse<direction, conv2d_nchw_cpu_rejects>, record<direction, conv2d_nchw_cpu>,
           refuse<direction, conv2d_nchw_cpu_declines>, list_configs<direction, conv2d_nchw_cpu_configs>},
          {"winograd_cpu", refuse<direction, conv2d_winograd_cpu_rejects>, record<direction, conv2d_winograd_cpu>,
           refuse<direction, conv2d_winograd_cpu_declines>, list_configs<direction, conv2d_winograd_cpu_configs>},
          {"cpu", refuse_unstrided<direction, conv2d_cpu_rejects>, record_cpu<direction>, nullptr,
           list_unstrided_configs<direction, conv2d_cpu_configs>},
          {"depthwise_gpu", refuse<direction, conv2d_depthwise_gpu_rejects>, record<direction, conv2d_depthwise_gpu>,
           refuse<direction, conv2d_depthwise_gpu_declines>, list_configs<direction, conv2d_depthwise_gpu_configs>,
           exec::MadeFor::gpus},
          {"packed_matrix_units_gpu", refuse<direction, conv2d_packed_matrix_units_gpu_rejects>,
           record<direction, conv2d_packed_matrix_units_gpu>, refuse<direction, conv2d_packed_matrix_units_gpu_declines>,
           list_configs<direction, conv2d_packed_matrix_units_gpu_configs>, exec::MadeFor::gpus},
          {"matrix_units_gpu", refuse<direction, conv2d_matrix_units_gpu_rejects>, record<direction, conv2d_matrix_units_gpu>,
           refuse<direction, conv2d_matrix_units_gpu_declines>, list_configs<direction, conv2d_matrix_units_gpu_configs>,
           exec::MadeFor::gpus},
          {"winograd_gpu", refuse<direction, conv2d_winograd_gpu_rejects>, record<direction, conv2d_winograd_gpu>,
           refuse<direction, conv2d_winograd_gpu_declines>, list_configs<direction, conv2d_winograd_gpu_configs>,
           exec::MadeFor::gpus},
          {"packed_gpu", refuse<direction, conv2d_packed_gpu_rejects>, record<direction, conv2d_packed_gpu>,
           refuse<direction, conv2d_packed_gpu_declines>, list_configs<direction, conv2d_gpu_configs>, exec::MadeFor::gpus},
          {"gpu", refuse<direction, conv2d_gpu_rejects>, record<direction, conv2d_gpu>, refuse<direction, conv2d_gpu_declines>,
           list_configs<direction, conv2d_gpu_configs>, exec::MadeFor::gpus},
          {"im2col", conv2d_im2col_rejects, record<direction, conv2d_im2col>},
          {"direct", exec::accepts_everything<Conv2dProblem>, record<direction, conv2d_direct>}};
}

const exec::SolverList<Conv2dProblem> forward_solvers{"conv2d", candidates<Conv2dDirection::forward>()};
const exec::SolverList<Conv2dProblem> data_solvers{"conv2d_backward_data", candidates<Conv2dDirection::backward_data>()};
const exec::SolverList<Conv2dProblem> weights_solvers{"conv2d_backward_weights", candidates<Conv2dDirection::backward_weights>()};

/// {N, O, slices * height, width} as the images that it was made of {N * slices, O, height, width}.
Tensor as_images(const Tensor& y, std::int64_t slices) {
  if (slices == 1) return y;
  const auto n = y.size(0), o = y.size(1), height = y.size(2) / slices, width = y.size(3);
  return reshape(permute(reshape(y, {n, o, slices, height * width}), {0, 2, 1, 3}), {n * slices, o, height, width});
}

/// `size` is the output's height and width.
class Conv2d : public ConvOp {
 public:
  using ConvOp::ConvOp;
  std::string_view name() const override { return "conv2d"; }
  Precision precision() const override { return Precision::low; }
  FusionHints fusion(const Specs&) const override { return {.epilogue = true}; }
  TuningHints tuning(const Specs&) const override { return {.batches = {0}, .unit = unit(), .packed = 1}; }
  const exec::Rewrite* rewrite() const override { return &conv2d_in_strips(); }

  Specs infer(const Specs& inputs) const override {
    const auto &x = inputs[0], &weight = inputs[1];
    return {{Shape{x.shape[0] / (volume_ ? 1 : slices_), weight.shape[0], slices_ * size_.height, size_.width}, x.dtype}};
  }

  /// Whether there is a bias is told before it has a place.
  Problem problem_of(const Node& node) const {
    auto result = problem(node.inputs[0].spec(), node.inputs[1].spec(), node.outputs[0]);
    if (node.inputs.size() == 3) result.bias.value = 0;
    return result;
  }

  Tensors vjp(const Tensors& inputs, const Tensors&, const Tensors& gradients) const override {
    const auto &x = inputs[0], &weight = inputs[1], &g = gradients[0];
    const Tensor images = as_images(g, slices_);
    const bool in_place = volume_ && phases_are_even(*volume_, size_of(weight), options_.stride);
    const Pair size{x.size(x.rank() - 2), x.size(x.rank() - 1)};
    Tensor dx = in_place ? conv2d_of_volumes_backward_data(g, weight, size, options_, *volume_)
                         : conv2d_backward_data(images, weight, size, options_);
    if (volume_ && !in_place) dx = fold_depth(dx, *volume_);
    Tensors result{dx, conv2d_backward_weights(volume_ ? unfold_depth(x, *volume_) : x, images, size_of(weight), options_)};
    if (inputs.size() == 3) result.push_back(sum(g, {0, 2, 3}));
    return result;
  }

 private:
  Problem describe(const exec::Recorder& r) const override {
    auto result = problem(r, r.input(0), r.input(1), r.output());
    if (r.input_count() == 3) result.bias = r.input(2);
    result.readers = r.equal_readers(1);
    return result;
  }
  const exec::SolverList<Problem>& solvers() const override { return forward_solvers; }
};

/// `size` is the input's height and width.
class Conv2dBackwardData : public ConvOp {
 public:
  using ConvOp::ConvOp;
  std::string_view name() const override { return "conv2d_backward_data"; }
  Precision precision() const override { return Precision::low; }
  /// What a solver makes of a volume may only be what is folded.
  FusionHints fusion(const Specs&) const override { return {.epilogue = !volume_}; }
  TuningHints tuning(const Specs&) const override { return {.batches = {0}, .unit = unit(), .packed = 1}; }

  Specs infer(const Specs& inputs) const override {
    const auto &g = inputs[0], &weight = inputs[1];
    const auto channels = weight.shape[1] * options_.groups;
    if (!volume_) return {{Shape{g.shape[0], channels, size_.height, size_.width}, g.dtype}};
    return {{Shape{g.shape[0], channels / volume_->kernel, volume_->depth, size_.height, size_.width}, g.dtype}};
  }

  Tensors vjp(const Tensors& inputs, const Tensors&, const Tensors& gradients) const override {
    const auto &g = inputs[0], &weight = inputs[1], &gg = gradients[0];
    if (volume_)
      return {conv2d_of_volumes(gg, weight, {}, {g.size(2) / slices_, g.size(3)}, options_, *volume_),
              conv2d_backward_weights(unfold_depth(gg, *volume_), as_images(g, slices_), size_of(weight), options_)};
    return {conv2d_sized(gg, weight, {}, size_of(g), options_), conv2d_backward_weights(gg, g, size_of(weight), options_)};
  }

 private:
  Problem describe(const exec::Recorder& r) const override {
    auto result = problem(r, r.output(), r.input(1), r.input(0));
    result.readers = r.equal_readers(1);
    return result;
  }
  const exec::SolverList<Problem>& solvers() const override { return data_solvers; }
};

/// `size` is the kernel's height and width.
class Conv2dBackwardWeights : public ConvOp {
 public:
  using ConvOp::ConvOp;
  std::string_view name() const override { return "conv2d_backward_weights"; }
  Precision precision() const override { return Precision::low; }
  TuningHints tuning(const Specs&) const override { return {.batches = {0, 1}, .unit = unit()}; }

  Specs infer(const Specs& inputs) const override {
    const auto &x = inputs[0], &g = inputs[1];
    return {{Shape{g.shape[1], x.shape[1] / options_.groups, size_.height, size_.width}, x.dtype}};
  }

  Tensors vjp(const Tensors& inputs, const Tensors&, const Tensors& gradients) const override {
    const auto &x = inputs[0], &g = inputs[1], &gg = gradients[0];
    return {conv2d_backward_data(g, gg, size_of(x), options_), conv2d_sized(x, gg, {}, size_of(g), options_)};
  }

 private:
  Problem describe(const exec::Recorder& r) const override { return problem(r, r.input(0), r.output(), r.input(1)); }
  const exec::SolverList<Problem>& solvers() const override { return weights_solvers; }
};

}  // namespace

std::string Conv2dProblem::text() const {
  return fmt::format("{}x{}x{}x{} {} {}x{} s{}x{}", n, c, h, w, o, kh, kw, stride.height, stride.width);
}

exec::Ref weight_sums(const Conv2dProblem& p, std::int64_t parts, exec::Recorder& recorder) {
  return parts == 1 ? p.weight : recorder.temporary({Shape{parts, p.weight_size()}, computed_in(p.dtype)});
}

void add_up_weight(const Conv2dProblem& p, exec::Ref sums, std::int64_t parts, exec::Recorder& recorder) {
  const auto size = p.weight_size();
  recorder.kernel("conv2d_sum_parts", "conv2d_sum_parts")
      .in("x", sums)
      .out("y", p.weight)
      .args({size, parts})
      .range({size}, {64});
}

std::optional<Conv2dProblem> conv2d_problem(const Node& node) {
  const auto* conv = dynamic_cast<const Conv2d*>(node.op.get());
  return conv ? std::optional(conv->problem_of(node)) : std::nullopt;
}

Tensor conv2d_sized(const Tensor& x, const Tensor& weight, const Tensor& bias, Pair output_size, const Conv2dFuncOptions& options,
                    std::int64_t slices) {
  Tensors inputs{x, weight};
  if (bias.defined()) inputs.push_back(bias);
  return clnet::apply(std::make_shared<Conv2d>(options, output_size, slices), std::move(inputs));
}

Tensor conv2d_backward_data(const Tensor& g, const Tensor& weight, Pair input_size, const Conv2dFuncOptions& options) {
  return clnet::apply(std::make_shared<Conv2dBackwardData>(options, input_size), {g, weight});
}

Tensor conv2d_of_volumes(const Tensor& x, const Tensor& weight, const Tensor& bias, Pair output_size,
                         const Conv2dFuncOptions& options, const DepthWindows& windows) {
  Tensors inputs{x, weight};
  if (bias.defined()) inputs.push_back(bias);
  return clnet::apply(std::make_shared<Conv2d>(options, output_size, windows), std::move(inputs));
}

Tensor conv2d_of_volumes_backward_data(const Tensor& g, const Tensor& weight, Pair input_size, const Conv2dFuncOptions& options,
                                       const DepthWindows& windows) {
  return clnet::apply(std::make_shared<Conv2dBackwardData>(options, input_size, windows), {g, weight});
}

Tensor conv2d_backward_weights(const Tensor& x, const Tensor& g, Pair kernel_size, const Conv2dFuncOptions& options) {
  return clnet::apply(std::make_shared<Conv2dBackwardWeights>(options, kernel_size), {x, g});
}

}  // namespace ops

}  // namespace clnet
