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

/// Functions of a layer's class, known where the layer is added.
struct LayerClass {
  /// Returns null where the class has no copy constructor, or the layer's class derives from it.
  std::unique_ptr<Module> (*copy)(const Module& layer);
  Tensor (*call)(Module& layer, const Tensor& x);
};
template <class L>
const LayerClass& layer_class();

/// During clone(): the copy by `make`, one per object. Otherwise `what` itself.
CLNET_API std::shared_ptr<void> shared_or_cloned(const std::shared_ptr<void>& what,
                                                 std::shared_ptr<void> (*make)(const void* what));
template <class T>
std::shared_ptr<T> shared_or_cloned(const std::shared_ptr<T>& what) {
  return std::static_pointer_cast<T>(shared_or_cloned(std::shared_ptr<void>(what), [](const void* original) {
    return std::shared_ptr<void>(std::make_shared<T>(*static_cast<const T*>(original)));
  }));
}

/// Throws Error where the layer's dynamic class is not `as`: a copy as `as` would lose the derived class's members.
CLNET_API void require_whole(const Module& layer, const std::type_info& as);

/// A type that is no name: a position, or the null pointer that 0 can be.
template <class T>
concept NoName = std::integral<T> || std::same_as<T, std::nullptr_t>;

/// The index for `position`; negative ones count from the end. Throws Error, which begins with `who`, where it is not below
/// `size`.
CLNET_API std::size_t position_of(const char* who, std::int64_t position, std::size_t size);

/// The output in a layer's results: a tensor, a member `output`, or the first element.
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

/// Rejects a class whose forward() of one tensor does not override Module's: a call would not reach it.
template <class L>
constexpr void require_forward() {
  if constexpr (requires { &L::forward; })
    static_assert(!is_forward_of_a_tensor<decltype(&L::forward)> ||
                      std::is_convertible_v<decltype(&L::forward), Tensor (L::*)(const Tensor&)>,
                  "a module's forward() is declared as: Tensor forward(const Tensor& x) override");
}

}  // namespace detail

/// A registration by on_forward(): the hook is called while this object lives. A move transfers the registration. A copy has
/// none, so that a copy of a layer that holds its hook as a member does not prolong it.
class CLNET_API Hook {
 public:
  Hook() = default;
  Hook(Hook&&) noexcept = default;
  Hook& operator=(Hook&&) noexcept = default;
  Hook(const Hook&) noexcept {}
  /// Ends the own registration and copies none.
  Hook& operator=(const Hook& other) noexcept {
    if (this != &other) entry_.reset();
    return *this;
  }
  ~Hook() = default;
  /// Ends the registration. A call in progress continues.
  void remove() { entry_.reset(); }

 private:
  friend class Module;
  explicit Hook(std::shared_ptr<const void> entry) : entry_(std::move(entry)) {}

  std::shared_ptr<const void> entry_;
};
/// Receives a layer's input and output. Returns a new output, or an undefined tensor to keep the output.
using ForwardHook = std::function<Tensor(const Tensor& x, const Tensor& y)>;
template <class F>
concept ForwardObserver = std::is_void_v<std::invoke_result_t<F&, const Tensor&, const Tensor&>>;

namespace detail {
class Container;
}
struct Clones;
CLNET_API void allow_several_names(const Module& module);

struct LoadOptions {
  bool strict = true;           ///< missing or unknown names throw Error
  bool skip_unfitting = false;  ///< weights of another shape or dtype are skipped; otherwise they throw Error
};
/// The names that load_state_dict() skipped.
struct LoadResult {
  std::vector<std::string> missing;    ///< in the module only; unchanged
  std::vector<std::string> unknown;    ///< in the state only
  std::vector<std::string> unfitting;  ///< of another shape or dtype; unchanged
};

