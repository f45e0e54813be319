// The geometry of ONNX's convolutions and pools: kernels, strides, dilations and pads of any number of dimensions.
#pragma once

#include <cstdint>
#include <vector>

#include "clnet/ops/options.h"
#include "lib/onnx/operators.h"

namespace clnet::onnx {

/// Of each spatial dimension.
struct Windows {
  std::vector<std::int64_t> kernel, strides, dilations, before, after;
  bool ceil_mode = false;

  std::size_t rank() const { return kernel.size(); }
  bool dilated() const;
  /// Whether no pad exceeds half of its window, as clnet's pools want it.
  bool pads_fit() const;

  /// From a node's attributes, for an input {N, C, ...}. `kernel` where the weight tells it; auto_pad is resolved. Throws Error
  /// for attributes that do not fit.
  static Windows of(const Call& call, const Shape& input, std::vector<std::int64_t> kernel = {});

  /// For clnet's functions of one, two and three dimensions.
  Padding1d padding1() const { return {before[0], after[0]}; }
  Padding padding2() const { return {before[0], before[1], after[0], after[1]}; }
  Padding3d padding3() const { return {before[0], before[1], before[2], after[0], after[1], after[2]}; }
  static Pair pair(const std::vector<std::int64_t>& values) { return {values[0], values[1]}; }
  static Triple triple(const std::vector<std::int64_t>& values) { return {values[0], values[1], values[2]}; }
};

/// conv1d(), conv2d() or conv3d().
Tensor convolution(const Tensor& x, const Tensor& weight, const Tensor& bias, const Windows& w, std::int64_t groups = 1);

}  // namespace clnet::onnx
