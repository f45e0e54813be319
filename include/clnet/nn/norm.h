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
  double eps = 1e-5;
  /// The share of a batch in the new running statistics; std::nullopt: they are the means over all batches so far (PyTorch's
  /// None).
  std::optional<double> momentum = 0.1;
  bool affine = true, track_running_stats = true;
};
/// Parameters weight and bias {C}; buffers running_mean, running_var {C} and num_batches_tracked. In training the buffers change
/// when the result of the forward pass is computed, along with it and exactly once. (In PyTorch the call alone changes them.)
/// So a call in inference mode sees old statistics where a call in training mode was written down before it and is not computed
/// yet: it warns once, and evaluating the first call's result before the second call helps. Two calls in one expression, as
/// loss(net(a)) + loss(net(b)), change the statistics in the order in which the compiler calls them, which C++ leaves open: write
/// statements.
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

/// Of {N, C, D, H, W}.
class CLNET_API BatchNorm3d : public BatchNorm {
 public:
  explicit BatchNorm3d(std::int64_t num_features, const BatchNormOptions& options = {}) : BatchNorm(num_features, options) {}
  Tensor forward(const Tensor& x) override;
  std::string kind() const override;
};

struct InstanceNormOptions {
  double eps = 1e-5, momentum = 0.1;
  bool affine = false, track_running_stats = false;
};
/// Each channel of each sample by its own statistics, in training and, unless running ones are tracked, in inference. Parameters
/// weight and bias {C} where affine; buffers as BatchNorm's where tracked, which follow the means over the samples
/// (num_batches_tracked stays 0, as in PyTorch). Also of one sample without N.
class CLNET_API InstanceNorm : public Module {
 public:
  Tensor forward(const Tensor& x) override;
  std::string kind() const override;

 protected:
  InstanceNorm(int axes, std::int64_t num_features, const InstanceNormOptions& options);

 private:
  int axes_;
  std::int64_t features_;
  InstanceNormOptions options_;
  std::optional<Parameter> weight_, bias_, mean_, var_;
};
/// Of {N, C, L}.
class CLNET_API InstanceNorm1d : public InstanceNorm {
 public:
  explicit InstanceNorm1d(std::int64_t num_features, const InstanceNormOptions& options = {})
      : InstanceNorm(1, num_features, options) {}
};
/// Of {N, C, H, W}.
class CLNET_API InstanceNorm2d : public InstanceNorm {
 public:
  explicit InstanceNorm2d(std::int64_t num_features, const InstanceNormOptions& options = {})
      : InstanceNorm(2, num_features, options) {}
};
/// Of {N, C, D, H, W}.
class CLNET_API InstanceNorm3d : public InstanceNorm {
 public:
  explicit InstanceNorm3d(std::int64_t num_features, const InstanceNormOptions& options = {})
      : InstanceNorm(3, num_features, options) {}
};

struct GroupNormOptions {
  double eps = 1e-5;
  bool affine = true;
};
/// Over each of `num_groups` groups of channels of {N, C, ...}. Parameters weight and bias {C}.
class CLNET_API GroupNorm : public Module {
 public:
  GroupNorm(std::int64_t num_groups, std::int64_t num_channels, const GroupNormOptions& options = {});
  Tensor forward(const Tensor& x) override;
  std::string kind() const override;

 private:
  std::int64_t groups_, channels_;
  double eps_;
  std::optional<Parameter> weight_, bias_;
};

struct LocalResponseNormOptions {
  double alpha = 1e-4, beta = 0.75, k = 1;
};
/// A layer for x {N, C, ...}: x / (k + alpha * mean of the squares in `size` neighbouring channels)^beta.
class CLNET_API LocalResponseNorm : public Module {
 public:
  explicit LocalResponseNorm(std::int64_t size, const LocalResponseNormOptions& options = {}) : size_(size), options_(options) {}
  Tensor forward(const Tensor& x) override;
  std::string kind() const override;

 private:
  std::int64_t size_;
  LocalResponseNormOptions options_;
};

struct LayerNormOptions {
  double eps = 1e-5;
  bool elementwise_affine = true;  ///< parameters weight and bias
  bool bias = true;                ///< without: weight alone
};
/// Over the last dimensions, whose extents are `normalized_shape`; one number is the last dimension's. Parameters weight and bias
/// of that shape.
class CLNET_API LayerNorm : public Module {
 public:
  explicit LayerNorm(const Shape& normalized_shape, const LayerNormOptions& options = {});
  explicit LayerNorm(std::int64_t features, const LayerNormOptions& options = {}) : LayerNorm(Shape{features}, options) {}
  Tensor forward(const Tensor& x) override;
  std::string kind() const override;

 private:
  Shape shape_;
  double eps_;
  std::optional<Parameter> weight_, bias_;
};

struct RMSNormOptions {
  std::optional<double> eps = std::nullopt;  ///< the dtype's epsilon when not given
  bool elementwise_affine = true;            ///< a parameter weight
};
/// By the root of the mean square of the last dimensions, whose extents are `normalized_shape`; one number is the last
/// dimension's. Parameter weight of that shape.
class CLNET_API RMSNorm : public Module {
 public:
  explicit RMSNorm(const Shape& normalized_shape, const RMSNormOptions& options = {});
  explicit RMSNorm(std::int64_t features, const RMSNormOptions& options = {}) : RMSNorm(Shape{features}, options) {}
  Tensor forward(const Tensor& x) override;
  std::string kind() const override;

 private:
  Shape shape_;
  std::optional<double> eps_;
  std::optional<Parameter> weight_;
};

}  // namespace clnet::nn
