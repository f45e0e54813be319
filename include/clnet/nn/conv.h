// Convolution layers.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "clnet/export.h"
#include "clnet/nn/module.h"
#include "clnet/ops/options.h"
#include "clnet/ops/shape.h"

namespace clnet::nn {

/// The base of convolution layers, with parameters weight and bias. Their constructors throw Error, which names the layer, where
/// a size is not positive or channels are not divisible by `groups`.
class CLNET_API Convolution : public Module {
 public:
  Tensor forward(const Tensor& x) override;
  std::string kind() const override { return kind_; }

 protected:
  using Function = std::function<Tensor(const Tensor& x, const Tensor& weight, const Tensor& bias)>;
  Convolution(std::string kind, const Tensor& weight, std::optional<std::int64_t> biases, Function function);

 private:
  std::string kind_;
  Parameter weight_;
  std::optional<Parameter> bias_;
  Function function_;
};

struct Conv1dOptions {
  std::int64_t stride = 1;
  Padding1d padding = 0;
  std::int64_t dilation = 1;
  std::int64_t groups = 1;
  bool bias = true;
  PadMode padding_mode = PadMode::constant;  ///< zeros
};
/// conv1d() of {N, in, L}. Parameters weight {out, in / groups, k} and bias {out}.
class CLNET_API Conv1d : public Convolution {
 public:
  Conv1d(std::int64_t in_channels, std::int64_t out_channels, std::int64_t kernel_size, const Conv1dOptions& options = {});
};

struct Conv2dOptions {
  Pair stride = 1;
  Padding padding = 0;
  Pair dilation = 1;
  std::int64_t groups = 1;
  bool bias = true;
  PadMode padding_mode = PadMode::constant;  ///< zeros
};
/// conv2d() of {N, in, H, W}. Parameters weight {out, in / groups, kh, kw} and bias {out}.
class CLNET_API Conv2d : public Convolution {
 public:
  Conv2d(std::int64_t in_channels, std::int64_t out_channels, Pair kernel_size, const Conv2dOptions& options = {});
};

struct Conv3dOptions {
  Triple stride = 1;
  Padding3d padding = 0;
  Triple dilation = 1;
  std::int64_t groups = 1;
  bool bias = true;
  PadMode padding_mode = PadMode::constant;  ///< zeros
};
/// conv3d() of {N, in, D, H, W}. Parameters weight {out, in / groups, kd, kh, kw} and bias {out}.
class CLNET_API Conv3d : public Convolution {
 public:
  Conv3d(std::int64_t in_channels, std::int64_t out_channels, Triple kernel_size, const Conv3dOptions& options = {});
};

struct ConvTranspose1dOptions {
  std::int64_t stride = 1;
  Padding1d padding = 0;
  std::int64_t output_padding = 0;
  std::int64_t groups = 1;
  bool bias = true;
  std::int64_t dilation = 1;
};
/// conv_transpose1d() of {N, in, L}. Parameters weight {in, out / groups, k} and bias {out}.
class CLNET_API ConvTranspose1d : public Convolution {
 public:
  ConvTranspose1d(std::int64_t in_channels, std::int64_t out_channels, std::int64_t kernel_size,
                  const ConvTranspose1dOptions& options = {});
};

struct ConvTranspose2dOptions {
  Pair stride = 1;
  Padding padding = 0;
  Pair output_padding = 0;
  std::int64_t groups = 1;
  bool bias = true;
  Pair dilation = 1;
};
/// conv_transpose2d() of {N, in, H, W}. Parameters weight {in, out / groups, kh, kw} and bias {out}.
class CLNET_API ConvTranspose2d : public Convolution {
 public:
  ConvTranspose2d(std::int64_t in_channels, std::int64_t out_channels, Pair kernel_size,
                  const ConvTranspose2dOptions& options = {});
};

struct ConvTranspose3dOptions {
  Triple stride = 1;
  Padding3d padding = 0;
  Triple output_padding = 0;
  std::int64_t groups = 1;
  bool bias = true;
  Triple dilation = 1;
};
/// conv_transpose3d() of {N, in, D, H, W}. Parameters weight {in, out / groups, kd, kh, kw} and bias {out}.
class CLNET_API ConvTranspose3d : public Convolution {
 public:
  ConvTranspose3d(std::int64_t in_channels, std::int64_t out_channels, Triple kernel_size,
                  const ConvTranspose3dOptions& options = {});
};

}  // namespace clnet::nn
