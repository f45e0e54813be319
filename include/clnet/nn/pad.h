// Layers that pad and rearrange images.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "clnet/export.h"
#include "clnet/nn/module.h"
#include "clnet/ops/options.h"

namespace clnet::nn {

/// A layer that moves elements of the last dimensions, without parameters.
class CLNET_API Rearrange : public Module {
 public:
  Rearrange(std::string kind, std::function<Tensor(const Tensor&)> function)
      : kind_(std::move(kind)), function_(std::move(function)) {}
  Tensor forward(const Tensor& x) override { return function_(x); }
  std::string kind() const override { return kind_; }

 private:
  std::string kind_;
  std::function<Tensor(const Tensor&)> function_;
};

/// Pads the last one, two or three dimensions; negative padding crops. Throws as pad().
CLNET_API Rearrange ZeroPad1d(Padding1d padding);
CLNET_API Rearrange ZeroPad2d(Padding padding);
CLNET_API Rearrange ZeroPad3d(Padding3d padding);
CLNET_API Rearrange ConstantPad1d(Padding1d padding, double value);
CLNET_API Rearrange ConstantPad2d(Padding padding, double value);
CLNET_API Rearrange ConstantPad3d(Padding3d padding, double value);
CLNET_API Rearrange ReflectionPad1d(Padding1d padding);
CLNET_API Rearrange ReflectionPad2d(Padding padding);
CLNET_API Rearrange ReflectionPad3d(Padding3d padding);
CLNET_API Rearrange ReplicationPad1d(Padding1d padding);
CLNET_API Rearrange ReplicationPad2d(Padding padding);
CLNET_API Rearrange ReplicationPad3d(Padding3d padding);
CLNET_API Rearrange CircularPad1d(Padding1d padding);
CLNET_API Rearrange CircularPad2d(Padding padding);
CLNET_API Rearrange CircularPad3d(Padding3d padding);

/// {..., C r r, H, W} -> {..., C, H r, W r}, and the inverse.
CLNET_API Rearrange PixelShuffle(std::int64_t upscale_factor);
CLNET_API Rearrange PixelUnshuffle(std::int64_t downscale_factor);

}  // namespace clnet::nn
