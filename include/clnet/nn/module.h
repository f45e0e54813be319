// Modules with named parameters, buffers and children.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <typeinfo>
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

class Child;
class Modes;
class Module;
class Step;

namespace detail {

/// What is known of a layer's class where it is added.
struct LayerClass {
  /// Null where the class has no copies, or the layer is of a class that is derived from it.
  std::unique_ptr<Module> (*copy)(const Module& layer);
  Tensor (*call)(Module& layer, const Tensor& x);
};
template <class L>
const LayerClass& layer_class();

/// While a clone is made, what `make` makes of it, once; else the same.
CLNET_API std::shared_ptr<void> shared_or_cloned(const std::shared_ptr<void>& what,
                                                 std::shared_ptr<void> (*make)(const void* what));
template <class T>
std::shared_ptr<T> shared_or_cloned(const std::shared_ptr<T>& what) {
  return std::static_pointer_cast<T>(shared_or_cloned(std::shared_ptr<void>(what), [](const void* original) {
    return std::shared_ptr<void>(std::make_shared<T>(*static_cast<const T*>(original)));
  }));
}

/// Throws Error where the layer's own class is another one than `as`: a copy of that would lack what the own one adds.
CLNET_API void require_whole(const Module& layer, const std::type_info& as);

/// What is no name: a position, or the null pointer that 0 is, too.
template <class T>
concept NoName = std::integral<T> || std::same_as<T, std::nullptr_t>;

/// From the end where it is negative. Throws Error, which begins with `who`, where it is none of `size`.
CLNET_API std::size_t position_of(const char* who, std::int64_t position, std::size_t size);

/// The output among the results of a layer: they are a tensor, or have `output`, or begin with one.
template <class R>
Tensor* output_of(R& results) {
  if constexpr (std::is_same_v<R, Tensor>)
    return &results;
  else if constexpr (requires { requires std::is_same_v<decltype(results.output), Tensor>; })
    return &results.output;
  else if constexpr (requires { requires std::is_same_v<std::tuple_element_t<0, R>, Tensor>; })
    return &std::get<0>(results);
  else if constexpr (std::is_same_v<R, std::vector<Tensor>>)
    return results.empty() ? nullptr : &results.front();
  else
    return nullptr;
}

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

/// What on_forward() gives: the function is called as long as this lives. A move hands that on. A copy refers to nothing, so that
/// copies of a layer that holds its hook as a member, as modules keep them, do not prolong it.
class CLNET_API Hook {
 public:
  Hook() = default;
  Hook(Hook&&) noexcept = default;
  Hook& operator=(Hook&&) noexcept = default;
  Hook(const Hook&) noexcept {}
  /// As a copy: ends what this one was of.
  Hook& operator=(const Hook& other) noexcept {
    if (this != &other) entry_.reset();
    return *this;
  }
  ~Hook() = default;
  /// Ends it. A call that is under way goes on.
  void remove() { entry_.reset(); }

 private:
  friend class Module;
  explicit Hook(std::shared_ptr<const void> entry) : entry_(std::move(entry)) {}

  std::shared_ptr<const void> entry_;
};
/// Sees a layer's input and output, and returns another output, or an undefined tensor to leave it.
using ForwardHook = std::function<Tensor(const Tensor& x, const Tensor& y)>;
template <class F>
concept ForwardObserver = std::is_void_v<std::invoke_result_t<F&, const Tensor&, const Tensor&>>;

namespace detail {
class Container;
}
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
  /// While it lives, this thread runs what the module computes. Warns where another module does so and this one was never added
  /// to any.
  class CLNET_API Call {
   public:
    explicit Call(const Module& module);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    friend class Module;
    /// The innermost of this thread, or nullptr.
    static const Call* current();
    /// Makes it the innermost of this thread; returns which was.
    static const Call* resume(const Call* call);
    /// Whether it, or one that it lies in, is of the same module as a handle of this state.
    static bool lies_in(const Call* call, const void* state);
    void warn_if_unnamed() const;

    const Module& module_;
    const Call* outer_;
  };

