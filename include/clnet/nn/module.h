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

class Modes;
class Module;
class Step;

namespace detail {

template <class F>
constexpr bool is_forward_of_a_tensor = false;
template <class R, class C, class X, bool safe>
constexpr bool is_forward_of_a_tensor<R (C::*)(X) noexcept(safe)> = std::is_same_v<std::remove_cvref_t<X>, Tensor>;
template <class R, class C, class X, bool safe>
constexpr bool is_forward_of_a_tensor<R (C::*)(X) const noexcept(safe)> = std::is_same_v<std::remove_cvref_t<X>, Tensor>;

/// Refuses a class with a forward() of one tensor that is not Module's: a call would not reach it.
template <class L>
constexpr void require_forward() {
  if constexpr (requires { &L::forward; })
    static_assert(!is_forward_of_a_tensor<decltype(&L::forward)> ||
                      std::is_convertible_v<decltype(&L::forward), Tensor (L::*)(const Tensor&)>,
                  "a module's forward() is declared as: Tensor forward(const Tensor& x) override");
}

}  // namespace detail

struct Clones;
CLNET_API void allow_several_names(const Module& module);

struct LoadOptions {
  bool strict = true;           ///< names that are missing or unknown are errors
  bool skip_unfitting = false;  ///< weights of another shape or dtype are left out; otherwise they are errors
};
/// The names that load_state_dict() left out.
struct LoadResult {
  std::vector<std::string> missing;    ///< of the module, kept as they were
  std::vector<std::string> unknown;    ///< to the module
  std::vector<std::string> unfitting;  ///< of another shape or dtype, kept as they were
};

/// The base of all layers and of a user's own: a handle to named parameters, buffers and children. Copies share them, so a module
/// can be put into another, returned and captured freely.
///
///   struct Residual : nn::Module {
///     nn::Conv2d first, second;
///     explicit Residual(int64_t c) : first(c, c, 3, {.padding = 1}), second(c, c, 3, {.padding = 1}) {
///       add("first", first);
///       add("second", second);
///     }
///     Tensor forward(const Tensor& x) override { return relu(second(relu(first(x))) + x); }
///   };
class CLNET_API Module {
 public:
  /// For the library: while it lives, this thread runs what the module computes. Warns where another module does so and this one
  /// was never added to any.
  class CLNET_API Call {
   public:
    explicit Call(const Module& module);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    friend class Module;
    void warn_if_unnamed() const;

    const Module& module_;
    const Call* outer_;
  };

  virtual ~Module() = default;
  /// What the module does with one input. A module of several inputs has functions of its own for them instead. Throws
  /// Unsupported where it is not defined. Call the module, not this: a layer whose forward() is called has no name in errors, is
  /// not replaced by replace(), and brings no warning where it was never added.
  virtual Tensor forward(const Tensor& x);
  /// forward(), or that of what replace() has put here. Errors that are thrown on the way say in which layer: "in layer1.conv2:
  /// ". A module is a handle, so a const one can be called, too: its forward() may change parameters and buffers, but other
  /// members only where they are mutable.
  Tensor operator()(const Tensor& x) const;

  /// Own parameters, then the children's with "child." before their names, in the order of add(). One that has several names is
  /// there once, under the first.
  NamedParameters parameters() const;
  NamedParameters buffers() const;
  /// Parameters and buffers, named and ordered as PyTorch's state_dict(): under every name.
  io::StateDict state_dict() const;
  /// Sets parameters and buffers from tensors of the same names, shapes and dtypes. Throws Error naming every missing, unknown,
  /// unfitting or repeated one, and those that differ although they are one parameter's; nothing is changed then.
  void load_state_dict(const io::StateDict& state);
  /// The same; not strict, only what both have is set, and what was left out returned. What has another shape or dtype is an
  /// error all the same, unless skip_unfitting leaves it out, too.
  LoadResult load_state_dict(const io::StateDict& state, const LoadOptions& options);
  /// A parameter or buffer by its full name, as "layer1.0.conv1.weight". Throws Error when there is none.
  Parameter parameter(const std::string& name) const;
  /// The names of the children in the order of add(), and a handle to one by its full name, as "layer1.0": to its parameters,
  /// buffers, children and mode; it cannot be called. Throws Error when there is none.
  std::vector<std::string> children() const;
  Module child(const std::string& name) const;
  /// Puts another layer, of whatever kind, in the place of a child: model.replace("fc", nn::Linear{512, 7}), also a function of
  /// one tensor or a model by pointer. From then on it is called and listed under that name, in this module and all that share
  /// the child, and all handles of the child stand for it; an optimizer has to be made anew. The next replace() changes the
  /// child's place again, not the layers that have been there; the first of them puts it back as it was. Throws Error when there
  /// is no such child, and when the layer contains it.
  ///
  /// A child that is called with several inputs, as an LSTM with its states, needs a layer of the same class; where it gets
  /// another, calls throw Error. What a module does outside of operator() and called(), as forward() that is called by hand, is
  /// not replaced.
  void replace(const std::string& name, const Step& step);
  /// Copies all parameters and buffers to a device.
  void to(const Device& device);
  /// Number of elements of all parameters, each counted once.
  std::int64_t parameter_count() const;

