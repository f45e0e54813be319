// 1x1 convolutions with steps, for CPUs: what they see of their input, copied side by side, is the input of one without.
#include "lib/ops/conv/conv2d.h"
#include "lib/ops/rows.h"

namespace clnet::ops {

namespace {

/// Copies between the planes {h, w} and what is seen of them.
exec::Launch& copy(const Conv2dProblem& p, std::string_view kernel, exec::Ref from, exec::Ref to, exec::Recorder& recorder) {
  constexpr std::int64_t enough = 4096;
  const auto planes = p.n * p.c, each = rows_per_item(planes, p.pixels(), enough, recorder.device());
  auto& launch = recorder.kernel(kernel, kernel).define("VW", recorder.config()["lanes"]).in("x", from).out("y", to);
  launch.args({planes, p.h, p.w, p.oh, p.ow, p.stride.height, p.stride.width, each}).range({ceil_div(planes, each)}, {1});
  return launch.detail(p.text());
}

}  // namespace

Conv2dProblem conv2d_unstrided(const Conv2dProblem& p) {
  const bool strided = p.stride.height > 1 || p.stride.width > 1;
  const bool inside = p.top == 0 && p.left == 0 && (p.oh - 1) * p.stride.height < p.h && (p.ow - 1) * p.stride.width < p.w;
  if (p.kh != 1 || p.kw != 1 || p.volume || p.n * p.c == 0 || p.pixels() == 0 || !strided || !inside) return p;
  auto result = p;
  result.h = p.oh;
  result.w = p.ow;
  result.stride = 1;
  return result;
}

void conv2d_strided_1x1_cpu(const Conv2dProblem& p, Conv2dDirection direction, Conv2dRecord lower, exec::Recorder& recorder) {
  auto seen = conv2d_unstrided(p);
  if (seen.stride == p.stride) return lower(p, direction, recorder);
  const bool backward = direction == Conv2dDirection::backward_data;
  seen.x = recorder.temporary({Shape{p.n, p.c, p.oh, p.ow}, backward ? Dtype::f32 : p.dtype});
  if (!backward) copy(p, "conv2d_pick_cpu", p.x, seen.x, recorder);
  lower(seen, direction, recorder);
  if (backward) recorder.epilogue(copy(p, "conv2d_spread_cpu", seen.x, p.x, recorder).arg(p.c), p.c, p.h * p.w);
}

}  // namespace clnet::ops