 public:
  virtual ~Module();
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
  template <detail::NoName T>
  Parameter parameter(T) const = delete;  // parameter("0.weight")
  /// The names of the children in the order of add(), and a handle to one by its full name, as "layer1.0". Throws Error when
  /// there is none, and when two have this name, as "0" of "layers" and "layers.0".
  std::vector<std::string> children() const;
  Child child(const std::string& name) const;
  template <detail::NoName T>
  Child child(T) const = delete;  // child("0"), or [0] of a Sequential or a list
  /// Whether both are handles of one layer, or stand for one since replace().
  bool same(const Module& other) const;
  /// Puts another layer, of whatever kind, in the place of a child: model.replace("fc", nn::Linear{512, 7}), also a function of
  /// one tensor or a model by pointer. From then on it is called and listed under that name, in this module and all that share
  /// the child, and all handles of the child stand for it; an optimizer has to be made anew. The next replace() changes the
  /// child's place again, not the layers that have been there; the first of them puts it back as it was. Throws Error when there
  /// is no such child, when the layer contains it, and where two children would have one name, as in add(); nothing is changed
  /// then.
  ///
  /// A child that is called with several inputs, as an LSTM with its states, needs a layer of the same class; where it gets
  /// another, calls throw Error. What a module does outside of operator() and called(), as forward() that is called by hand, is
  /// not replaced.
  void replace(const std::string& name, const Step& step);
  template <detail::NoName T>
  void replace(T, const Step& step) = delete;  // replace("0", layer)
  /// Each call of this layer calls `hook` with its input and output, as PyTorch's register_forward_hook(). It ends when what is
  /// returned here is destroyed or has its remove() called; copies of that refer to nothing. What the hook returns is the output
  /// from then on; one that returns nothing only looks on.
  ///   auto hook = model.on_forward("layer3", [](const Tensor& x, const Tensor& y) { std::cout << y.shape() << '\n'; });
  ///
  /// Hooks run in the order in which they came, also where replace() has put another layer here; clones have none. Where the
  /// layer is called with several inputs, x is undefined, and y is the first of its results. forward() that is called by hand has
  /// no hooks, and functions of a Sequential have none: Error. Add and remove them while no other thread calls the model.
  ///
  /// In a function that compile() runs, a hook is called while the graph is built, with tensors that have no values yet: one that
  /// reads them throws there. What it returns is part of the graph. Another graph is built when hooks come or go. features()
  /// gives outputs by name.
  [[nodiscard]] Hook on_forward(const ForwardHook& hook) const;
  template <ForwardObserver F>
  [[nodiscard]] Hook on_forward(F hook) const {
    return on_forward(only_looking(std::move(hook)));
  }
  /// The same of a child. Throws Error when there is none.
  [[nodiscard]] Hook on_forward(const std::string& name, const ForwardHook& hook) const;
  template <ForwardObserver F>
  [[nodiscard]] Hook on_forward(const std::string& name, F hook) const {
    return on_forward(name, only_looking(std::move(hook)));
  }
  template <detail::NoName T, class F>
  Hook on_forward(T, F hook) const = delete;  // on_forward("0", hook)
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

  /// A table of the layers as a batch of one such sample passes them, in the order in which they end. Its columns are name, kind,
  /// output's shape (with the batch's 1) and number of own parameters; the last line has that of all. `sample` has no batch
  /// dimension, as in models::make(): {channels, height, width}. Layers that only pass on to children have no line, and neither
  /// have functions of a Sequential and what is not called; a function that replace() put somewhere has one. Nothing is computed.
  /// The dtype is the input's, and must suit the weights: f16 for a model of f16, an integer one for an Embedding. Throws Error,
  /// which names the layer, where shape or dtype do not fit.
  ///   std::cout << model.summary({1, 28, 28});
  std::string summary(const Shape& sample, Dtype dtype = Dtype::f32);
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
  /// Names of children may have dots: add("layers.0", x). Throws Error where it would be that of another one, too, as "0" of
  /// "layers".
  ///
  /// A child may be added to several modules, and several times: its parameters count once. That it gets a second name within
  /// this module brings a warning, unless it is tied(). Throws Error when it is this module or contains it.
  ///
  /// What forward() calls has to be added: else nothing trains, saves or moves it. The first such call brings a warning, unless
  /// all of its parameters are frozen or it has neither parameters nor buffers nor a use for the mode.
  ///
  /// For child() the module keeps a copy of the layer, with the members that it has now. The child() of a class without copies,
  /// or of what is added as a Module, cannot be called. What is added by its shared_ptr is called as long as that
  /// lives.
  template <std::derived_from<Module> L>
  void add(const std::string& name, const L& child) {
    detail::require_forward<L>();
    add_part(name, child, detail::layer_class<L>(), {});
  }
  template <std::derived_from<Module> L>
  void add(const std::string& name, const std::shared_ptr<L>& child) {
    detail::require_forward<L>();
    require_pointer(name, child.get());
    add_part(name, *child, detail::layer_class<L>(), child);
  }