  /// Switches this module and its children between training (the initial mode) and inference (PyTorch's eval(), which would hide
  /// clnet::eval() in a module's own functions).
  void train(bool on = true);
  void train(const char*) = delete;  // child("name").train()
  void inference() { train(false); }
  bool training() const;
  /// Freezes the parameters of this module and its children, or lets them move again: Parameter::freeze() of each.
  void freeze(bool on = true);
  void freeze(const char*) = delete;  // child("name").freeze()

  /// A table with a line per layer: name, kind, output shape, parameters. Nothing is computed. The dtype is the input's.
  std::string summary(const Shape& input, Dtype dtype = Dtype::f32);
  /// "Conv2d(1, 32, kernel_size=(3, 3))"; what summary() prints.
  virtual std::string kind() const { return "Module"; }

 protected:
  Module();
  Module(const Module& other);
  /// Throws Error where this one is part of a module, which would go on with the old one: replace() is for that. Parts of a whole
  /// module that is assigned may be.
  Module& operator=(const Module& other);

  /// Registers; names must be unique in the module (Error otherwise). A buffer that is not saved moves with the module, but
  /// state_dict() does not list it: what the module can make anew.
  Parameter add_parameter(const std::string& name, const Tensor& value);
  Parameter add_buffer(const std::string& name, const Tensor& value, bool saved = true);
  /// The same parameter under one more name (tied weights), here or in another module.
  Parameter add_parameter(const std::string& name, const Parameter& shared);
  Parameter add_buffer(const std::string& name, const Parameter& shared);
  /// A child may be added to several modules, and several times: its parameters count once. That it gets a second name within
  /// this module brings a warning, unless it is tied(). Throws Error when it is this module or contains it.
  ///
  /// What forward() calls has to be added: else nothing trains, saves or moves it. The first such call brings a warning, unless
  /// all of its parameters are frozen or it has neither parameters nor buffers nor a use for the mode.
  void add(const std::string& name, const Module& child);
  template <std::derived_from<Module> L>
  void add(const std::string& name, const L& child) {
    detail::require_forward<L>();
    add(name, static_cast<const Module&>(child));
  }

  /// Calls f(layer) or, where replace() has put another in its place, f of that one: in a scope of the module's name, which
  /// errors, traces and the rest say. For operators of several inputs:
  ///   Tensor operator()(const Tensor& a, const Tensor& b) const {
  ///     return called(*this, [&](auto& self) { return self.left(a) + self.right(b); });
  ///   }
  /// Throws Error when the other one is of another class.
  template <class L, class F>
  static auto called(L& layer, const F& f) -> std::invoke_result_t<const F&, std::remove_const_t<L>&> {
    const Module& module = layer;
    if (auto* other = module.replacement()) {
      if (auto* same = dynamic_cast<std::remove_const_t<L>*>(other)) return called(*same, f);
      module.fail_as_replaced(*other);
    }
    return module.in_scope([&] { return f(const_cast<std::remove_const_t<L>&>(layer)); });
  }

 private:
  friend class Cloning;
  friend class KeptModes;
  friend class Modes;
  friend void allow_several_names(const Module& module);
  struct State;
  explicit Module(std::shared_ptr<State> state) : state_(std::move(state)) {}

  template <class F>
  auto in_scope(const F& f) const {
    const Call call(*this);
    const NamedScope scope(known_as());
    try {
      return f();
    } catch (Error& error) {
      place(error);
      throw;
    }
  }
  /// The name under which it was added first; empty where it was not.
  const std::string& known_as() const;
  static void place(Error& error);
  /// What replace() has put here, or nullptr.
  Module* replacement() const;
  [[noreturn]] void fail_as_replaced(const Module& other) const;
  /// What the names of parts refer to.
  const std::shared_ptr<State>& present() const;
  static void require_held(const Clones& clones);
  void warn_if_unreached() const;
  /// Whether training would change anything of it.
  bool may_move() const;
  void warn_of_second_name(const std::string& name, const std::shared_ptr<State>& added) const;

