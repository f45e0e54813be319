// Lists and dictionaries of layers, as parts of a module.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include "clnet/export.h"
#include "clnet/nn/module.h"

namespace clnet::nn {

namespace detail {

/// The element type of a container of L. A container of Child takes any layer, function or pointer to a model.
template <class L>
using ElementOf = std::conditional_t<std::is_same_v<L, Child>, Step, L>;

template <class First, class... Rest>
struct ElementFor {
  using Type = Child;
};
template <Layer First, class... Rest>
requires(...&& std::same_as<First, Rest>) struct ElementFor<First, Rest...> {
  using Type = First;
};

template <class T, class L>
concept StrictlyDerived = std::derived_from<T, L> && !std::same_as<T, L>;
/// Whether a container of L takes T without slicing it.
template <class T, class L>
concept FitsInto = std::convertible_to<T, ElementOf<L>> && !StrictlyDerived<std::remove_cvref_t<T>, L>;

/// Throws Error where the layer's dynamic class derives from the container's.
template <class L>
void require_element(const ElementOf<L>& element) {
  if constexpr (!std::same_as<L, Child>) require_whole(element, typeid(L));
}

/// The base of containers. They are not called themselves, so errors in their layers have the container's name, too.
class CLNET_API Container : public Module {
 protected:
  Container();
};

/// A container's layers for iteration. Child handles are const: assignment would make one refer to another layer.
template <class L, class Layers>
auto& seen_from_outside(Layers& layers) {
  if constexpr (std::same_as<L, Child>)
    return std::as_const(layers);
  else
    return layers;
}
/// The result type of operator[].
template <class L>
using FoundIn = std::conditional_t<std::same_as<L, Child>, Child, L&>;

[[noreturn]] CLNET_API void fail_without_key(const std::vector<std::string>& keys, const std::string& key);
[[noreturn]] CLNET_API void fail_at_old_key(const std::string& key);

}  // namespace detail

/// Layers in order, as torch.nn.ModuleList: children named "0", "1", ... It has no forward(): the enclosing module calls the
/// layers.
///
///   struct Net : nn::Module {
///     nn::ModuleList<Block> blocks;       // of one class, with all of its functions
///     nn::ModuleList<> heads;             // of any, called with one tensor
///     Net() {
///       for (int i = 0; i < 4; ++i) blocks.append(Block(64));
///       heads.append(nn::Linear(64, 10));
///       heads.append(nn::Sequential(nn::Linear(64, 64), relu, nn::Linear(64, 1)));
///       add("blocks", blocks);            // parameters "blocks.0...", "heads.1.2.weight"
///       add("heads", heads);
///     }
///     Tensor forward(const Tensor& x) override {
///       Tensor y = x;
///       for (const auto& block : blocks) y = block(y);
///       return heads[-1](y);
///     }
///   };
///
/// Copies are handles of one list, as with all modules, before and after append(). ModuleList{a, b} has the class of both, or
/// takes any layer where they differ. A list of one class rejects layers of derived classes: its copies would lose their members.
///
/// A list only grows, at its end: there is no erase() and no insert(). Use replace("0", layer) in place of an assignment.
/// append() invalidates iterators, and references to layers of one class.
template <std::derived_from<Module> L = Child>
class ModuleList : public detail::Container {
 public:
  using Element = detail::ElementOf<L>;
  using value_type = L;

  ModuleList() = default;
  ModuleList(const ModuleList& other) : Container(other), layers_(detail::shared_or_cloned(other.layers_)) {}
  ModuleList& operator=(const ModuleList&) = default;
  template <class... Layers>
  requires(sizeof...(Layers) > 0 &&
           (... && detail::FitsInto<Layers&&, L>)&&!(
               sizeof...(Layers) == 1 &&
               (... && std::same_as<std::remove_cvref_t<Layers>, ModuleList>))) explicit ModuleList(Layers&&... layers) {
    (append(std::forward<Layers>(layers)), ...);
  }