  /// Calls f(layer) or, where replace() has put another in its place, f of that one: in a scope of the module's name, which
  /// errors, traces and the rest say. For operators of several inputs:
  ///   Tensor operator()(const Tensor& a, const Tensor& b) const {
  ///     return called(*this, [&](auto& self) { return self.left(a) + self.right(b); });
  ///   }
  /// Throws Error when the other one is of another class.
  template <class L, class F>
  static auto called(L& layer, const F& f) -> std::invoke_result_t<const F&, std::remove_const_t<L>&> {
    using Result = std::invoke_result_t<const F&, std::remove_const_t<L>&>;
    const Module& module = layer;
    if (auto* other = module.replacement()) {
      auto* same = dynamic_cast<std::remove_const_t<L>*>(other);
      if (!same) module.fail_as_replaced(*other);
      return module.finished<Result>([&]() -> Result { return called(*same, f); });
    }
    return module.in_scope([&]() -> Result {
      return module.finished<Result>([&]() -> Result { return f(const_cast<std::remove_const_t<L>&>(layer)); });
    });
  }

 private:
  friend class Child;
  friend class Cloning;
  friend class KeptModes;
  friend class Modes;
  friend class detail::Container;
  friend class Sequential;
  friend std::vector<Tensor> features(const Module& model, const std::function<void()>& forward,
                                      const std::vector<std::string>& names);
  friend void allow_several_names(const Module& module);
  struct State;
  /// Of a handle that no module has as its part: it is not counted.
  explicit Module(std::shared_ptr<State> state) : state_(std::move(state)), counted_(false) {}
  void set_state(std::shared_ptr<State> state);

  template <class F>
  static ForwardHook only_looking(F hook) {
    return [hook = std::move(hook)](const Tensor& x, const Tensor& y) mutable {
      hook(x, y);
      return Tensor{};
    };
  }
  /// A child's state by its name. Throws Error when there is none.
  std::shared_ptr<State> part(const std::string& name) const;
  /// What operator() does.
  virtual Tensor called_with_one(const Tensor& x) const;
  /// Runs the hooks, which may change y, and tells those who wait for the outputs of layers.
  void finish(const Tensor& x, Tensor& y) const;
  template <class Result, class F>
  Result finished(const F& f) const {
    if constexpr (std::is_object_v<Result>) {
      Result results = f();
      if (Tensor* y = detail::output_of(results)) finish(Tensor{}, *y);
      return results;
    } else {
      return f();
    }
  }
  /// `pointer`: where the layer lives, if it was given by pointer.
  void add_part(const std::string& name, const Module& child, const detail::LayerClass& layer_class,
                const std::weak_ptr<Module>& pointer);
  static void require_pointer(const std::string& name, const Module* child);

  template <class F>
  decltype(auto) in_scope(const F& f) const {
    const Call call(*this);
    const NamedScope scope(scope_name());
    try {
      return f();
    } catch (Error& error) {
      place(error);
      throw;
    }
  }
  /// The name under which it was added first; empty where it was not.
  const std::string& known_as() const;
  /// The same behind the names of the lists that it lies in, which are not called themselves: "layers.0".
  std::string scope_name() const;
  static void place(Error& error);
  /// What replace() has put here, or nullptr.
  Module* replacement() const;
  [[noreturn]] void fail_as_replaced(const Module& other) const;
  /// What the names of parts refer to.
  const std::shared_ptr<State>& present() const;
  static void finish_clones(Clones& clones);
  void warn_if_unreached() const;
  /// Whether training would change anything of it.
  bool may_move() const;
  void warn_of_second_name(const std::string& name, const std::shared_ptr<State>& added) const;