  std::shared_ptr<State> state_;
};

/// Keeps the modes of a module and of each of its parts, and restores them in the end.
class CLNET_API KeptModes {
 public:
  explicit KeptModes(const Module& module);
  ~KeptModes();
  KeptModes(const KeptModes&) = delete;
  KeptModes& operator=(const KeptModes&) = delete;

 private:
  std::vector<std::pair<std::shared_ptr<Module::State>, bool>> modes_;
};

/// While there is one in a thread, copies made there of parameters and modules are deep: new slots of the present values.
class CLNET_API Cloning {
 public:
  Cloning();
  ~Cloning();
  Cloning(const Cloning&) = delete;
  Cloning& operator=(const Cloning&) = delete;
  /// Ends it. Throws Error when the copy of a module would not use the parameters that it got, because it holds a child by
  /// pointer.
  void finish();

 private:
  bool on_ = true;
};
/// A copy with parameters and buffers of its own, of the same values. Throws Error for a module that holds children by pointer;
/// what else it holds by pointer stays shared.
template <class M>
requires(!std::is_abstract_v<M>) M clone(const M& module) {
  Cloning scope;
  M copy(module);
  scope.finish();
  return copy;
}
void clone(const Module&) = delete;  // its class is not known: no copy of what a pointer points to

template <class T>
concept Layer = std::derived_from<std::remove_cvref_t<T>, Module>;

/// The same layer, which may be added under several names from then on, without a warning: its parameters are meant to be shared.
///   add("encoder", words); add("decoder", nn::tied(words));
template <Layer L>
const L& tied(const L& layer) {
  allow_several_names(layer);
  return layer;
}

class Sequential;

/// What may stand in a Sequential or in the place of a layer: a layer, a whole model (also by pointer, as models::make() gives
/// it), or a function of one tensor by its name or as a lambda.
class CLNET_API Step {
 public:
  Step(Tensor (*function)(const Tensor&));  // NOLINT(google-explicit-constructor)
  template <Layer L>
  Step(const L& layer)  // NOLINT(google-explicit-constructor)
      : call_([held = L(layer)](const Tensor& x) mutable { return call(held, x); }),
        module_([held = L(layer)]() mutable -> Module* { return &held; }) {
    detail::require_forward<L>();
  }
  Step(const Module&) = delete;  // its class would be lost: give the pointer
  template <class F>
  requires(!Layer<F> && std::is_invocable_r_v<Tensor, F&, const Tensor&>) Step(F function)  // NOLINT(google-explicit-constructor)
      : call_(std::move(function)) {}
  template <std::derived_from<Module> M>
  Step(std::shared_ptr<M> model) : Step(Pointer{std::move(model)}) {}  // NOLINT(google-explicit-constructor)
  template <std::derived_from<Module> M>
  Step(std::unique_ptr<M> model) : Step(std::shared_ptr<M>(std::move(model))) {}  // NOLINT(google-explicit-constructor)

 private:
  friend class Module;
  friend class Sequential;
  struct Pointer {
    std::shared_ptr<Module> model;
  };
  explicit Step(Pointer pointer);
  /// A layer that takes one tensor by an operator of its own, or by Module's.
  template <class L>
  static Tensor call(L& layer, const Tensor& x) {
    if constexpr (std::is_invocable_r_v<Tensor, L&, const Tensor&>)
      return layer(x);
    else
      return static_cast<Module&>(layer)(x);
  }

  std::function<Tensor(const Tensor&)> call_;
  std::function<Module*()> module_;  ///< what gets a name, if anything
  bool by_pointer_ = false;
};

/// Layers and functions (Tensor -> Tensor) one after the other; layers are named by their position, functions count.
class CLNET_API Sequential : public Module {
 public:
  Sequential() = default;
  // No moves: what was moved from would be no module.
  Sequential(const Sequential& other);
  Sequential& operator=(const Sequential&) = default;
  /// Of one Sequential alone: a handle to the same layers, as copies of modules are; append() makes it a child. By pointer it is
  /// a child.
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

}  // namespace clnet::nn