  /// Throws Error where the list was replaced or is a part of the layer, and for a layer of a class derived from L.
  void append(const Element& layer) {
    detail::require_element<L>(layer);
    const L element(layer);
    add(std::to_string(layers_->size()), element);
    layers_->push_back(element);
  }
  template <detail::StrictlyDerived<L> Derived>
  void append(const Derived&) = delete;  // would slice it to an L: nn::ModuleList<> takes any layer
  /// Appends each layer. A list may extend itself by its present layers.
  template <class Layers>
  requires requires(const Layers& layers) {
    layers.end();
    requires detail::FitsInto<decltype(*layers.begin()), L>;
  }
  void extend(const Layers& layers) {
    std::vector<Element> taken;
    for (const auto& layer : layers) {
      const Element& element = layer;
      detail::require_element<L>(element);
      taken.push_back(element);
    }
    for (const auto& element : taken) append(element);
  }
  std::size_t size() const { return all().size(); }
  bool empty() const { return all().empty(); }
  /// The layer at a position; negative ones count from the end. A handle where the list takes any layer. Throws Error where there
  /// is none.
  template <std::integral Position>
  detail::FoundIn<L> operator[](Position position) const {
    auto& layers = all();
    return layers[detail::position_of("ModuleList", static_cast<std::int64_t>(position), layers.size())];
  }
  /// Handles in a list of any layers are const; set the mode on a copy: `for (auto layer : list)`.
  auto begin() const { return detail::seen_from_outside<L>(all()).begin(); }
  auto end() const { return detail::seen_from_outside<L>(all()).end(); }
  std::string kind() const override { return "ModuleList"; }

 private:
  /// The layers, or those of the list that replaced this one.
  std::vector<L>& all() const {
    return called(*this, [](auto& self) -> std::vector<L>& { return *self.layers_; });
  }

  std::shared_ptr<std::vector<L>> layers_ = std::make_shared<std::vector<L>>();
};

template <class... Layers>
requires(sizeof...(Layers) > 0) ModuleList(Layers...)
->ModuleList<typename detail::ElementFor<Layers...>::Type>;
template <class L>
ModuleList(ModuleList<L>) -> ModuleList<L>;

/// Layers by name, as torch.nn.ModuleDict; keys are the children's names. As ModuleList it has no forward(), and copies are
/// handles of one dictionary.
///
///   nn::ModuleDict<> heads;
///   heads.insert("classes", nn::Linear(64, 10));
///   heads.insert("boxes", nn::Linear(64, 4));
///   for (const auto& [name, head] : heads) std::cout << name << head(x).shape() << '\n';
template <std::derived_from<Module> L = Child>
class ModuleDict : public detail::Container {
 public:
  using Element = detail::ElementOf<L>;
  using value_type = std::pair<const std::string, L>;
  struct Entry {
    std::string key;
    Element layer;
    Entry(std::string own_key, const Element& own_layer) : key(std::move(own_key)), layer(own_layer) {
      detail::require_element<L>(own_layer);
    }
    template <detail::StrictlyDerived<L> Derived>
    Entry(std::string, const Derived&) = delete;  // would be cut down to an L: nn::ModuleDict<> takes any layer
  };

  ModuleDict() = default;
  ModuleDict(const ModuleDict& other) : Container(other), layers_(detail::shared_or_cloned(other.layers_)) {}
  ModuleDict& operator=(const ModuleDict&) = default;
  ModuleDict(std::initializer_list<Entry> layers) {
    for (const auto& [key, layer] : layers) insert(key, layer);
  }

  /// Adds a layer. Throws Error where the key exists (use replace()) or is no valid name, and for a layer of a class derived from
  /// L.
  void insert(const std::string& key, const Element& layer) {
    if (contains(key)) detail::fail_at_old_key(key);
    detail::require_element<L>(layer);
    const L element(layer);
    add(key, element);
    layers_->emplace_back(key, element);
  }
  template <detail::StrictlyDerived<L> Derived>
  void insert(const std::string& key, const Derived&) = delete;  // would be cut down to an L: nn::ModuleDict<> takes any layer
  std::size_t size() const { return all().size(); }
  bool empty() const { return all().empty(); }
  bool contains(const std::string& key) const {
    for (const auto& [own, layer] : all())
      if (own == key) return true;
    return false;
  }
  /// Keys in the order of insert().
  std::vector<std::string> keys() const {
    std::vector<std::string> found;
    for (const auto& [key, layer] : all()) found.push_back(key);
    return found;
  }
  /// The layer of a key. Throws Error, with all keys, where there is none.
  detail::FoundIn<L> operator[](const std::string& key) const {
    for (auto& [own, layer] : all())
      if (own == key) return layer;
    detail::fail_without_key(keys(), key);
  }
  template <detail::NoName T>
  L& operator[](T) const = delete;  // layers have keys: ["0"]
  /// Pairs of keys and layers, in the order of insert(). Keys are const, and so are handles in a dictionary of any layers.
  auto begin() const { return detail::seen_from_outside<L>(all()).begin(); }
  auto end() const { return detail::seen_from_outside<L>(all()).end(); }
  std::string kind() const override { return "ModuleDict"; }

 private:
  /// The layers, or those of the dictionary that replaced this one.
  std::vector<value_type>& all() const {
    return called(*this, [](auto& self) -> std::vector<value_type>& { return *self.layers_; });
  }

  std::shared_ptr<std::vector<value_type>> layers_ = std::make_shared<std::vector<value_type>>();
};

}  // namespace clnet::nn
