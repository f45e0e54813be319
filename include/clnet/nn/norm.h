// Normalisation layers.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>

#include "clnet/dist.h"
#include "clnet/export.h"
#include "clnet/nn/module.h"

namespace clnet::nn {

struct BatchNormOptions {
  double eps = 1e-5;
  /// The weight of a batch in the running statistics. std::nullopt: they are means over all batches so far (PyTorch's None).
  std::optional<double> momentum = 0.1;
  bool affine = true, track_running_stats = true;
  /// In training the statistics are those of the rows of all ranks, as torch.nn.SyncBatchNorm's: two sums more each way. None:
  /// each rank's own.
  std::optional<dist::Group> group = std::nullopt;
};
/// Batch normalisation (Ioffe and Szegedy 2015). Parameters weight and bias {C}; buffers running_mean, running_var {C} and
/// num_batches_tracked.
///
/// In training the evaluation of the result changes the buffers, exactly once. (In PyTorch the call changes them.) So a call in
/// inference mode sees old statistics while a training call is not evaluated: it warns once. Evaluate the training call's result
/// first. Two calls in one expression, as loss(net(a)) + loss(net(b)), update the statistics in an order that C++ leaves open:
/// write two statements. The call throws ShapeError for another rank or number of channels.
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
/// Batch normalisation of {N, C} or {N, C, L}.
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
/// Normalises each channel of each sample by its own statistics, as torch.nn.InstanceNorm; also in inference, unless running
/// statistics are tracked. Takes one sample without N, too. Parameters weight and bias {C} where affine. Tracked buffers are as
/// BatchNorm's: they follow the means over the samples, and num_batches_tracked stays 0, as in PyTorch.
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
/// Normalises {N, C, ...} over each of `num_groups` groups of channels (Wu and He 2018). Parameters weight and bias {C}. Throws
/// Error where num_channels is not divisible by num_groups.
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
/// local_response_norm() of x {N, C, ...}: x / (k + alpha * mean of the squares in `size` neighbouring channels)^beta.
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
  bool bias = true;                ///< false: weight alone
};
/// Normalises over the last dimensions, of extents `normalized_shape`; one number means the last dimension (Ba et al. 2016).
/// Parameters weight and bias of that shape. The constructor throws Error for an extent below 1, the call ShapeError for other
/// extents.
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
  std::optional<double> eps = std::nullopt;  ///< std::nullopt: the dtype's epsilon
  bool elementwise_affine = true;            ///< parameter weight
};
/// Divides by the root mean square over the last dimensions, of extents `normalized_shape`; one number means the last dimension
/// (Zhang and Sennrich 2019). Parameter weight of that shape. Throws as LayerNorm.
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
