// Modules with named parameters, buffers and children.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "clnet/export.h"
#include "clnet/io.h"
#include "clnet/nn/parameter.h"
#include "clnet/tensor.h"

namespace clnet::nn {

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
  /// Freezes the parameters of this module and its children, or lets them move again: Parameter::freeze() of each.
  void freeze(bool on = true);

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

}  // namespace clnet::nn
