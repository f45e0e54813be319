// Layers of pooling.
#pragma once

#include <string>

#include "clnet/export.h"
#include "clnet/nn/module.h"
#include "clnet/ops/pool.h"

namespace clnet::nn {

class CLNET_API MaxPool2d : public Module {
 public:
  explicit MaxPool2d(Pair kernel_size, const MaxPool2dOptions& options = {}) : kernel_size_(kernel_size), options_(options) {}
  Tensor forward(const Tensor& x) override { return max_pool2d(x, kernel_size_, options_); }
  std::string kind() const override;

 private:
  Pair kernel_size_;
  MaxPool2dOptions options_;
};

class CLNET_API AvgPool2d : public Module {
 public:
  explicit AvgPool2d(Pair kernel_size, const AvgPool2dOptions& options = {}) : kernel_size_(kernel_size), options_(options) {}
  Tensor forward(const Tensor& x) override { return avg_pool2d(x, kernel_size_, options_); }
  std::string kind() const override;

 private:
  Pair kernel_size_;
  AvgPool2dOptions options_;
};

class CLNET_API AdaptiveAvgPool2d : public Module {
 public:
  explicit AdaptiveAvgPool2d(Pair output_size) : output_size_(output_size) {}
  Tensor forward(const Tensor& x) override { return adaptive_avg_pool2d(x, output_size_); }
  std::string kind() const override;

 private:
  Pair output_size_;
};

class CLNET_API AdaptiveMaxPool2d : public Module {
 public:
  explicit AdaptiveMaxPool2d(Pair output_size) : output_size_(output_size) {}
  Tensor forward(const Tensor& x) override { return adaptive_max_pool2d(x, output_size_); }
  std::string kind() const override;

 private:
  Pair output_size_;
};

}  // namespace clnet::nn
