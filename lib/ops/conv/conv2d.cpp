// 2-d convolution and the gradients of its input and of its weight. Each one's gradient is made of the other two.
#include "lib/ops/conv/conv2d.h"

#include <fmt/format.h>

#include "clnet/error.h"
#include "lib/graph/op.h"
#include "lib/graph/require.h"
#include "lib/ops/elementwise/elementwise.h"

namespace clnet {

namespace ops {

namespace {

void require_images(std::string_view op, std::string_view what, const Spec& spec) {
  if (spec.shape.rank() != 4)
    throw ShapeError(fmt::format("{}: {} must be {}, got {}", op, what, "4-dimensional", to_string(spec)));
}

Pair size_of(const Tensor& t) { return {t.size(2), t.size(3)}; }

/// How many pixels a kernel sees along one dimension.
std::int64_t output_extent(std::int64_t in, std::int64_t before, std::int64_t after, std::int64_t kernel, std::int64_t stride,
                           std::int64_t dilation) {
  const auto room = in + before + after - dilation * (kernel - 1) - 1;
  return room < 0 ? 0 : room / stride + 1;
}

/// What the three have in common: the options, and a size that the inputs' shapes leave open.
class ConvOp : public Op {
 public:
  ConvOp(Conv2dOptions options, Pair size) : options_(options), size_(size) {}

  Fields fields() const override {
    const auto& o = options_;
    return {{"stride", std::vector{o.stride.height, o.stride.width}},
            {"padding", std::vector{o.padding.top, o.padding.left, o.padding.bottom, o.padding.right}},
            {"dilation", std::vector{o.dilation.height, o.dilation.width}},
            {"groups", o.groups},
            {"size", std::vector{size_.height, size_.width}}};
  }

  void lower(exec::Recorder& recorder) const override {
    const auto problem = describe(recorder);
    solvers().lower(problem, recorder.device(), recorder);
  }

 protected:
  using Problem = Conv2dProblem;

  virtual Problem describe(const exec::Recorder& recorder) const = 0;
  virtual const exec::SolverList<Problem>& solvers() const = 0;

  Problem problem(const exec::Recorder& recorder, exec::Ref x, exec::Ref weight, exec::Ref y) const {
    const auto &xs = recorder.spec(x).shape, &ws = recorder.spec(weight).shape, &ys = recorder.spec(y).shape;
    return {.n = xs[0],
            .c = xs[1],
            .h = xs[2],
            .w = xs[3],
            .o = ws[0],
            .kh = ws[2],
            .kw = ws[3],
            .oh = ys[2],
            .ow = ys[3],
            .stride = options_.stride,
            .top = options_.padding.top,
            .left = options_.padding.left,
            .dilation = options_.dilation,
            .groups = options_.groups,
            .x = x,
            .weight = weight,
            .y = y,
            .bias = {},
            .dtype = recorder.spec(x).dtype};
  }

  Conv2dOptions options_;
  Pair size_;
};

/// A solver's functions for one of the three.
template <Conv2dPass pass, void (*lower)(const Conv2dProblem&, Conv2dPass, exec::Recorder&)>
void record(const Conv2dProblem& problem, exec::Recorder& recorder) {
  lower(problem, pass, recorder);
}
template <Conv2dPass pass, std::optional<std::string> (*rejects)(const Conv2dProblem&, Conv2dPass, const DeviceInfo&)>
std::optional<std::string> refuse(const Conv2dProblem& problem, const DeviceInfo& device) {
  return rejects(problem, pass, device);
}

template <Conv2dPass pass>
std::vector<exec::Solver<Conv2dProblem>> candidates() {
  return {{"cpu_pointwise", refuse<pass, conv2d_pointwise_cpu_rejects>, record<pass, conv2d_pointwise_cpu>,
           refuse<pass, conv2d_pointwise_cpu_declines>},
          {"cpu_planes", refuse<pass, conv2d_planes_cpu_rejects>, record<pass, conv2d_planes_cpu>,
           refuse<pass, conv2d_planes_cpu_declines>},
          {"cpu_winograd", refuse<pass, conv2d_winograd_cpu_rejects>, record<pass, conv2d_winograd_cpu>,
           refuse<pass, conv2d_winograd_cpu_declines>},
          {"cpu", refuse<pass, conv2d_cpu_rejects>, record<pass, conv2d_cpu>},
          {"im2col", conv2d_im2col_rejects, record<pass, conv2d_im2col>},
          {"direct", exec::accepts_everything<Conv2dProblem>, record<pass, conv2d_direct>}};
}

const exec::SolverList<Conv2dProblem> forward_solvers{"conv2d", candidates<Conv2dPass::forward>()};
const exec::SolverList<Conv2dProblem> data_solvers{"conv2d_backward_data", candidates<Conv2dPass::backward_data>()};
const exec::SolverList<Conv2dProblem> weights_solvers{"conv2d_backward_weights", candidates<Conv2dPass::backward_weights>()};

/// `size` is the output's height and width.
class Conv2d : public ConvOp {
 public:
  using ConvOp::ConvOp;
  std::string_view name() const override { return "conv2d"; }
  bool takes_epilogue() const override { return true; }
  std::optional<std::vector<std::size_t>> tuned_batches() const override { return std::vector<std::size_t>{0}; }

