// The oracle of convolution and its gradients.
#include "lib/ops/conv2d.h"

namespace clnet::ops {

void conv2d_direct(const Conv2dProblem& p, Conv2dPass pass, exec::Recorder& recorder) {
  const auto sizes = [&](exec::Launch& launch) -> exec::Launch& {
    return launch.args({p.c, p.h, p.w, p.o, p.kh, p.kw, p.oh, p.ow, p.stride.height, p.stride.width, p.top, p.left,
                        p.dilation.height, p.dilation.width, p.group_in(), p.group_out()});
  };
  exec::Launch* launch = nullptr;
  std::int64_t total = 0;
  switch (pass) {
    case Conv2dPass::forward: {
      launch = &recorder.kernel("conv2d_direct", "conv2d_direct").in("x", p.x).in("w", p.weight);
      if (p.has_bias()) launch->in("bias", p.bias).define("BIAS", 1);
      total = p.n * p.o * p.pixels();
      launch->out("y", p.y).arg(total);
      break;
    }
    case Conv2dPass::backward_data:
      total = p.n * p.c * p.h * p.w;
      launch = &recorder.kernel("conv2d_backward_data_direct", "conv2d_backward_data_direct");
      launch->in("y", p.y).in("w", p.weight).out("x", p.x).arg(total);
      break;
    case Conv2dPass::backward_weights:
      total = p.o * p.group_in() * p.kh * p.kw;
      launch = &recorder.kernel("conv2d_backward_weights_direct", "conv2d_backward_weights_direct");
      launch->in("x", p.x).in("y", p.y).out("w", p.weight).arg(total).arg(p.n);
      break;
  }
  sizes(*launch).range({total}, {64}).flops(p.flops()).detail(p.text());
}

}  // namespace clnet::ops
