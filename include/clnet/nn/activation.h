// Activations and dropout as layers.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "clnet/export.h"
#include "clnet/nn/module.h"
#include "clnet/ops/elementwise.h"

namespace clnet::nn {

/// A function of one tensor as a layer: nn::Activation{"ReLU", relu}.
class CLNET_API Activation : public Module {
 public:
  Activation(std::string name, std::function<Tensor(const Tensor&)> function)
      : name_(std::move(name)), function_(std::move(function)) {}
  Tensor forward(const Tensor& x) override { return function_(x); }
  std::string kind() const override { return name_; }

 private:
  std::string name_;
  std::function<Tensor(const Tensor&)> function_;
};
// Layers of the functions of the same names in clnet/ops/elementwise.h and clnet/ops/norm.h.
CLNET_API Activation ReLU();
CLNET_API Activation LeakyReLU(double negative_slope = 0.01);
CLNET_API Activation ELU(double alpha = 1.0);
CLNET_API Activation GELU(Gelu form = Gelu::erf);
CLNET_API Activation SiLU();
CLNET_API Activation Tanh();
CLNET_API Activation Sigmoid();
CLNET_API Activation Hardswish();
CLNET_API Activation Hardsigmoid();
CLNET_API Activation Softplus(double beta = 1, double threshold = 20);
CLNET_API Activation Softmax(int dim);
/// Softmax over the channels of {batch, channels, height, width} or {channels, height, width}. Throws ShapeError otherwise.
CLNET_API Activation Softmax2d();
CLNET_API Activation LogSoftmax(int dim);
CLNET_API Activation Softmin(int dim);
CLNET_API Activation ReLU6();
CLNET_API Activation CELU(double alpha = 1.0);
CLNET_API Activation SELU();
CLNET_API Activation Mish();
CLNET_API Activation Hardtanh(double low = -1, double high = 1);
CLNET_API Activation LogSigmoid();
CLNET_API Activation Softsign();
CLNET_API Activation Hardshrink(double lambda = 0.5);
CLNET_API Activation Softshrink(double lambda = 0.5);
CLNET_API Activation Tanhshrink();
CLNET_API Activation Threshold(double bound, double value);
CLNET_API Activation GLU(int dim = -1);

/// prelu(): parameter weight, the slope of negative elements, is {1} or {channels}.
class CLNET_API PReLU : public Module {
 public:
  explicit PReLU(std::int64_t channels = 1, double init = 0.25);
  Tensor forward(const Tensor& x) override;
  std::string kind() const override;

 private:
  Parameter weight_;
};

/// rrelu(): random slopes of negative elements in training, their mean in inference. Throws Error where lower > upper.
class CLNET_API RReLU : public Module {
 public:
  explicit RReLU(double lower = 1.0 / 8, double upper = 1.0 / 3);
  Tensor forward(const Tensor& x) override;
  std::string kind() const override;

 private:
  double lower_, upper_;
};

/// dropout() with probability p in training, the identity in inference. Throws Error for p outside of 0..1.
class CLNET_API Dropout : public Module {
 public:
  explicit Dropout(double p = 0.5);
  Tensor forward(const Tensor& x) override;
  std::string kind() const override;

 private:
  double p_;
};

/// Other dropout functions of x and p, applied in training only. Throws Error for p outside of 0..1.
class CLNET_API Dropping : public Module {
 public:
  Dropping(std::string name, double p, Tensor (*function)(const Tensor& x, double p));
  Tensor forward(const Tensor& x) override;
  std::string kind() const override;

 private:
  std::string name_;
  double p_;
  Tensor (*function_)(const Tensor& x, double p);
};
// Layers of the functions of the same names in clnet/ops/random.h.
CLNET_API Dropping Dropout1d(double p = 0.5);
CLNET_API Dropping Dropout2d(double p = 0.5);
CLNET_API Dropping Dropout3d(double p = 0.5);
CLNET_API Dropping AlphaDropout(double p = 0.5);
CLNET_API Dropping FeatureAlphaDropout(double p = 0.5);

}  // namespace clnet::nn
