// Layers and modules with named parameters and buffers. Names, defaults and initial values are PyTorch's.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "clnet/export.h"
#include "clnet/io.h"
#include "clnet/ops.h"
#include "clnet/tensor.h"

namespace clnet {
struct Slot;
}

namespace clnet::nn {

/// A tensor that changes over time: a handle to a slot that holds its present value. Copies share the slot, and several modules
/// may.
///
/// Each value that is set is a leaf of the graph of its own, even where the tensor is one that another parameter holds. A loss
/// that was built before knows the value that it was built with, and an optimizer applies its gradient to the present one; to
/// compare with an older value in one loss, detach() it.
class CLNET_API Parameter {
 public:
  explicit Parameter(const Tensor& value);
  // Copies only: what was moved from would be the handle of nothing.
  Parameter(const Parameter&) = default;
  Parameter& operator=(const Parameter&) = default;
  /// The present value; it stays what it is when the parameter is set.
  Tensor value() const;
  operator Tensor() const { return value(); }  // NOLINT(google-explicit-constructor)
  /// Replaces the value. Throws ShapeError or DtypeError when the spec differs. What is not computed yet, as in
  /// p.set(0.99 * p + 0.01 * q), is computed once with whatever reads it first, and no gradient flows into it; until then, or
  /// until the next set(), the graph behind it is kept. assign() computes many at once.
  void set(const Tensor& value);
  /// When `value` is computed, for whatever reason, this parameter's present value becomes update(present, value) along with it,
  /// exactly once: a running statistic. At once when it is computed already; never when it is never computed. `update` builds
  /// graph of the same spec, and must neither evaluate nor keep tensors of `value`'s graph. Nothing changes when the evaluation
  /// fails.
  void follow(const Tensor& value, std::function<Tensor(const Tensor& now, const Tensor& value)> update);
  /// Whether both are handles of one slot.
  bool same(const Parameter& other) const { return slot_ == other.slot_; }

  /// For the library's own floors.
  const std::shared_ptr<Slot>& slot() const { return slot_; }

 private:
  std::shared_ptr<Slot> slot_;
};
using NamedParameters = std::vector<std::pair<std::string, Parameter>>;

/// Computes all values together, then sets them: all of them, or none where something throws.
CLNET_API void assign(std::span<const std::pair<Parameter, Tensor>> values);
CLNET_API void assign(std::initializer_list<std::pair<Parameter, Tensor>> values);

/// The base of all layers and of a user's own: a handle to named parameters, buffers and children. Copies share them, so a module
/// can be put into another, returned and captured freely.
///
///   struct Residual : nn::Module {
///     nn::Conv2d first, second;
///     explicit Residual(int64_t c) : first{{...}}, second{{...}} { add("first", first); add("second", second); }
///     Tensor forward(const Tensor& x) override { return relu(second(relu(first(x))) + x); }
///   };
class CLNET_API Module {
 public:
  virtual ~Module() = default;
  virtual Tensor forward(const Tensor& x) = 0;
  Tensor operator()(const Tensor& x);

  /// Own parameters, then the children's with "child." before their names, in the order of add(). One that has several names is
  /// there once, under the first.
  NamedParameters parameters() const;
  NamedParameters buffers() const;
  /// Parameters and buffers, named and ordered as PyTorch's state_dict(): under every name.
  io::StateDict state() const;
  /// Sets parameters and buffers from tensors of the same names, shapes and dtypes. Throws Error naming every missing, unknown,
  /// unfitting or repeated one, and those that differ although they are one parameter's; nothing is changed then.
  void load_state(const io::StateDict& state);
  /// Number of elements of all parameters, each counted once.
  std::int64_t parameter_count() const;

  /// Switches this module and its children between training (the initial mode) and inference.
  void train(bool on = true);
  void eval() { train(false); }
  bool training() const;

  /// A table with a line per layer: name, kind, output shape, parameters. Nothing is computed.
  std::string summary(const Shape& input);
  /// "Conv2d(1, 32, kernel_size=(3, 3))"; what summary() prints.
  virtual std::string kind() const { return "Module"; }

