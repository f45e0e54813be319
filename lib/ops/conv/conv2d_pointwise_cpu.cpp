// 1x1 convolution for CPUs (kernels/conv/conv2d_pointwise_cpu.cl): a matrix product of the weights and an image's pixels, which
// are a row for each channel already.
#include <fmt/format.h>

#include "lib/ops/conv/conv2d_cpu.h"

namespace clnet::ops {

namespace {

/// Vectors of each output in registers.
constexpr std::int64_t columns = 2;

struct Blocks {
  std::int64_t width, outs;     ///< of a vector; outputs whose sums are kept in registers
  std::int64_t strips, panels;  ///< of them for one work-item
  std::int64_t all_strips, all_panels;

  std::int64_t strip() const { return columns * width; }
  /// Sums of one image and group, with those beyond its ends.
  std::int64_t computed() const { return all_strips * strip() * all_panels * outs; }
};

Blocks cut(const Conv2dProblem& p, std::int64_t ins, std::int64_t outs, const DeviceInfo& device) {
  const auto width = vector_width(device);
  Blocks b{.width = width, .outs = width == 16 ? 14 : 6, .strips = 1, .panels = 1, .all_strips = 1, .all_panels = 1};
  b.all_strips = ceil_div(p.pixels(), b.strip());
  b.all_panels = ceil_div(outs, b.outs);
  b.strips = even_piece(b.all_strips, scratch(device) / (std::max<std::int64_t>(ins, 1) * b.strip()));
  b.panels = b.all_panels;
  const auto items = [&] { return ceil_div(b.all_strips, b.strips) * ceil_div(b.all_panels, b.panels) * p.n * p.groups; };
  // Fewer pixels mean more passes over the weights, fewer outputs more staging of the same pixels: as long as there are many.
  while (items() < wanted_items(device) && b.strips > 4) b.strips = ceil_div(b.strips, 2);
  while (items() < wanted_items(device) && b.panels > 4) b.panels = ceil_div(b.panels, 2);
  while (items() < wanted_items(device) && b.strips > 1) b.strips = ceil_div(b.strips, 2);
  return b;
}

}  // namespace

std::optional<std::string> conv2d_pointwise_cpu_rejects(const Conv2dProblem& p, Conv2dPass pass, const DeviceInfo& device) {
  if (!device.prefers_vector_kernels) return "the device is no CPU with vectors";
  if (pass == Conv2dPass::backward_weights) return "the weight's gradient sums over pixels";
  if (p.kh != 1 || p.kw != 1) return "the kernel is not 1x1";
  if (p.stride.height != 1 || p.stride.width != 1) return "the stride is not 1";
  if (p.oh != p.h || p.ow != p.w || p.top != 0 || p.left != 0) return "the input is padded";
  if (p.n == 0 || p.c == 0 || p.o == 0 || p.pixels() == 0) return "nothing to compute";
  const auto ins = pass == Conv2dPass::backward_data ? p.group_out() : p.group_in();
  if (const auto floats = ins * columns * vector_width(device); floats > scratch(device))
    return fmt::format("its smallest block takes {} KiB of local memory", floats / 256);
  return std::nullopt;
}

std::optional<std::string> conv2d_pointwise_cpu_declines(const Conv2dProblem& p, Conv2dPass pass, const DeviceInfo& device) {
  const bool backward = pass == Conv2dPass::backward_data;
  const auto ins = backward ? p.group_out() : p.group_in(), outs = backward ? p.group_in() : p.group_out();
  // Measured: 7x7 pixels fill three quarters of the strips, and take as long or longer than by vectors of channels.
  if (5 * cut(p, ins, outs, device).computed() > 6 * outs * p.pixels())
    return "so few pixels or outputs fill too little of the registers";
  return std::nullopt;
}

void conv2d_pointwise_cpu(const Conv2dProblem& p, Conv2dPass pass, exec::Recorder& recorder) {
  const bool backward = pass == Conv2dPass::backward_data;
  const auto ins = backward ? p.group_out() : p.group_in(), outs = backward ? p.group_in() : p.group_out();
  const auto b = cut(p, ins, outs, recorder.device());
  const auto packed = recorder.cached({Shape{p.groups * b.all_panels * ins * b.outs}, Dtype::f32}, p.weight);
  recorder.kernel("conv2d_cpu_pack", "conv2d_cpu_pack")
      .define("LANES", b.outs)
      .in("w", p.weight)
      .out("packed", packed)
      .args({ins, outs, backward ? outs : 1, backward ? 1 : ins, 1, 1, 1, 0, 0, 1, 1, ins})
      .range({b.all_panels, 1, p.groups}, {1, 1, 1});

  auto& launch = recorder.kernel("conv2d_pointwise_cpu", "conv2d_pointwise_cpu");
  launch.define("VW", b.width).define("COLUMNS", columns).define("OUTS", b.outs);
  launch.in("x", backward ? p.y : p.x).in("w", packed);
  if (p.has_bias()) launch.in("bias", p.bias).define("BIAS", 1);
  launch.out("y", backward ? p.x : p.y)
      .args({p.groups, ins, outs, p.pixels(), b.all_panels, b.strips, b.panels})
      .local_memory(static_cast<std::size_t>(b.strips * b.strip() * ins) * 4)
      .range({ceil_div(b.all_strips, b.strips), ceil_div(b.all_panels, b.panels), p.n * p.groups}, {1, 1, 1})
      .flops(p.flops())
      .detail(p.text());
  if (!backward) recorder.epilogue(launch, p.o, p.pixels());
}

}  // namespace clnet::ops