/// The base of all layers, as torch.nn.Module: a handle to named parameters, buffers and children. Copies share them, so a module
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
  /// While it lives, this thread runs the module's forward pass. Warns where it lies in another module's call and this module was
  /// never added to one.
  class CLNET_API Call {
   public:
    explicit Call(const Module& module);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    friend class Module;
    /// The innermost call of this thread, or nullptr.
    static const Call* current();
    /// Makes `call` the innermost of this thread; returns the former one.
    static const Call* resume(const Call* call);
    /// Whether `call` or an enclosing call belongs to the module with this state.
    static bool lies_in(const Call* call, const void* state);
    void warn_if_unnamed() const;

    const Module& module_;
    const Call* outer_;
  };

 public:
  virtual ~Module();
  /// The module's function of one input. A module with several inputs defines functions of its own. Throws Unsupported where a
  /// class does not override it.
  ///
  /// Call the module, not forward(): a direct call has no name in errors, ignores replace(), and brings no warning where the
  /// module was never added.
  virtual Tensor forward(const Tensor& x);
  /// Calls forward(), or the layer that replace() put here. Errors get the layer's name: "in layer1.conv2: ". A module is a
  /// handle, so a const one can be called, too. Its forward() may change parameters and buffers, but other members only where
  /// they are mutable.
  Tensor operator()(const Tensor& x) const;

  /// Own parameters, then the children's with the prefix "child.", in the order of add(). A parameter with several names appears
  /// once, under the first.
  NamedParameters parameters() const;
  NamedParameters buffers() const;
  /// Parameters and buffers, named and ordered as PyTorch's state_dict(); one with several names appears under each.
  io::StateDict state_dict() const;
  /// Sets parameters and buffers from tensors of the same names, shapes and dtypes; for f32, of any floating dtype. Throws Error
  /// with all names that are missing, unknown, unfitting or repeated, and with different values for one parameter; nothing is
  /// changed then.
  void load_state_dict(const io::StateDict& state);
  /// The same with options. If not strict, it sets the names that both have, and returns the others. Another shape or dtype
  /// throws Error, unless skip_unfitting is set.
  LoadResult load_state_dict(const io::StateDict& state, const LoadOptions& options);
  /// A parameter or buffer by its full name, as "layer1.0.conv1.weight". Throws Error where there is none.
  Parameter parameter(const std::string& name) const;
  template <detail::NoName T>
  Parameter parameter(T) const = delete;  // parameter("0.weight")
  /// The names of the children in the order of add(), and a handle to a child by its full name, as "layer1.0". child() throws
  /// Error where no child or two have this name, as "0" of "layers" and "layers.0".
  std::vector<std::string> children() const;
  Child child(const std::string& name) const;
  template <detail::NoName T>
  Child child(T) const = delete;  // child("0"), or [0] of a Sequential or a list
  /// Whether both are handles of one layer, or became so by replace().
  bool same(const Module& other) const;
  /// Replaces a child by another layer, a function of one tensor or a model by pointer: model.replace("fc", nn::Linear{512, 7}).
  /// From then on the new layer is called and listed under that name, in this module and in all that share the child. All handles
  /// of the child refer to it. Make a new optimizer afterwards.
  ///
  /// The next replace() changes the child's place again and leaves the earlier layers alone; with the original child it restores
  /// the first state. Throws Error where there is no such child, the layer contains the module, or two children would get one
  /// name, as in add(); nothing is changed then.
  ///
  /// A child with several inputs, as an LSTM with its states, needs a layer of the same class: calls throw Error otherwise. Only
  /// operator() and called() respect a replacement; a direct forward() does not.
  void replace(const std::string& name, const Step& step);
  template <detail::NoName T>
  void replace(T, const Step& step) = delete;  // replace("0", layer)
  /// Registers a hook, as PyTorch's register_forward_hook(): each call of this layer calls `hook` with its input and output. A
  /// tensor that the hook returns becomes the output; a hook that returns nothing only observes. The registration ends with the
  /// returned object, or with its remove(); copies of it have no registration.
  ///   auto hook = model.on_forward("layer3", [](const Tensor& x, const Tensor& y) { std::cout << y.shape() << '\n'; });
  ///
  /// Hooks run in the order of their registration, also on a layer that replace() put here; clones have none. For a layer with
  /// several inputs x is undefined, and y is the first result. A direct forward() calls no hooks. Functions of a Sequential
  /// cannot have any: Error. Add and remove hooks while no other thread calls the model.
  ///
  /// Under compile() a hook runs while the graph is built, on tensors without values: reading them throws Error. Its result is
  /// part of the graph. New and removed hooks cause a new graph. features() returns outputs by name.
  [[nodiscard]] Hook on_forward(const ForwardHook& hook) const;
  template <ForwardObserver F>
  [[nodiscard]] Hook on_forward(F hook) const {
    return on_forward(only_looking(std::move(hook)));
  }
  /// The same for a child. Throws Error where there is none.
  [[nodiscard]] Hook on_forward(const std::string& name, const ForwardHook& hook) const;
  template <ForwardObserver F>
  [[nodiscard]] Hook on_forward(const std::string& name, F hook) const {
    return on_forward(name, only_looking(std::move(hook)));
  }
  template <detail::NoName T, class F>
  Hook on_forward(T, F hook) const = delete;  // on_forward("0", hook)
  /// Copies all parameters and buffers to a device, those that are not there. An exception changes none.
  void to(const Device& device);
  /// The number of elements of all parameters, each counted once.
  std::int64_t parameter_count() const;

  /// Switches this module and its children between training (the initial mode) and inference. PyTorch's eval() is inference()
  /// here: it would hide clnet::eval() in a module's functions.
  void train(bool on = true);
  void train(const char*) = delete;  // child("name").train()
  void inference() { train(false); }
  bool training() const;
  /// Freezes or unfreezes all parameters of this module and its children: Parameter::freeze() of each.
  void freeze(bool on = true);
  void freeze(const char*) = delete;  // child("name").freeze()
  /// Freezes or unfreezes the parameters whose full names match, as freeze_matching("layer1.*"): `*` stands for any characters,
  /// `?` for one. Throws Error where none matches.
  void freeze_matching(const std::string& pattern, bool on = true);

  /// A table of the layers, in the order in which a batch of one sample leaves them. The columns are name, kind, output shape
  /// (with the batch's 1) and number of own parameters; the last line has their sum. `sample` has no batch dimension: {channels,
  /// height, width}. Nothing is computed.
  ///
  /// Layers that only call children have no line; nor do functions of a Sequential and layers that are not called. A function by
  /// replace() has one. `dtype` is the input's and must suit the weights: f16 for a model of f16, an integer one for an
  /// Embedding. Throws Error, with the layer's name, where shape or dtype do not fit.
  ///   std::cout << model.summary({1, 28, 28});
  std::string summary(const Shape& sample, Dtype dtype = Dtype::f32);
  /// The layer as summary() prints it: "Conv2d(1, 32, kernel_size=(3, 3))".
  virtual std::string kind() const { return "Module"; }

 protected:
  Module();
  Module(const Module& other);
  /// Throws Error where this handle is part of a module, which would keep the old layer: use replace(). Assignment of a whole
  /// module may assign its parts.
  Module& operator=(const Module& other);

  /// Registers a parameter or buffer. Throws Error where the module has the name. A buffer with `saved` false moves with the
  /// module but is not in state_dict(): use it for values that the module can compute again.
  Parameter add_parameter(const std::string& name, const Tensor& value);
  Parameter add_buffer(const std::string& name, const Tensor& value, bool saved = true);
  /// Registers an existing parameter under one more name (tied weights), here or in another module.
  Parameter add_parameter(const std::string& name, const Parameter& shared);
  Parameter add_buffer(const std::string& name, const Parameter& shared);
  /// Registers a child. Names may have dots: add("layers.0", x). Throws Error where the name is taken, also by "0" of "layers".
  ///
  /// A child may be added to several modules, and several times: its parameters count once. A second name within this module
  /// brings a warning, unless the child is tied(). Throws Error where the child is this module or contains it.
  ///
  /// Add every layer that forward() calls: otherwise it is not trained, saved or moved. The first call of such a layer brings a
  /// warning. There is none where all its parameters are frozen, or it has no parameters, buffers or use for the mode.
  ///
  /// For child() the module keeps a copy of the layer with its present members. A child() cannot be called where its class has no
  /// copy constructor, or it was added as a Module. A child added by shared_ptr can be called while the pointer lives.
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

  /// Calls f(layer), or f of the layer that replace() put in its place, within a NamedScope of the module's name. For operators
  /// with several inputs:
  ///   Tensor operator()(const Tensor& a, const Tensor& b) const {
  ///     return called(*this, [&](auto& self) { return self.left(a) + self.right(b); });
  ///   }
  /// Throws Error where the replacement has another class.
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
  /// An uncounted handle, which belongs to no module.
  explicit Module(std::shared_ptr<State> state) : state_(std::move(state)), counted_(false) {}
  void set_state(std::shared_ptr<State> state);

  template <class F>
  static ForwardHook only_looking(F hook) {
    return [hook = std::move(hook)](const Tensor& x, const Tensor& y) mutable {
      hook(x, y);
      return Tensor{};
    };
  }
  /// A child's state by its name. Throws Error where there is none.
  std::shared_ptr<State> part(const std::string& name) const;
  /// Implements operator().
  virtual Tensor called_with_one(const Tensor& x) const;
  /// Runs the hooks, which may change y, and passes y to features().
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
  /// `pointer`: the layer's owner, where it was given by pointer.
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
  /// The name of the first add(); empty where it was never added.
  const std::string& known_as() const;
  /// The same with the names of enclosing lists in front, as lists are not called themselves: "layers.0".
  std::string scope_name() const;
  static void place(Error& error);
  /// The layer that replace() put here, or nullptr.
  Module* replacement() const;
  [[noreturn]] void fail_as_replaced(const Module& other) const;
  /// The state that names of parts refer to.
  const std::shared_ptr<State>& present() const;
  static void finish_clones(Clones& clones);
  void warn_if_unreached() const;
  /// Whether training would change any part of it.
  bool may_move() const;
  void warn_of_second_name(const std::string& name, const std::shared_ptr<State>& added) const;

  std::shared_ptr<State> state_;
  bool counted_;  ///< counted among the state's handles
};