 protected:
  Module();
  Module(const Module&) = default;
  Module& operator=(const Module&) = default;

  /// Registers; names must be unique in the module (Error otherwise).
  Parameter add_parameter(const std::string& name, const Tensor& value);
  Parameter add_buffer(const std::string& name, const Tensor& value);
  /// The same parameter under one more name (tied weights), here or in another module.
  Parameter add_parameter(const std::string& name, const Parameter& shared);
  Parameter add_buffer(const std::string& name, const Parameter& shared);
  /// A child may be added to several modules, and several times: its parameters count once. Throws Error when it is this module
  /// or contains it.
  void add(const std::string& name, const Module& child);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

template <class T>
concept Layer = std::derived_from<std::remove_cvref_t<T>, Module>;

/// Layers and functions (Tensor -> Tensor) one after the other; layers are named by their position, functions count.
class CLNET_API Sequential : public Module {
 public:
  Sequential() = default;
  // No moves: what was moved from would be no module.
  Sequential(const Sequential&) = default;
  Sequential& operator=(const Sequential&) = default;
  template <class... Layers>
  requires(sizeof...(Layers) > 1 ||
           (... && !std::same_as<std::remove_cvref_t<Layers>, Sequential>)) explicit Sequential(Layers&&... layers) {
    (append(std::forward<Layers>(layers)), ...);
  }
  template <Layer L>
  void append(L&& layer) {
    append_module(std::make_shared<std::remove_cvref_t<L>>(std::forward<L>(layer)));
  }
  void append(std::function<Tensor(const Tensor&)> function);
  Tensor forward(const Tensor& x) override;
  std::string kind() const override { return "Sequential"; }

 private:
  using Steps = std::vector<std::function<Tensor(const Tensor&)>>;
  void append_module(std::shared_ptr<Module> layer);
  std::shared_ptr<Steps> steps_ = std::make_shared<Steps>();  ///< shared by copies, as the children are
};

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

/// Parameters weight {out, in} and bias {out}.
class CLNET_API Linear : public Module {
 public:
  Linear(std::int64_t in_features, std::int64_t out_features, bool bias = true);
  Tensor forward(const Tensor& x) override;
  std::string kind() const override;

 private:
  Parameter weight_;
  std::optional<Parameter> bias_;
};

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

/// Drops with probability p in training; does nothing in inference.
class CLNET_API Dropout : public Module {
 public:
  explicit Dropout(double p = 0.5);
  Tensor forward(const Tensor& x) override;
  std::string kind() const override;

 private:
  double p_;
};

class CLNET_API Flatten : public Module {
 public:
  explicit Flatten(int first = 1, int last = -1) : first_(first), last_(last) {}
  Tensor forward(const Tensor& x) override { return flatten(x, first_, last_); }
  std::string kind() const override { return "Flatten"; }

 private:
  int first_, last_;
};

/// Rows of weight {count, width} for integer indices.
class CLNET_API Embedding : public Module {
 public:
  Embedding(std::int64_t count, std::int64_t width);
  Tensor forward(const Tensor& indices) override;
  std::string kind() const override;

 private:
  Parameter weight_;
};

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

/// Initial values, drawn on the host from the process's generator (manual_seed).
namespace init {
CLNET_API Tensor uniform(const Shape& shape, double low, double high);
CLNET_API Tensor normal(const Shape& shape, double mean = 0, double std = 1);
/// Uniform within gain * sqrt(3 / fan_in), fan_in = elements of one output's weights (all dimensions but the first). The default
/// gain gives PyTorch's initial values of linear and convolution layers, +-1 / sqrt(fan_in).
CLNET_API Tensor kaiming_uniform(const Shape& shape, double gain = 0.5773502691896258);
CLNET_API Tensor kaiming_normal(const Shape& shape, double gain = 1.4142135623730951);
/// Uniform within sqrt(6 / (fan_in + fan_out)).
CLNET_API Tensor xavier_uniform(const Shape& shape);
}  // namespace init

}  // namespace clnet::nn
