// Convolution and its two adjoints share one problem: y from (x, w), dx from (dy, w) and dw from (x, dy).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "clnet/ops.h"
#include "lib/exec/choose/solver.h"
#include "lib/exec/launch/recorder.h"
#include "lib/ops/conv/unfold_depth.h"

namespace clnet::ops {

/// The sizes of one convolution {n, c, h, w} -> {n, o, oh, ow} and where its tensors lie. In the adjoints x or weight is the
/// output. oh and ow determine the padding at the bottom and on the right, which may be negative.
struct Conv2dProblem {
  std::int64_t n = 0, c = 0, h = 0, w = 0;
  std::int64_t o = 0, kh = 0, kw = 0, oh = 0, ow = 0;
  Pair stride = 1;
  std::int64_t top = 0, left = 0;
  Pair dilation = 1;
  std::int64_t groups = 1;
  /// Of a volume, as images one after the other; y is {n / slices, o, slices * oh, ow}. Forward, or with `volume`.
  std::int64_t slices = 1;
  /// x is {n / slices, c / volume->kernel, volume->depth, h, w}, which unfold_depth makes images of, and fold_depth is made of.
  /// Forward and for the gradient of the input.
  std::optional<DepthWindows> volume = {};
  exec::Ref x, weight, y;
  exec::Ref bias;                   ///< forward only; value -1: none
  exec::EqualReaders readers = {};  ///< of the weight
  Dtype dtype = Dtype::f32;

