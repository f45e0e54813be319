// Layers of pooling.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "clnet/export.h"
#include "clnet/nn/module.h"
#include "clnet/ops/pool.h"

namespace clnet::nn {

/// What the layers of pooling have in common: they have no parameters.
class CLNET_API Pool : public Module {
 public:
  Tensor forward(const Tensor& x) override { return function_(x); }
  std::string kind() const override { return kind_; }

 protected:
  using Function = std::function<Tensor(const Tensor&)>;
  Pool(std::string kind, Function function) : kind_(std::move(kind)), function_(std::move(function)) {}

 private:
  std::string kind_;
  Function function_;
};

/// What the layers of max pooling have in common.
class CLNET_API MaxPool : public Pool {
 public:
  /// Where the largest elements lie, too, for the layers of unpooling (PyTorch's return_indices).
  MaxPoolResult with_indices(const Tensor& x) {
    return called(*this, [&](auto& self) { return self.indexed_(x); });
  }

 protected:
  using Indexed = std::function<MaxPoolResult(const Tensor&)>;
  MaxPool(std::string kind, Function function, Indexed indexed)
      : Pool(std::move(kind), std::move(function)), indexed_(std::move(indexed)) {}

 private:
  Indexed indexed_;
};

class CLNET_API MaxPool1d : public MaxPool {
 public:
  explicit MaxPool1d(std::int64_t kernel_size, const MaxPool1dOptions& options = {});
};
class CLNET_API MaxPool2d : public MaxPool {
 public:
  explicit MaxPool2d(Pair kernel_size, const MaxPool2dOptions& options = {});
};
class CLNET_API MaxPool3d : public MaxPool {
 public:
  explicit MaxPool3d(Triple kernel_size, const MaxPool3dOptions& options = {});
};

class CLNET_API AvgPool1d : public Pool {
 public:
  explicit AvgPool1d(std::int64_t kernel_size, const AvgPool1dOptions& options = {});
};
class CLNET_API AvgPool2d : public Pool {
 public:
  explicit AvgPool2d(Pair kernel_size, const AvgPool2dOptions& options = {});
};
class CLNET_API AvgPool3d : public Pool {
 public:
  explicit AvgPool3d(Triple kernel_size, const AvgPool3dOptions& options = {});
};

/// What the layers of unpooling have in common: they are called with what MaxPool::with_indices() or max_pool2d_with_indices()
/// and its like give.
class CLNET_API Unpool : public Module {
 public:
  Tensor operator()(const Tensor& x, const Tensor& indices) {
    return called(*this, [&](auto& self) { return self.function_(x, indices); });
  }
  using Module::operator();
  std::string kind() const override { return kind_; }

 protected:
  using Function = std::function<Tensor(const Tensor& x, const Tensor& indices)>;
  Unpool(std::string kind, Function function) : kind_(std::move(kind)), function_(std::move(function)) {}

 private:
  std::string kind_;
  Function function_;
};

class CLNET_API MaxUnpool1d : public Unpool {
 public:
  explicit MaxUnpool1d(std::int64_t kernel_size, const MaxUnpool1dOptions& options = {});
};
class CLNET_API MaxUnpool2d : public Unpool {
 public:
  explicit MaxUnpool2d(Pair kernel_size, const MaxUnpool2dOptions& options = {});
};
class CLNET_API MaxUnpool3d : public Unpool {
 public:
  explicit MaxUnpool3d(Triple kernel_size, const MaxUnpool3dOptions& options = {});
};

class CLNET_API LPPool1d : public Pool {
 public:
  LPPool1d(double power, std::int64_t kernel_size, std::optional<std::int64_t> stride = std::nullopt, bool ceil_mode = false);
};
class CLNET_API LPPool2d : public Pool {
 public:
  LPPool2d(double power, Pair kernel_size, std::optional<Pair> stride = std::nullopt, bool ceil_mode = false);
};
class CLNET_API LPPool3d : public Pool {
 public:
  LPPool3d(double power, Triple kernel_size, std::optional<Triple> stride = std::nullopt, bool ceil_mode = false);
};

// An output size of -1 keeps the extent of its axis.

class CLNET_API AdaptiveAvgPool1d : public Pool {
 public:
  explicit AdaptiveAvgPool1d(std::int64_t output_size);
};
class CLNET_API AdaptiveAvgPool2d : public Pool {
 public:
  explicit AdaptiveAvgPool2d(Pair output_size);
};
class CLNET_API AdaptiveAvgPool3d : public Pool {
 public:
  explicit AdaptiveAvgPool3d(Triple output_size);
};
class CLNET_API AdaptiveMaxPool1d : public MaxPool {
 public:
  explicit AdaptiveMaxPool1d(std::int64_t output_size);
};
class CLNET_API AdaptiveMaxPool2d : public MaxPool {
 public:
  explicit AdaptiveMaxPool2d(Pair output_size);
};
class CLNET_API AdaptiveMaxPool3d : public MaxPool {
 public:
  explicit AdaptiveMaxPool3d(Triple output_size);
};

}  // namespace clnet::nn