  Specs infer(const Specs& inputs) const override {
    const auto &x = inputs[0], &weight = inputs[1];
    return {{Shape{x.shape[0], weight.shape[0], size_.height, size_.width}, x.dtype}};
  }

  Tensors vjp(const Tensors& inputs, const Tensors&, const Tensors& gradients) const override {
    const auto &x = inputs[0], &weight = inputs[1], &g = gradients[0];
    Tensors result{conv2d_backward_data(g, weight, size_of(x), options_),
                   conv2d_backward_weights(x, g, size_of(weight), options_)};
    if (inputs.size() == 3) result.push_back(sum(g, {0, 2, 3}));
    return result;
  }

 private:
  Problem describe(const exec::Recorder& r) const override {
    auto result = problem(r, r.input(0), r.input(1), r.output());
    if (r.input_count() == 3) result.bias = r.input(2);
    return result;
  }
  const exec::SolverList<Problem>& solvers() const override { return forward_solvers; }
};

/// conv2d with an output size that its options need not give: the gradients of the gradients know it.
Tensor conv2d_sized(const Tensor& x, const Tensor& weight, Pair output_size, const Conv2dOptions& options) {
  return clnet::apply(std::make_shared<Conv2d>(options, output_size), {x, weight});
}

/// `size` is the input's height and width.
class Conv2dBackwardData : public ConvOp {
 public:
  using ConvOp::ConvOp;
  std::string_view name() const override { return "conv2d_backward_data"; }
  std::optional<std::vector<std::size_t>> tuned_batches() const override { return std::vector<std::size_t>{0}; }

  Specs infer(const Specs& inputs) const override {
    const auto &g = inputs[0], &weight = inputs[1];
    return {{Shape{g.shape[0], weight.shape[1] * options_.groups, size_.height, size_.width}, g.dtype}};
  }

  Tensors vjp(const Tensors& inputs, const Tensors&, const Tensors& gradients) const override {
    const auto &g = inputs[0], &weight = inputs[1], &gg = gradients[0];
    return {conv2d_sized(gg, weight, size_of(g), options_), conv2d_backward_weights(gg, g, size_of(weight), options_)};
  }

 private:
  Problem describe(const exec::Recorder& r) const override { return problem(r, r.output(), r.input(1), r.input(0)); }
  const exec::SolverList<Problem>& solvers() const override { return data_solvers; }
};

/// `size` is the kernel's height and width.
class Conv2dBackwardWeights : public ConvOp {
 public:
  using ConvOp::ConvOp;
  std::string_view name() const override { return "conv2d_backward_weights"; }
  std::optional<std::vector<std::size_t>> tuned_batches() const override { return std::vector<std::size_t>{0, 1}; }

  Specs infer(const Specs& inputs) const override {
    const auto &x = inputs[0], &g = inputs[1];
    return {{Shape{g.shape[1], x.shape[1] / options_.groups, size_.height, size_.width}, x.dtype}};
  }

