// Pooling layers, without parameters. Shapes and options are those of clnet/ops/pool.h.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "clnet/error.h"
#include "clnet/export.h"
#include "clnet/nn/module.h"
#include "clnet/ops/pool.h"

namespace clnet::nn {

namespace detail {

/// Options with the stride from a separate argument. Throws Error where they have a stride, too.
template <class Size, class Options>
Options with_stride(const char* layer, const Size& stride, Options options) {
  if (options.stride) throw Error(std::string(layer) + ": stride is given twice, after the kernel's size and in the options");
  options.stride = stride;
  return options;
}
/// The same for a stride as {2, 1}; {} leaves the options unchanged.
template <class Options>
Options with_stride(const char* layer, std::initializer_list<std::int64_t> stride, const Options& options) {
  using Size = typename decltype(options.stride)::value_type;
  constexpr bool is_pair = std::is_same_v<Size, Pair>;
  const auto* of = stride.begin();
  if (stride.size() == 0) return options;
  if (stride.size() == 1) return with_stride(layer, Size(of[0]), options);
  if constexpr (is_pair) {
    if (stride.size() == 2) return with_stride(layer, Pair(of[0], of[1]), options);
  } else if (stride.size() == 3) {
    return with_stride(layer, Triple(of[0], of[1], of[2]), options);
  }
  throw Error(std::string(layer) + ": stride has " + std::to_string(stride.size()) + " numbers, and needs 1 or " +
              (is_pair ? "2" : "3"));
}

}  // namespace detail

/// The base of pooling layers. The stride is the kernel's size by default. It may follow the kernel size: MaxPool2d(3, 2) is
/// MaxPool2d(3, {.stride = 2}).
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

/// The base of max pooling layers.
class CLNET_API MaxPool : public Pool {
 public:
  /// Also returns the positions of the largest elements, for unpooling layers (PyTorch's return_indices).
  MaxPoolResult with_indices(const Tensor& x) const {
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
  MaxPool1d(std::int64_t kernel_size, std::integral auto stride, const MaxPool1dOptions& options = {})
      : MaxPool1d(kernel_size, detail::with_stride("MaxPool1d", static_cast<std::int64_t>(stride), options)) {}
};
class CLNET_API MaxPool2d : public MaxPool {
 public:
  explicit MaxPool2d(Pair kernel_size, const MaxPool2dOptions& options = {});
  MaxPool2d(Pair kernel_size, Pair stride, const MaxPool2dOptions& options = {})
      : MaxPool2d(kernel_size, detail::with_stride("MaxPool2d", stride, options)) {}
  MaxPool2d(Pair kernel_size, std::initializer_list<std::int64_t> stride, const MaxPool2dOptions& options = {})
      : MaxPool2d(kernel_size, detail::with_stride("MaxPool2d", stride, options)) {}
};
class CLNET_API MaxPool3d : public MaxPool {
 public:
  explicit MaxPool3d(Triple kernel_size, const MaxPool3dOptions& options = {});
  MaxPool3d(Triple kernel_size, Triple stride, const MaxPool3dOptions& options = {})
      : MaxPool3d(kernel_size, detail::with_stride("MaxPool3d", stride, options)) {}
  MaxPool3d(Triple kernel_size, std::initializer_list<std::int64_t> stride, const MaxPool3dOptions& options = {})
      : MaxPool3d(kernel_size, detail::with_stride("MaxPool3d", stride, options)) {}
};

class CLNET_API AvgPool1d : public Pool {
 public:
  explicit AvgPool1d(std::int64_t kernel_size, const AvgPool1dOptions& options = {});
  AvgPool1d(std::int64_t kernel_size, std::integral auto stride, const AvgPool1dOptions& options = {})
      : AvgPool1d(kernel_size, detail::with_stride("AvgPool1d", static_cast<std::int64_t>(stride), options)) {}
};
class CLNET_API AvgPool2d : public Pool {
 public:
  explicit AvgPool2d(Pair kernel_size, const AvgPool2dOptions& options = {});
  AvgPool2d(Pair kernel_size, Pair stride, const AvgPool2dOptions& options = {})
      : AvgPool2d(kernel_size, detail::with_stride("AvgPool2d", stride, options)) {}
  AvgPool2d(Pair kernel_size, std::initializer_list<std::int64_t> stride, const AvgPool2dOptions& options = {})
      : AvgPool2d(kernel_size, detail::with_stride("AvgPool2d", stride, options)) {}
};
class CLNET_API AvgPool3d : public Pool {
 public:
  explicit AvgPool3d(Triple kernel_size, const AvgPool3dOptions& options = {});
  AvgPool3d(Triple kernel_size, Triple stride, const AvgPool3dOptions& options = {})
      : AvgPool3d(kernel_size, detail::with_stride("AvgPool3d", stride, options)) {}
  AvgPool3d(Triple kernel_size, std::initializer_list<std::int64_t> stride, const AvgPool3dOptions& options = {})
      : AvgPool3d(kernel_size, detail::with_stride("AvgPool3d", stride, options)) {}
};

/// The base of unpooling layers. Their inputs are the results of MaxPool::with_indices() or max_pool2d_with_indices() and its
/// like.
class CLNET_API Unpool : public Module {
 public:
  Tensor operator()(const Tensor& x, const Tensor& indices) const {
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
  MaxUnpool1d(std::int64_t kernel_size, std::integral auto stride, const MaxUnpool1dOptions& options = {})
      : MaxUnpool1d(kernel_size, detail::with_stride("MaxUnpool1d", static_cast<std::int64_t>(stride), options)) {}
};
class CLNET_API MaxUnpool2d : public Unpool {
 public:
  explicit MaxUnpool2d(Pair kernel_size, const MaxUnpool2dOptions& options = {});
  MaxUnpool2d(Pair kernel_size, Pair stride, const MaxUnpool2dOptions& options = {})
      : MaxUnpool2d(kernel_size, detail::with_stride("MaxUnpool2d", stride, options)) {}
  MaxUnpool2d(Pair kernel_size, std::initializer_list<std::int64_t> stride, const MaxUnpool2dOptions& options = {})
      : MaxUnpool2d(kernel_size, detail::with_stride("MaxUnpool2d", stride, options)) {}
};
class CLNET_API MaxUnpool3d : public Unpool {
 public:
  explicit MaxUnpool3d(Triple kernel_size, const MaxUnpool3dOptions& options = {});
  MaxUnpool3d(Triple kernel_size, Triple stride, const MaxUnpool3dOptions& options = {})
      : MaxUnpool3d(kernel_size, detail::with_stride("MaxUnpool3d", stride, options)) {}
  MaxUnpool3d(Triple kernel_size, std::initializer_list<std::int64_t> stride, const MaxUnpool3dOptions& options = {})
      : MaxUnpool3d(kernel_size, detail::with_stride("MaxUnpool3d", stride, options)) {}
};

struct LPPool1dOptions {
  std::optional<std::int64_t> stride = std::nullopt;  ///< the kernel's size when not given
  bool ceil_mode = false;
};
class CLNET_API LPPool1d : public Pool {
 public:
  LPPool1d(double norm_type, std::int64_t kernel_size, const LPPool1dOptions& options = {});
  LPPool1d(double norm_type, std::int64_t kernel_size, std::integral auto stride, const LPPool1dOptions& options = {})
      : LPPool1d(norm_type, kernel_size, detail::with_stride("LPPool1d", static_cast<std::int64_t>(stride), options)) {}
};
struct LPPool2dOptions {
  std::optional<Pair> stride = std::nullopt;  ///< the kernel's size when not given
  bool ceil_mode = false;
};
class CLNET_API LPPool2d : public Pool {
 public:
  LPPool2d(double norm_type, Pair kernel_size, const LPPool2dOptions& options = {});
  LPPool2d(double norm_type, Pair kernel_size, Pair stride, const LPPool2dOptions& options = {})
      : LPPool2d(norm_type, kernel_size, detail::with_stride("LPPool2d", stride, options)) {}
  LPPool2d(double norm_type, Pair kernel_size, std::initializer_list<std::int64_t> stride, const LPPool2dOptions& options = {})
      : LPPool2d(norm_type, kernel_size, detail::with_stride("LPPool2d", stride, options)) {}
};
struct LPPool3dOptions {
  std::optional<Triple> stride = std::nullopt;  ///< the kernel's size when not given
  bool ceil_mode = false;
};
class CLNET_API LPPool3d : public Pool {
 public:
  LPPool3d(double norm_type, Triple kernel_size, const LPPool3dOptions& options = {});
  LPPool3d(double norm_type, Triple kernel_size, Triple stride, const LPPool3dOptions& options = {})
      : LPPool3d(norm_type, kernel_size, detail::with_stride("LPPool3d", stride, options)) {}
  LPPool3d(double norm_type, Triple kernel_size, std::initializer_list<std::int64_t> stride, const LPPool3dOptions& options = {})
      : LPPool3d(norm_type, kernel_size, detail::with_stride("LPPool3d", stride, options)) {}
};

// Adaptive pooling. An output size of -1 keeps the extent of its axis.

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
