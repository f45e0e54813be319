#include "clnet/nn/pad.h"

#include <fmt/format.h>

#include "clnet/ops/shape.h"
#include "lib/nn/layer.h"

namespace clnet::nn {

namespace {

template <class Amounts>
Rearrange padding_layer(const char* name, const Amounts& padding, PadMode mode, double value = 0) {
  return {fmt::format("{}({})", name, text(padding)), [=](const Tensor& x) { return pad_last(x, padding, value, mode); }};
}

}  // namespace

Rearrange ZeroPad1d(Padding1d padding) { return padding_layer("ZeroPad1d", padding, PadMode::constant); }
Rearrange ZeroPad2d(Padding padding) { return padding_layer("ZeroPad2d", padding, PadMode::constant); }
Rearrange ZeroPad3d(Padding3d padding) { return padding_layer("ZeroPad3d", padding, PadMode::constant); }
Rearrange ConstantPad1d(Padding1d padding, double value) {
  return padding_layer("ConstantPad1d", padding, PadMode::constant, value);
}
Rearrange ConstantPad2d(Padding padding, double value) {
  return padding_layer("ConstantPad2d", padding, PadMode::constant, value);
}
Rearrange ConstantPad3d(Padding3d padding, double value) {
  return padding_layer("ConstantPad3d", padding, PadMode::constant, value);
}
Rearrange ReflectionPad1d(Padding1d padding) { return padding_layer("ReflectionPad1d", padding, PadMode::reflect); }
Rearrange ReflectionPad2d(Padding padding) { return padding_layer("ReflectionPad2d", padding, PadMode::reflect); }
Rearrange ReflectionPad3d(Padding3d padding) { return padding_layer("ReflectionPad3d", padding, PadMode::reflect); }
Rearrange ReplicationPad1d(Padding1d padding) { return padding_layer("ReplicationPad1d", padding, PadMode::edge); }
Rearrange ReplicationPad2d(Padding padding) { return padding_layer("ReplicationPad2d", padding, PadMode::edge); }
Rearrange ReplicationPad3d(Padding3d padding) { return padding_layer("ReplicationPad3d", padding, PadMode::edge); }
Rearrange CircularPad1d(Padding1d padding) { return padding_layer("CircularPad1d", padding, PadMode::circular); }
Rearrange CircularPad2d(Padding padding) { return padding_layer("CircularPad2d", padding, PadMode::circular); }
Rearrange CircularPad3d(Padding3d padding) { return padding_layer("CircularPad3d", padding, PadMode::circular); }

Rearrange PixelShuffle(std::int64_t upscale_factor) {
  return {fmt::format("PixelShuffle({})", upscale_factor), [=](const Tensor& x) { return pixel_shuffle(x, upscale_factor); }};
}
Rearrange PixelUnshuffle(std::int64_t downscale_factor) {
  return {fmt::format("PixelUnshuffle({})", downscale_factor),
          [=](const Tensor& x) { return pixel_unshuffle(x, downscale_factor); }};
}

}  // namespace clnet::nn
