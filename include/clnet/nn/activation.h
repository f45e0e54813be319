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
CLNET_API Activation ReLU();
CLNET_API Activation LeakyReLU(double negative_slope = 0.01);
CLNET_API Activation ELU(double alpha = 1.0);
CLNET_API Activation GELU(Gelu form = Gelu::erf);
CLNET_API Activation SiLU();
CLNET_API Activation Tanh();
CLNET_API Activation Sigmoid();
CLNET_API Activation Hardswish();
CLNET_API Activation Hardsigmoid();
CLNET_API Activation Softplus();
CLNET_API Activation Softmax(int dim);
CLNET_API Activation LogSoftmax(int dim);

/// Drops with probability p in training; does nothing in inference.
class CLNET_API Dropout : public Module {
 public:
  explicit Dropout(double p = 0.5);
  Tensor forward(const Tensor& x) override;
  std::string kind() const override;

 private:
  double p_;
};

}  // namespace clnet::nn
