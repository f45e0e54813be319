// Resizing of images, as a layer.
#pragma once

#include <string>

#include "clnet/export.h"
#include "clnet/nn/module.h"
#include "clnet/ops/image.h"

namespace clnet::nn {

/// interpolate() with fixed options: nn::Upsample({.scale_factor = {2}}).
class CLNET_API Upsample : public Module {
 public:
  explicit Upsample(InterpolateOptions options);
  Tensor forward(const Tensor& x) override;
  std::string kind() const override;

 private:
  InterpolateOptions options_;
};

}  // namespace clnet::nn
