// Layers of convolution.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "clnet/export.h"
#include "clnet/nn/module.h"
#include "clnet/ops/options.h"

namespace clnet::nn {

struct Conv2dOptions {
  std::int64_t in_channels = 1, out_channels = 1;
  Pair kernel_size = 1;
  Pair stride = 1;
  Padding padding = 0;
  Pair dilation = 1;
  std::int64_t groups = 1;
  bool bias = true;
};
/// Parameters weight {out, in / groups, kh, kw} and bias {out}.
class CLNET_API Conv2d : public Module {
 public:
  explicit Conv2d(const Conv2dOptions& options);
  Tensor forward(const Tensor& x) override;
  std::string kind() const override;

 private:
  Conv2dOptions options_;
  Parameter weight_;
  std::optional<Parameter> bias_;
};

struct ConvTranspose2dOptions {
  std::int64_t in_channels = 1, out_channels = 1;
  Pair kernel_size = 1;
  Pair stride = 1;
  Padding padding = 0;
  Pair output_padding = 0;
  Pair dilation = 1;
  std::int64_t groups = 1;
  bool bias = true;
};
/// Parameters weight {in, out / groups, kh, kw} and bias {out}.
class CLNET_API ConvTranspose2d : public Module {
 public:
  explicit ConvTranspose2d(const ConvTranspose2dOptions& options);
  Tensor forward(const Tensor& x) override;
  std::string kind() const override;

 private:
  ConvTranspose2dOptions options_;
  Parameter weight_;
  std::optional<Parameter> bias_;
};

}  // namespace clnet::nn
