// Layers of normalisation.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>

#include "clnet/export.h"
#include "clnet/nn/module.h"

namespace clnet::nn {

struct BatchNormOptions {
  double eps = 1e-5, momentum = 0.1;
  bool affine = true, track_running_stats = true;
};
/// Parameters weight and bias {C}; buffers running_mean, running_var {C} and num_batches_tracked. In training the buffers change
/// when the result of the forward pass is computed, along with it and exactly once. (In PyTorch the call alone changes them.)
class CLNET_API BatchNorm : public Module {
 public:
  Tensor forward(const Tensor& x) override;

 protected:
  BatchNorm(std::int64_t num_features, const BatchNormOptions& options);
  void require_rank(const Tensor& x, const char* name, std::initializer_list<int> ranks) const;
  std::int64_t features_;

 private:
  BatchNormOptions options_;
  std::optional<Parameter> weight_, bias_, mean_, var_, count_;
};
/// Of {N, C} or {N, C, L}.
class CLNET_API BatchNorm1d : public BatchNorm {
 public:
  explicit BatchNorm1d(std::int64_t num_features, const BatchNormOptions& options = {}) : BatchNorm(num_features, options) {}
  Tensor forward(const Tensor& x) override;
  std::string kind() const override;
};
/// Of {N, C, H, W}.
class CLNET_API BatchNorm2d : public BatchNorm {
 public:
  explicit BatchNorm2d(std::int64_t num_features, const BatchNormOptions& options = {}) : BatchNorm(num_features, options) {}
  Tensor forward(const Tensor& x) override;
  std::string kind() const override;
};

/// Over the last dimensions, whose extents are `normalized_shape`. Parameters weight and bias of that shape.
class CLNET_API LayerNorm : public Module {
 public:
  explicit LayerNorm(const Shape& normalized_shape, double eps = 1e-5, bool affine = true);
  Tensor forward(const Tensor& x) override;
  std::string kind() const override;

 private:
  Shape shape_;
  double eps_;
  std::optional<Parameter> weight_, bias_;
};

}  // namespace clnet::nn
