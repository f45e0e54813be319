#include "lib/ops/conv/unfold_depth.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/exec/launch/recorder.h"
#include "lib/graph/op.h"
#include "lib/ops/shape/strided_copy.h"

namespace clnet::ops {

namespace {

void record_either(bool fold, exec::Ref from, exec::Ref to, const DepthWindows& windows, exec::Recorder& recorder) {
  const auto& volumes = recorder.spec(fold ? to : from).shape;
  const auto count = recorder.spec(to).shape.numel();
  const auto inner = volumes[3] * volumes[4];
  const auto& device = recorder.device();
  const char* name = fold ? "fold_depth" : "unfold_depth";
  auto& launch = recorder.kernel(name, name).in("x", from).out("y", to);
  const bool f64 = recorder.spec(from).dtype == Dtype::f64;
  const auto lines = inner == 0 ? 0 : count / inner, rows = f64 ? 0 : rows_per_item(lines, inner, device);
  launch.args({count, rows, volumes[1], inner, windows.depth, windows.out, windows.kernel, windows.axis.stride,
               windows.axis.before, windows.axis.dilation});
  if (rows > 0) {
    launch.define("ROWS", 1).range({(lines + rows - 1) / rows}, {1});
    if (fold) launch.define("VW", std::clamp<std::int64_t>(device.native_float_width, 4, 16));
  } else {
    launch.range({count}, {64});
  }
  launch.detail(fmt::format("{} by {}", to_string(volumes), windows.kernel));
}

/// Either direction: each is linear and the other's gradient.
class UnfoldDepth : public Op {
 public:
  UnfoldDepth(DepthWindows windows, bool fold) : windows_(windows), fold_(fold) {}
  std::string_view name() const override { return fold_ ? "fold_depth" : "unfold_depth"; }
  FusionHints fusion(const Specs&) const override { return {.cheap = true}; }
  Fields fields() const override {
    const auto& [depth, out, kernel, axis] = windows_;
    return {{"depth", depth},           {"out", out}, {"kernel", kernel}, {"stride", axis.stride}, {"before", axis.before},
            {"dilation", axis.dilation}};
  }

  Specs infer(const Specs& inputs) const override {
    const auto& [shape, dtype] = inputs[0];
    const auto& [depth, out, kernel, axis] = windows_;
    if (fold_) return {{Shape{shape[0] / out, shape[1] / kernel, depth, shape[2], shape[3]}, dtype}};
    return {{Shape{shape[0] * out, shape[1] * kernel, shape[3], shape[4]}, dtype}};
  }
  Tensors vjp(const Tensors&, const Tensors&, const Tensors& gradients) const override {
    return {clnet::apply(std::make_shared<UnfoldDepth>(windows_, !fold_), {gradients[0]})};
  }
  void lower(exec::Recorder& recorder) const override {
    if (fold_)
      record_fold_depth(recorder.input(0), recorder.output(), windows_, recorder);
    else
      record_unfold_depth(recorder.input(0), recorder.output(), windows_, recorder);
  }

 private:
  DepthWindows windows_;
  bool fold_;
};

}  // namespace

Tensor unfold_depth(const Tensor& x, const DepthWindows& windows) {
  return clnet::apply(std::make_shared<UnfoldDepth>(windows, false), {x});
}

Tensor fold_depth(const Tensor& unfolded, const DepthWindows& windows) {
  return clnet::apply(std::make_shared<UnfoldDepth>(windows, true), {unfolded});
}

void record_unfold_depth(exec::Ref volumes, exec::Ref images, const DepthWindows& windows, exec::Recorder& recorder) {
  record_either(false, volumes, images, windows, recorder);
}

void record_fold_depth(exec::Ref images, exec::Ref volumes, const DepthWindows& windows, exec::Recorder& recorder) {
  record_either(true, images, volumes, windows, recorder);
}

}  // namespace clnet::ops