  Tensors vjp(const Tensors& inputs, const Tensors&, const Tensors& gradients) const override {
    const auto &x = inputs[0], &g = inputs[1], &gg = gradients[0];
    return {conv2d_backward_data(g, gg, size_of(x), options_), conv2d_sized(x, gg, size_of(g), options_)};
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
  return parts == 1 ? p.weight : recorder.temporary({Shape{parts, p.weight_size()}, Dtype::f32});
}

void add_up_weight(const Conv2dProblem& p, exec::Ref sums, std::int64_t parts, exec::Recorder& recorder) {
  const auto size = p.weight_size();
  recorder.kernel("conv2d_sum_parts", "conv2d_sum_parts")
      .in("x", sums)
      .out("y", p.weight)
      .args({size, parts})
      .range({size}, {64});
}

void require_valid(std::string_view op, const Conv2dOptions& options) {
  const auto &s = options.stride, &d = options.dilation;
  const auto& p = options.padding;
  if (s.height < 1 || s.width < 1) throw ShapeError(fmt::format("{}: stride {}x{} must be at least 1", op, s.height, s.width));
  if (d.height < 1 || d.width < 1) throw ShapeError(fmt::format("{}: dilation {}x{} must be at least 1", op, d.height, d.width));
  if (options.groups < 1) throw ShapeError(fmt::format("{}: groups {} must be at least 1", op, options.groups));
  for (auto value : {s.height, s.width, d.height, d.width, p.top, p.left, p.bottom, p.right, options.groups})
    if (value > largest_window)
      throw ShapeError(fmt::format("{}: strides, dilations, padding and groups end at {}, got {}", op, largest_window, value));
  if (p.top < 0 || p.left < 0 || p.bottom < 0 || p.right < 0)
    throw ShapeError(
        fmt::format("{}: padding {{{}, {}, {}, {}}} must not be negative; slice() crops", op, p.top, p.left, p.bottom, p.right));
}

void require_conv_operands(std::string_view op, const Tensor& x, const Tensor& weight, const Tensor& bias,
                           std::int64_t out_channels) {
  require_images(op, "the input {N, C, H, W}", x.spec());
  require_images(op, "the weight", weight.spec());
  require_floating(op, x.spec());
  require_same_dtype(op, x.spec(), weight.spec());
  if (weight.size(2) < 1 || weight.size(3) < 1)
    throw ShapeError(fmt::format("{}: weight {} has an empty kernel", op, to_string(weight.spec())));
  if (!bias.defined()) return;
  require_same_dtype(op, x.spec(), bias.spec());
  if (bias.rank() != 1 || bias.size(0) != out_channels)
    throw ShapeError(fmt::format("{}: bias {} does not fit {} output channels of weight {}", op, to_string(bias.spec()),
                                 out_channels, to_string(weight.spec())));
}

Tensor conv2d_backward_data(const Tensor& g, const Tensor& weight, Pair input_size, const Conv2dOptions& options) {
  return clnet::apply(std::make_shared<Conv2dBackwardData>(options, input_size), {g, weight});
}

Tensor conv2d_backward_weights(const Tensor& x, const Tensor& g, Pair kernel_size, const Conv2dOptions& options) {
  return clnet::apply(std::make_shared<Conv2dBackwardWeights>(options, kernel_size), {x, g});
}

}  // namespace ops

using namespace ops;

Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv2dOptions& options) {
  require_defined("conv2d", {{"x", x}, {"weight", weight}});
  constexpr std::string_view op = "conv2d";
  require_valid(op, options);
  require_conv_operands(op, x, weight, bias, weight.rank() == 4 ? weight.size(0) : 0);
  const auto groups = options.groups;
  if (x.size(1) != weight.size(1) * groups)
    throw ShapeError(fmt::format("{}: input {} has {} channels, but weight {} with {} groups takes {}", op, to_string(x.spec()),
                                 x.size(1), to_string(weight.spec()), groups, weight.size(1) * groups));
  if (weight.size(0) % groups != 0)
    throw ShapeError(fmt::format("{}: the {} output channels of weight {} are not a multiple of {} groups (input {})", op,
                                 weight.size(0), to_string(weight.spec()), groups, to_string(x.spec())));
  const auto& p = options.padding;
  if (x.size(2) + p.top + p.bottom > largest_window || x.size(3) + p.left + p.right > largest_window)
    throw ShapeError(fmt::format("{}: input {} with padding {{{}, {}, {}, {}}} is more than {} high or wide", op,
                                 to_string(x.spec()), p.top, p.left, p.bottom, p.right, largest_window));
  const Pair size{output_extent(x.size(2), p.top, p.bottom, weight.size(2), options.stride.height, options.dilation.height),
                  output_extent(x.size(3), p.left, p.right, weight.size(3), options.stride.width, options.dilation.width)};
  if (size.height < 1 || size.width < 1)
    throw ShapeError(
        fmt::format("{}: weight {}, dilated by {}x{}, is larger than the padded input {} (padding {{{}, {}, {}, {}}})", op,
                    to_string(weight.spec()), options.dilation.height, options.dilation.width, to_string(x.spec()), p.top, p.left,
                    p.bottom, p.right));
  Tensors inputs{x, weight};
  if (bias.defined()) inputs.push_back(bias);
  return clnet::apply(std::make_shared<Conv2d>(options, size), std::move(inputs));
}

}  // namespace clnet
