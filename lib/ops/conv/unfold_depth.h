// A volume as images for each position of a kernel along its depth: what a 3-d convolution becomes a 2-d one by.
#pragma once

#include <cstdint>

#include "clnet/tensor.h"
#include "lib/exec/launch/recorder.h"
#include "lib/ops/conv/conv_axes.h"

namespace clnet::ops {

struct DepthWindows {
  std::int64_t depth = 1, out = 1, kernel = 1;
  ConvAxis axis = {};
};

/// x {N, C, depth, H, W} to {N * out, C * kernel, H, W}: the slices that each output slice sees, 0 where they are padding.
Tensor unfold_depth(const Tensor& x, const DepthWindows& windows);
/// Its adjoint: each slice of {N, C, depth, H, W} is the sum of where it went.
Tensor fold_depth(const Tensor& unfolded, const DepthWindows& windows);

/// Their launches, between values that need not be an operation's own.
void record_unfold_depth(exec::Ref volumes, exec::Ref images, const DepthWindows& windows, exec::Recorder& recorder);
void record_fold_depth(exec::Ref images, exec::Ref volumes, const DepthWindows& windows, exec::Recorder& recorder);

}  // namespace clnet::ops
