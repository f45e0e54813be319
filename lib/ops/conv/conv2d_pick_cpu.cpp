// 1x1 convolutions with steps: what they see of their input, side by side, is the input of one without (kernels/conv/conv2d_pick_cpu.cl).
#include "lib/ops/conv/conv2d.h"
#include "lib/ops/rows.h"

namespace clnet::ops {

Conv2dProblem conv2d_seen(const Conv2dProblem& p, Conv2dPass pass) {
  const bool strided = p.stride.height > 1 || p.stride.width > 1;
  const bool inside = p.top == 0 && p.left == 0 && (p.oh - 1) * p.stride.height < p.h && (p.ow - 1) * p.stride.width < p.w;
  if (pass == Conv2dPass::backward_data || p.kh != 1 || p.kw != 1 || p.volume || !strided || !inside) return p;
  auto result = p;
  result.h = p.oh;
  result.w = p.ow;
  result.stride = 1;
  return result;
}

Conv2dProblem conv2d_pick_cpu(const Conv2dProblem& p, Conv2dPass pass, exec::Recorder& recorder) {
  auto result = conv2d_seen(p, pass);
  if (result.stride == p.stride) return result;
  result.x = recorder.temporary({Shape{p.n, p.c, p.oh, p.ow}, p.dtype});
  constexpr std::int64_t enough = 4096;
  const auto planes = p.n * p.c, each = rows_per_item(planes, p.pixels(), enough, recorder.device());
  recorder.kernel("conv2d_pick_cpu", "conv2d_pick_cpu")
      .define("VW", recorder.config()["lanes"])
      .in("x", p.x)
      .out("y", result.x)
      .args({planes, p.h, p.w, p.oh, p.ow, p.stride.height, p.stride.width, each})
      .range({ceil_div(planes, each)}, {1})
      .detail(p.text());
  return result;
}

}  // namespace clnet::ops