/// Saves the modes of a module and of all its parts; the destructor restores them.
class CLNET_API KeptModes {
 public:
  explicit KeptModes(const Module& module);
  ~KeptModes();
  KeptModes(const KeptModes&) = delete;
  KeptModes& operator=(const KeptModes&) = delete;

 private:
  std::vector<std::pair<std::shared_ptr<Module::State>, bool>> modes_;
};

/// While it lives, this thread's copies of parameters and modules are deep: new slots with the present values.
class CLNET_API Cloning {
 public:
  Cloning();
  ~Cloning();
  Cloning(const Cloning&) = delete;
  Cloning& operator=(const Cloning&) = delete;
  /// Ends the scope. Throws Error where the copy of a module would not use its new parameters, because it holds a child by
  /// pointer.
  void finish();

 private:
  bool on_ = true;
};
/// A deep copy: new parameters and buffers with the same values. Throws Error for a module that holds children by pointer. Other
/// objects behind pointers stay shared.
template <class M>
requires(!std::is_abstract_v<M>) M clone(const M& module) {
  Cloning scope;
  M copy(module);
  scope.finish();
  return copy;
}
void clone(const Module&) = delete;  // the class is unknown, so it cannot be copied

template <class L>
const detail::LayerClass& detail::layer_class() {
  static constexpr LayerClass found{[](const Module& layer) -> std::unique_ptr<Module> {
                                      if constexpr (std::is_copy_constructible_v<L>)
                                        if (typeid(layer) == typeid(L))
                                          return std::unique_ptr<Module>(new L(static_cast<const L&>(layer)));
                                      return nullptr;
                                    },
                                    // The class's own operator() where that takes one tensor, else Module's.
                                    [](Module& layer, const Tensor& x) -> Tensor {
                                      if constexpr (std::is_invocable_r_v<Tensor, L&, const Tensor&>)
                                        return static_cast<L&>(layer)(x);
                                      else
                                        return layer(x);
                                    }};
  return found;
}