  bool has_bias() const { return bias.value >= 0; }
  std::int64_t group_in() const { return c / groups; }
  std::int64_t group_out() const { return o / groups; }
  std::int64_t pixels() const { return oh * ow; }
  /// Elements of a channel in a row, in y.
  std::int64_t channel_size() const { return slices * pixels(); }
  std::int64_t weight_size() const { return o * group_in() * kh * kw; }
  /// Multiplications and additions of all three.
  double flops() const {
    return 2.0 * static_cast<double>(n * o) * static_cast<double>(pixels()) * static_cast<double>(group_in() * kh * kw);
  }
  /// "128x32x14x14 64 3x3 s1x1", for the profiler.
  std::string text() const;
};

/// Whether every phase of a strided convolution's input, the elements of one remainder by the stride, sees as many taps.
inline bool phases_are_even(const DepthWindows& windows, Pair kernel, Pair stride) {
  return windows.kernel % windows.axis.stride == 0 && kernel.height % stride.height == 0 && kernel.width % stride.width == 0;
}

/// Which of the three.
enum class Conv2dDirection : std::uint8_t { forward, backward_data, backward_weights };

/// For kernels that include conv2d_slices.clh: their last argument.
inline void pass_slices(exec::Launch& launch, const Conv2dProblem& p) {
  if (p.slices > 1) launch.define("SLICES", 1).arg(p.slices);
}

/// The reference solver: one result per work-item, anything goes.
void conv2d_direct(const Conv2dProblem& problem, Conv2dDirection direction, exec::Recorder& recorder);

/// Unfolded images in a bounded workspace, and a matrix product.
std::optional<std::string> conv2d_im2col_rejects(const Conv2dProblem& problem, const DeviceInfo& device);
void conv2d_im2col(const Conv2dProblem& problem, Conv2dDirection direction, exec::Recorder& recorder);

/// A strided 1x1 convolution without padding becomes one with stride 1 over the pixels that it reads. Others stay as they are.
Conv2dProblem conv2d_unstrided(const Conv2dProblem& problem);
/// Records that one; a launch before or after it copies the pixels that it reads.
using Conv2dRecord = void (*)(const Conv2dProblem& problem, Conv2dDirection direction, exec::Recorder& recorder);
void conv2d_strided_1x1_cpu(const Conv2dProblem& problem, Conv2dDirection direction, Conv2dRecord record,
                            exec::Recorder& recorder);

/// Direct convolution with explicit vectors, for CPUs.
std::optional<std::string> conv2d_cpu_rejects(const Conv2dProblem& problem, Conv2dDirection direction, const DeviceInfo& device);
std::vector<exec::Config> conv2d_cpu_configs(const Conv2dProblem& problem, Conv2dDirection direction, const DeviceInfo& device);
void conv2d_cpu(const Conv2dProblem& problem, Conv2dDirection direction, exec::Recorder& recorder);
/// Whether its kernel for volumes where they lie, which also makes all phases of a strided convolution's gradient, is the faster
/// one.
bool conv3d_cpu_serves(const Conv2dProblem& problem, Conv2dDirection direction, const DeviceInfo& device);

/// Winograd's F(4x4, 3x3) with explicit vectors, for CPUs. Its largest error is about twice that of a direct sum.
std::optional<std::string> conv2d_winograd_cpu_rejects(const Conv2dProblem& problem, Conv2dDirection direction,
                                                       const DeviceInfo& device);
std::optional<std::string> conv2d_winograd_cpu_declines(const Conv2dProblem& problem, Conv2dDirection direction,
                                                        const DeviceInfo& device);
std::vector<exec::Config> conv2d_winograd_cpu_configs(const Conv2dProblem& problem, Conv2dDirection direction,
                                                      const DeviceInfo& device);
void conv2d_winograd_cpu(const Conv2dProblem& problem, Conv2dDirection direction, exec::Recorder& recorder);

/// A small kernel for each plane with all of its taps in registers, for CPUs: see kernels/conv/conv2d_depthwise_cpu.clh.
std::optional<std::string> conv2d_depthwise_cpu_rejects(const Conv2dProblem& problem, Conv2dDirection direction,
                                                        const DeviceInfo& device);
std::vector<exec::Config> conv2d_depthwise_cpu_configs(const Conv2dProblem& problem, Conv2dDirection direction,
                                                       const DeviceInfo& device);
void conv2d_depthwise_cpu(const Conv2dProblem& problem, Conv2dDirection direction, exec::Recorder& recorder);

/// Direct with vectors of pixels, for groups of few channels on CPUs.
std::optional<std::string> conv2d_nchw_cpu_rejects(const Conv2dProblem& problem, Conv2dDirection direction,
                                                   const DeviceInfo& device);
std::optional<std::string> conv2d_nchw_cpu_declines(const Conv2dProblem& problem, Conv2dDirection direction,
                                                    const DeviceInfo& device);
std::vector<exec::Config> conv2d_nchw_cpu_configs(const Conv2dProblem& problem, Conv2dDirection direction,
                                                  const DeviceInfo& device);
void conv2d_nchw_cpu(const Conv2dProblem& problem, Conv2dDirection direction, exec::Recorder& recorder);

/// Products in tiles of local memory, for GPUs: see kernels/conv/conv2d_gpu.cl.
std::optional<std::string> conv2d_gpu_rejects(const Conv2dProblem& problem, Conv2dDirection direction, const DeviceInfo& device);
std::optional<std::string> conv2d_gpu_declines(const Conv2dProblem& problem, Conv2dDirection direction, const DeviceInfo& device);
std::vector<exec::Config> conv2d_gpu_configs(const Conv2dProblem& problem, Conv2dDirection direction, const DeviceInfo& device);
void conv2d_gpu(const Conv2dProblem& problem, Conv2dDirection direction, exec::Recorder& recorder);
/// The same with the weights in the order in which tiles load them.
std::optional<std::string> conv2d_packed_gpu_rejects(const Conv2dProblem& problem, Conv2dDirection direction,
                                                     const DeviceInfo& device);
std::optional<std::string> conv2d_packed_gpu_declines(const Conv2dProblem& problem, Conv2dDirection direction,
                                                      const DeviceInfo& device);
void conv2d_packed_gpu(const Conv2dProblem& problem, Conv2dDirection direction, exec::Recorder& recorder);
/// The same by matrix units, of f16 and bf16: see kernels/gemm_matrix_units.clh.
std::optional<std::string> conv2d_matrix_units_gpu_rejects(const Conv2dProblem& problem, Conv2dDirection direction,
                                                           const DeviceInfo& device);
std::optional<std::string> conv2d_matrix_units_gpu_declines(const Conv2dProblem& problem, Conv2dDirection direction,
                                                            const DeviceInfo& device);
std::vector<exec::Config> conv2d_matrix_units_gpu_configs(const Conv2dProblem& problem, Conv2dDirection direction,
                                                          const DeviceInfo& device);
void conv2d_matrix_units_gpu(const Conv2dProblem& problem, Conv2dDirection direction, exec::Recorder& recorder);
std::optional<std::string> conv2d_packed_matrix_units_gpu_rejects(const Conv2dProblem& problem, Conv2dDirection direction,
                                                                  const DeviceInfo& device);
std::optional<std::string> conv2d_packed_matrix_units_gpu_declines(const Conv2dProblem& problem, Conv2dDirection direction,
                                                                   const DeviceInfo& device);
std::vector<exec::Config> conv2d_packed_matrix_units_gpu_configs(const Conv2dProblem& problem, Conv2dDirection direction,
                                                                 const DeviceInfo& device);
void conv2d_packed_matrix_units_gpu(const Conv2dProblem& problem, Conv2dDirection direction, exec::Recorder& recorder);
/// The cost of conv2d_gpu by its model, in multiply-adds of one unit.
double conv2d_gpu_cost(const Conv2dProblem& problem, Conv2dDirection direction, const DeviceInfo& device);

/// Winograd's F(2x2, 3x3) for GPUs: see kernels/conv/conv2d_winograd_gpu.cl.
std::optional<std::string> conv2d_winograd_gpu_rejects(const Conv2dProblem& problem, Conv2dDirection direction,
                                                       const DeviceInfo& device);
std::optional<std::string> conv2d_winograd_gpu_declines(const Conv2dProblem& problem, Conv2dDirection direction,
                                                        const DeviceInfo& device);
std::vector<exec::Config> conv2d_winograd_gpu_configs(const Conv2dProblem& problem, Conv2dDirection direction,
                                                      const DeviceInfo& device);
void conv2d_winograd_gpu(const Conv2dProblem& problem, Conv2dDirection direction, exec::Recorder& recorder);

/// Groups of one input channel, for GPUs: see kernels/conv/conv2d_depthwise_gpu.cl.
std::optional<std::string> conv2d_depthwise_gpu_rejects(const Conv2dProblem& problem, Conv2dDirection direction,
                                                        const DeviceInfo& device);
std::optional<std::string> conv2d_depthwise_gpu_declines(const Conv2dProblem& problem, Conv2dDirection direction,
                                                         const DeviceInfo& device);
std::vector<exec::Config> conv2d_depthwise_gpu_configs(const Conv2dProblem& problem, Conv2dDirection direction,
                                                       const DeviceInfo& device);
void conv2d_depthwise_gpu(const Conv2dProblem& problem, Conv2dDirection direction, exec::Recorder& recorder);

/// Where a weight's gradient is summed in `parts`: in the weight itself if there is one, else in one array after the other.
exec::Ref weight_sums(const Conv2dProblem& problem, std::int64_t parts, exec::Recorder& recorder);
/// Their sum.
void add_up_weight(const Conv2dProblem& problem, exec::Ref sums, std::int64_t parts, exec::Recorder& recorder);

/// 1x1 as a matrix product, for CPUs.
std::optional<std::string> conv2d_pointwise_cpu_rejects(const Conv2dProblem& problem, Conv2dDirection direction,
                                                        const DeviceInfo& device);
std::optional<std::string> conv2d_pointwise_cpu_declines(const Conv2dProblem& problem, Conv2dDirection direction,
                                                         const DeviceInfo& device);
std::vector<exec::Config> conv2d_pointwise_cpu_configs(const Conv2dProblem& problem, Conv2dDirection direction,
                                                       const DeviceInfo& device);
void conv2d_pointwise_cpu(const Conv2dProblem& problem, Conv2dDirection direction, exec::Recorder& recorder);

/// conv2d of operands that fit, with an output size that its options need not give: the gradients of the gradients know it.
/// `bias` may be undefined. Of volumes as images, `slices` each, the result is {N / slices, O, slices * height, width}.
Tensor conv2d_sized(const Tensor& x, const Tensor& weight, const Tensor& bias, Pair output_size, const Conv2dFuncOptions& options,
                    std::int64_t slices = 1);
/// The gradient of conv2d's input {N, C, height, width}, which is also the transposed convolution, from that of its output g and
/// the weight.
Tensor conv2d_backward_data(const Tensor& g, const Tensor& weight, Pair input_size, const Conv2dFuncOptions& options);
/// conv2d of volumes x {N, C, depth, H, W} by a weight {O, C / groups * kernel, kh, kw}: {N, O, out * height, width}.
Tensor conv2d_of_volumes(const Tensor& x, const Tensor& weight, const Tensor& bias, Pair output_size,
                         const Conv2dFuncOptions& options, const DepthWindows& windows);
/// The gradient of its input from g {N, O, out * height, width}.
Tensor conv2d_of_volumes_backward_data(const Tensor& g, const Tensor& weight, Pair input_size, const Conv2dFuncOptions& options,
                                       const DepthWindows& windows);
/// The gradient of conv2d's weight {O, C / groups, kernel_size} from its input and its output's gradient.
Tensor conv2d_backward_weights(const Tensor& x, const Tensor& g, Pair kernel_size, const Conv2dFuncOptions& options);

}  // namespace clnet::ops