  std::shared_ptr<State> state_;
  bool counted_;  ///< among the state's handles
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

template <class L>
const detail::LayerClass& detail::layer_class() {
  static constexpr LayerClass found{[](const Module& layer) -> std::unique_ptr<Module> {
                                      if constexpr (std::is_copy_constructible_v<L>)
                                        if (typeid(layer) == typeid(L))
                                          return std::unique_ptr<Module>(new L(static_cast<const L&>(layer)));
                                      return nullptr;
                                    },
                                    // By an operator of its own where that takes one tensor, else by Module's.
                                    [](Module& layer, const Tensor& x) -> Tensor {
                                      if constexpr (std::is_invocable_r_v<Tensor, L&, const Tensor&>)
                                        return static_cast<L&>(layer)(x);
                                      else
                                        return layer(x);
                                    }};
  return found;
}

/// A handle to a layer of whatever class, as child() and Sequential's [] give it: to its parameters, buffers, children and mode,
/// and it can be called with one tensor. A layer that needs more inputs throws Unsupported then. What replace() puts in the
/// layer's place, this calls from then on. It may be put into other modules, as any layer.
///   nn::Sequential backbone{model.child("layer1"), model.child("layer2"), nn::Flatten()};
///
/// Members of the layer that are neither parameters, buffers nor children are those of the copy that add() made.
class CLNET_API Child final : public Module {
 public:
  explicit Child(const Step& step);
  Child(const Child& other);
  /// Refers to the other layer from then on; no module changes.
  Child& operator=(const Child& other) &;
  Tensor forward(const Tensor& x) override;
  std::string kind() const override;

 private:
  friend class Module;
  explicit Child(const std::shared_ptr<State>& state);
  Tensor called_with_one(const Tensor& x) const override;

  std::shared_ptr<Module> layer_;  ///< null where it cannot be called
  const detail::LayerClass* class_ = nullptr;
  bool by_pointer_ = false;
};

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
      : Step((detail::require_whole(layer, typeid(L)), std::unique_ptr<Module>(new L(layer))), detail::layer_class<L>()) {
    detail::require_forward<L>();
  }
  Step(const Module&) = delete;  // its class would be lost: give the pointer
  template <class F>
  requires(!Layer<F> && std::is_invocable_r_v<Tensor, F&, const Tensor&>) Step(F function)  // NOLINT(google-explicit-constructor)
      : call_(std::move(function)) {}
  template <std::derived_from<Module> M>
  Step(std::shared_ptr<M> model)
      : Step(Pointer{std::move(model), detail::layer_class<M>()}) {}  // NOLINT(google-explicit-constructor)
  template <std::derived_from<Module> M>
  Step(std::unique_ptr<M> model) : Step(std::shared_ptr<M>(std::move(model))) {}  // NOLINT(google-explicit-constructor)

 private:
  friend class Child;
  friend class Module;
  friend class Sequential;
  struct Pointer {
    std::shared_ptr<Module> model;
    const detail::LayerClass& layer_class;
  };
  explicit Step(Pointer pointer);
  Step(std::unique_ptr<Module> layer, const detail::LayerClass& layer_class);

  std::function<Tensor(const Tensor&)> call_;
  std::function<Module*()> module_;  ///< what gets a name, if anything
  const detail::LayerClass* class_ = nullptr;
  std::shared_ptr<Module> pointer_;  ///< of a model that was given by pointer
};

/// Layers and functions (Tensor -> Tensor) one after the other; layers are named by their position, functions count. What is
/// appended during a call is called from the next one on.
class CLNET_API Sequential : public Module {
 public:
  Sequential();
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
  /// How many layers and functions there are.
  std::size_t size() const;
  /// A handle to the layer or function at a position, from the end where that is negative. Throws Error when there is none.
  ///   const Tensor logits = model[-1](features);
  template <std::integral Position>
  Child operator[](Position position) const {
    return at(static_cast<std::int64_t>(position));
  }
  Tensor forward(const Tensor& x) override;
  std::string kind() const override { return "Sequential"; }

 private:
  Child at(std::int64_t position) const;

  struct Steps;
  std::shared_ptr<Steps> steps_;  ///< shared by copies, as the children are
};

}  // namespace clnet::nn