/// A handle to a layer of any class, as child() and Sequential's [] return it. It gives access to parameters, buffers, children
/// and mode, and can be called with one tensor; a layer with more inputs throws Unsupported then. It follows replace(). It may be
/// put into other modules, as any layer.
///   nn::Sequential backbone{model.child("layer1"), model.child("layer2"), nn::Flatten()};
///
/// All other members are those of the copy that add() made.
class CLNET_API Child final : public Module {
 public:
  explicit Child(const Step& step);
  Child(const Child& other);
  /// Makes this handle refer to another layer; no module changes.
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

/// Allows several names for a layer without a warning: its parameters are meant to be shared.
///   add("encoder", words); add("decoder", nn::tied(words));
template <Layer L>
const L& tied(const L& layer) {
  allow_several_names(layer);
  return layer;
}

class Sequential;

/// An element of a Sequential, or a replacement of a layer. It is a layer, a whole model (also by pointer, as from
/// models::make()), or a function of one tensor by name or as a lambda.
class CLNET_API Step {
 public:
  Step(Tensor (*function)(const Tensor&));  // NOLINT(google-explicit-constructor)
  template <Layer L>
  Step(const L& layer)  // NOLINT(google-explicit-constructor)
      : Step((detail::require_whole(layer, typeid(L)), std::unique_ptr<Module>(new L(layer))), detail::layer_class<L>()) {
    detail::require_forward<L>();
  }
  Step(const Module&) = delete;  // its class would be lost: pass the pointer
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
  std::function<Module*()> module_;  ///< the module that gets a name, if any
  const detail::LayerClass* class_ = nullptr;
  std::shared_ptr<Module> pointer_;  ///< the model, where given by pointer
};

/// Layers and functions (Tensor -> Tensor) in order, as torch.nn.Sequential. Layers are named by their position, in which
/// functions count. A step appended during a call takes effect in the next one.
class CLNET_API Sequential : public Module {
 public:
  Sequential();
  // No moves: a moved-from handle would be no module.
  Sequential(const Sequential& other);
  Sequential& operator=(const Sequential&) = default;
  /// With a single Sequential this is a handle to the same layers, as a copy; append() makes it a child. A Sequential by pointer
  /// is a child.
  Sequential(std::initializer_list<Step> steps);
  template <class... Steps>
  requires(sizeof...(Steps) > 1 && (... && std::constructible_from<Step, Steps&&>)) explicit Sequential(Steps&&... steps)
      : Sequential({Step(std::forward<Steps>(steps))...}) {}
  void append(const Step& step);
  /// The number of layers and functions.
  std::size_t size() const;
  /// A handle to the layer or function at a position; negative ones count from the end. Throws Error where there is none.
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
  std::shared_ptr<Steps> steps_;  ///< shared by copies, as the children
};

}  // namespace clnet::nn
