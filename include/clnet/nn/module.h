// Modules with named parameters, buffers and children.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "clnet/debug.h"
#include "clnet/error.h"
#include "clnet/export.h"
#include "clnet/io.h"
#include "clnet/nn/parameter.h"
#include "clnet/tensor.h"

namespace clnet {
class Device;
}

namespace clnet::nn {

struct LoadOptions {
  bool strict = true;  ///< names that are missing or unknown are errors
};
/// The names that load_state() left out.
struct LoadResult {
  std::vector<std::string> missing;  ///< of the module, kept as they were
  std::vector<std::string> unknown;  ///< to the module
};

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
  /// What the module does with one input. A module of several inputs has functions of its own for them instead. Throws
  /// Unsupported where it is not defined.
  virtual Tensor forward(const Tensor& x);
  /// forward(), or that of what replace() has put here. Errors that are thrown on the way say in which layer: "in layer1.conv2:
  /// ".
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
  /// The same; not strict, only what both have is set, and what was left out returned. What does not fit is an error all the
  /// same.
  LoadResult load_state(const io::StateDict& state, const LoadOptions& options);
  /// A parameter or buffer by its full name, as "layer1.0.conv1.weight". Throws Error when there is none.
  Parameter parameter(const std::string& name) const;
  /// The names of the children in the order of add(), and a handle to one by its full name, as "layer1.0": to its parameters,
  /// buffers, children and mode; it cannot be called. Throws Error when there is none.
  std::vector<std::string> children() const;
  Module child(const std::string& name) const;
  /// Puts another layer, of whatever kind, in the place of a child: model.replace("fc", nn::Linear{512, 7}). From then on it is
  /// called and listed under that name, in this module and all that share the child; an optimizer has to be made anew. The child
  /// must be called with one tensor by its operator().
  template <class L>
  void replace(const std::string& name, const L& layer) {
    replace_child(name, layer, [layer = L(layer)](const Tensor& x) mutable { return layer(x); });
  }
  /// Copies all parameters and buffers to a device.
  void to(const Device& device);
  /// Number of elements of all parameters, each counted once.
  std::int64_t parameter_count() const;

  /// Switches this module and its children between training (the initial mode) and inference.
  void train(bool on = true);
  void eval() { train(false); }
  bool training() const;
  /// Freezes the parameters of this module and its children, or lets them move again: Parameter::freeze() of each.
  void freeze(bool on = true);
  // clnet::eval(), which eval() would hide in a module's own functions.
  static void eval(std::span<const Tensor> tensors) { clnet::eval(tensors); }
  static void eval(std::initializer_list<Tensor> tensors) { clnet::eval(tensors); }
  static void eval(std::span<const Tensor> tensors, const Device& device) { clnet::eval(tensors, device); }

  /// A table with a line per layer: name, kind, output shape, parameters. Nothing is computed.
  std::string summary(const Shape& input);
  /// "Conv2d(1, 32, kernel_size=(3, 3))"; what summary() prints.
  virtual std::string kind() const { return "Module"; }

 protected:
  Module();
  Module(const Module& other);
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

  /// Calls `f` as operator()(x) calls forward(): in a scope of the module's name, which errors, traces and the rest say. For
  /// layers of several inputs.
  template <class F>
  auto called(const F& f) const {
    const NamedScope scope(known_as());
    try {
      return f();
    } catch (Error& error) {
      place(error);
      throw;
    }
  }

 private:
  struct State;
  explicit Module(std::shared_ptr<State> state) : state_(std::move(state)) {}
  /// The name under which it was added first; empty where it was not.
  const std::string& known_as() const;
  static void place(Error& error);
  void replace_child(const std::string& name, const Module& layer, std::function<Tensor(const Tensor&)> forward);

  std::shared_ptr<State> state_;
};

/// While there is one in a thread, copies made there of parameters and modules are deep: new slots of the present values.
class CLNET_API Cloning {
 public:
  Cloning();
  ~Cloning();
  Cloning(const Cloning&) = delete;
  Cloning& operator=(const Cloning&) = delete;
};
/// A copy with parameters and buffers of its own, of the same values. What a module holds by pointer stays shared.
template <class M>
M clone(const M& module) {
  const Cloning scope;
  return M(module);
}

template <class T>
concept Layer = std::derived_from<std::remove_cvref_t<T>, Module>;

class Sequential;

/// What may stand in a Sequential: a layer, a whole model (also by pointer, as models::make() gives it), or a function of one
/// tensor by its name or as a lambda.
class CLNET_API Step {
 public:
  Step(Tensor (*function)(const Tensor&));  // NOLINT(google-explicit-constructor)
  template <Layer L>
  Step(const L& layer);  // NOLINT(google-explicit-constructor)
  template <class F>
  requires(!Layer<F> && std::is_invocable_r_v<Tensor, F&, const Tensor&>) Step(F function)  // NOLINT(google-explicit-constructor)
      : Step(std::function<Tensor(const Tensor&)>(std::move(function)), nullptr) {}
  Step(std::shared_ptr<Module> model);                                                      // NOLINT(google-explicit-constructor)
  Step(std::unique_ptr<Module> model) : Step(std::shared_ptr<Module>(std::move(model))) {}  // NOLINT(google-explicit-constructor)

 private:
  friend class Sequential;
  /// `module` is what gets a name, if anything.
  Step(std::function<Tensor(const Tensor&)> call, std::shared_ptr<const Module> module)
      : call_(std::move(call)), module_(std::move(module)) {}

  std::function<Tensor(const Tensor&)> call_;
  std::shared_ptr<const Module> module_;
};

/// Layers and functions (Tensor -> Tensor) one after the other; layers are named by their position, functions count.
class CLNET_API Sequential : public Module {
 public:
  Sequential() = default;
  // No moves: what was moved from would be no module.
  Sequential(const Sequential& other);
  Sequential& operator=(const Sequential&) = default;
  /// Of one Sequential alone: a copy of it.
  Sequential(std::initializer_list<Step> steps);
  template <class... Steps>
  requires(sizeof...(Steps) > 1 && (... && std::constructible_from<Step, Steps&&>)) explicit Sequential(Steps&&... steps)
      : Sequential({Step(std::forward<Steps>(steps))...}) {}
  void append(const Step& step);
  Tensor forward(const Tensor& x) override;
  std::string kind() const override { return "Sequential"; }

 private:
  using Steps = std::vector<std::function<Tensor(const Tensor&)>>;
  std::shared_ptr<Steps> steps_ = std::make_shared<Steps>();  ///< shared by copies, as the children are
};

template <Layer L>
Step::Step(const L& layer) : Step([layer = L(layer)](const Tensor& x) mutable { return layer(x); }, std::make_shared<L>(layer)) {}

}  // namespace clnet::nn
