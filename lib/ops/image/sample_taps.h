// Sampling of images at places that are data: what grid_sample and roi_align are made of.
#pragma once

#include <string_view>
#include <vector>

#include "clnet/tensor.h"

namespace clnet::ops {

/// Taps along one dimension of an image, of shapes that broadcast with the other dimension's.
struct AxisTaps {
  Tensor places;   ///< i32, 0 where they are outside
  Tensor inside;   ///< bool
  Tensor weights;  ///< f32
};
/// Of places along a dimension as whole numbers in f32: those from 0 to extent - 1 are inside.
AxisTaps axis_taps(const Tensor& places, const Tensor& weights, std::int64_t extent);

/// Samples x {N, C, ...}: {R, C, P}, for taps of R rows and P places, {R, T, P} being the shape `taps`. `axes` are the taps along
/// x's dimensions behind the second, `image` is the number in x as i32: all broadcast to as many elements. Outside of x nothing
/// is added. Gradients go to x and to the weights.
Tensor sampled(std::string_view op, const Tensor& x, const std::vector<AxisTaps>& axes, const Tensor& image, const Shape& taps);

}  // namespace clnet::ops
