// avg_pool2d, adaptive_avg_pool2d and global_avg_pool2d.
#include "lib/exec/choose/solver.h"
#include "lib/graph/require.h"
#include "lib/ops/pool/pool2d.h"

namespace clnet {

namespace ops {

namespace {

/// Either direction: `from` are the values that are averaged, or the gradients that are spread.
struct AvgPool2dProblem {
  exec::Ref from, to;
  std::int64_t planes = 0;
  PoolWindows windows;
  bool include_pad = true, backward = false;
};

void lower_pool(const AvgPool2dProblem& p, exec::Recorder& recorder, bool by_rows) {
  const auto& windows = p.windows;
  const auto height = p.backward ? windows.h : windows.out_h, width = p.backward ? windows.w : windows.out_w;
  const std::string_view name = p.backward ? "avg_pool2d_backward" : "avg_pool2d";
  auto& launch = recorder.kernel(name, name).in(p.backward ? "g" : "x", p.from).out(p.backward ? "dx" : "y", p.to);
  if (p.include_pad) launch.define("INCLUDE_PAD", 1);
  launch_pool(launch, windows, p.planes, height, width, by_rows ? pool_rows(p.planes, height, recorder.device()) : 0);
  recorder.epilogue(launch, 1, p.planes * height * width);
}

exec::SolverList<AvgPool2dProblem> make_solvers(std::string_view op) {
  return {op,
          {{"rows_cpu", [](const AvgPool2dProblem&, const DeviceInfo& device) { return needs_vector_cpu(device); },
            [](const AvgPool2dProblem& p, exec::Recorder& recorder) { lower_pool(p, recorder, true); }},
           {"direct", exec::accepts_everything<AvgPool2dProblem>,
            [](const AvgPool2dProblem& p, exec::Recorder& recorder) { lower_pool(p, recorder, false); }}}};
}

const auto forward_solvers = make_solvers("avg_pool2d");
const auto backward_solvers = make_solvers("avg_pool2d_backward");

/// The average, or its gradient: each is linear and the other's gradient.
class AvgPool2d : public Op {
 public:
  AvgPool2d(PoolWindows windows, bool include_pad, bool backward)
      : windows_(windows), include_pad_(include_pad), backward_(backward) {}
  std::string_view name() const override { return backward_ ? "avg_pool2d_backward" : "avg_pool2d"; }
  bool takes_epilogue() const override { return true; }
  Fields fields() const override {
    auto result = windows_.fields();
    result.emplace_back("count_include_pad", include_pad_);
    return result;
  }

  Specs infer(const Specs& inputs) const override {
    const auto height = backward_ ? windows_.h : windows_.out_h, width = backward_ ? windows_.w : windows_.out_w;
    return {{inputs[0].shape.with(2, height).with(3, width), inputs[0].dtype}};
  }
  Tensors vjp(const Tensors&, const Tensors&, const Tensors& gradients) const override {
    return {apply(std::make_shared<AvgPool2d>(windows_, include_pad_, !backward_), {gradients[0]})};
  }
  void lower(exec::Recorder& recorder) const override {
    const auto& shape = recorder.spec(recorder.input(0)).shape;
    (backward_ ? backward_solvers : forward_solvers)
        .lower({recorder.input(0), recorder.output(), shape[0] * shape[1], windows_, include_pad_, backward_}, recorder.device(),
               recorder);
  }

 private:
  PoolWindows windows_;
  bool include_pad_, backward_;
};

}  // namespace

}  // namespace ops

using namespace ops;

Tensor avg_pool2d(const Tensor& x, Pair kernel_size, const AvgPool2dOptions& options) {
  require_defined("avg_pool2d", {{"x", x}});
  const auto windows = pool_windows("avg_pool2d", x.spec(), kernel_size, options.stride.value_or(kernel_size), options.padding, 1,
                                    options.ceil_mode);
  return apply(std::make_shared<AvgPool2d>(windows, options.count_include_pad, false), {x});
}

namespace {

Tensor adaptive(std::string_view op, const Tensor& x, Pair output_size) {
  require_defined(op, {{"x", x}});
  const auto windows = adaptive_windows(op, x.spec(), output_size);
  if (output_size == Pair(1)) return mean(x, {2, 3}, true);
  return apply(std::make_shared<AvgPool2d>(windows, true, false), {x});
}

}  // namespace

Tensor adaptive_avg_pool2d(const Tensor& x, Pair output_size) { return adaptive("adaptive_avg_pool2d", x, output_size); }
Tensor global_avg_pool2d(const Tensor& x) { return adaptive("global_avg_pool2d", x, 1); }

}  // namespace clnet
