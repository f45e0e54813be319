// The reference solver of convolution and its gradients.
#include <algorithm>

#include "lib/ops/conv/conv2d.h"

namespace clnet::ops {

namespace {

/// Loops of a kernel run no longer than this in all: see the quirk llvmpipe-loops.
constexpr std::int64_t most_iterations = 60000;

}  // namespace

void conv2d_direct(const Conv2dProblem& p, Conv2dDirection direction, exec::Recorder& recorder) {
  const auto sizes = [&](exec::Launch& launch) -> exec::Launch& {
    return launch.args({p.c, p.h, p.w, p.o, p.kh, p.kw, p.oh, p.ow, p.stride.height, p.stride.width, p.top, p.left,
                        p.dilation.height, p.dilation.width, p.group_in(), p.group_out()});
  };
  exec::Launch* launch = nullptr;
  std::int64_t total = 0, parts = 1;
  exec::Ref sums;
  switch (direction) {
    case Conv2dDirection::forward: {
      launch = &recorder.kernel("conv2d_direct", "conv2d_direct").in("x", p.x).in("w", p.weight);
      if (p.has_bias()) launch->in("bias", p.bias).define("BIAS", 1);
      total = p.n * p.o * p.pixels();
      launch->out("y", p.y).arg(total);
      break;
    }
    case Conv2dDirection::backward_data:
      total = p.n * p.c * p.h * p.w;
      launch = &recorder.kernel("conv2d_backward_data_direct", "conv2d_backward_data_direct");
      launch->in("y", p.y).in("w", p.weight).out("x", p.x).arg(total);
      break;
    case Conv2dDirection::backward_weights: {
      total = p.weight_size();
      const auto rows = p.n * p.oh, rows_per_part = std::max<std::int64_t>(1, most_iterations / (p.ow + 1));
      parts = std::max<std::int64_t>(1, (rows + rows_per_part - 1) / rows_per_part);
      sums = weight_sums(p, parts, recorder);
      launch = &recorder.kernel("conv2d_backward_weights_direct", "conv2d_backward_weights_direct");
      launch->in("x", p.x).in("y", p.y).out("w", sums).args({total, parts, rows, rows_per_part});
      break;
    }
  }
  sizes(*launch).range({total, parts}, {64, 1}).flops(p.flops()).detail(p.text());
  pass_slices(*launch, p);
  if (direction == Conv2dDirection::forward) recorder.epilogue(*launch, p.o, p.channel_size());
  if (direction == Conv2dDirection::backward_data) recorder.epilogue(*launch, p.c, p.h * p.w);
  if (parts > 1) add_up_weight(p, sums, parts, recorder);
}

}  // namespace clnet::ops
