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

/// What a container of L takes: any layer, function or pointer to a model where L is a handle of any.
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
/// Whether a container of L takes it, and as what it is.
template <class T, class L>
concept FitsInto = std::convertible_to<T, ElementOf<L>> && !StrictlyDerived<std::remove_cvref_t<T>, L>;

/// A layer that is given as one of the container's class may be of one that is derived from it.
template <class L>
void require_element(const ElementOf<L>& element) {
  if constexpr (!std::same_as<L, Child>) require_whole(element, typeid(L));
}

/// What holds layers and is not called itself: errors in these layers say its name, too.
class CLNET_API Container : public Module {
 protected:
  Container();
};

/// A container's layers as those who go through it get them. Handles are const: one that was assigned to would no longer be that
/// of a child.
template <class L, class Layers>
auto& seen_from_outside(Layers& layers) {
  if constexpr (std::same_as<L, Child>)
    return std::as_const(layers);
  else
    return layers;
}
/// What [] gives.
template <class L>
using FoundIn = std::conditional_t<std::same_as<L, Child>, Child, L&>;

[[noreturn]] CLNET_API void fail_without_key(const std::vector<std::string>& keys, const std::string& key);
[[noreturn]] CLNET_API void fail_at_old_key(const std::string& key);

}  // namespace detail

/// Layers in order, children with the names "0", "1", ... It has no forward(): the module that it is a part of calls them.
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
/// Copies are handles of one list, as those of all modules, also before or behind append(). ModuleList{a, b} is of the class of
/// both, or of any layer where they differ. A list of one class takes no layers of classes that are derived from it: it would
/// hold copies without what these add.
///
/// A list only grows, at its end: there is no erase() and no insert(), and replace("0", layer) stands for an assignment. append()
/// invalidates iterators, and references to layers of one class.
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

  /// Throws Error when the list has been replaced, or is a part of the layer, and for a layer of a class derived from L.
  void append(const Element& layer) {
    detail::require_element<L>(layer);
    const L element(layer);
    add(std::to_string(layers_->size()), element);
    layers_->push_back(element);
  }
  template <detail::StrictlyDerived<L> Derived>
  void append(const Derived&) = delete;  // would be cut down to an L: nn::ModuleList<> takes any layer
  /// Appends each; the list itself, too, as it was.
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
  /// From the end where the position is negative; where layers are of any class, a handle. Throws Error when there is none.
  template <std::integral Position>
  detail::FoundIn<L> operator[](Position position) const {
    auto& layers = all();
    return layers[detail::position_of("ModuleList", static_cast<std::int64_t>(position), layers.size())];
  }
  /// Where layers are of any class they are const: a copy, as in `for (auto layer : list)`, is a handle whose mode may be set.
  auto begin() const { return detail::seen_from_outside<L>(all()).begin(); }
  auto end() const { return detail::seen_from_outside<L>(all()).end(); }
  std::string kind() const override { return "ModuleList"; }

 private:
  /// Those of the list that has replaced this one, if any.
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

/// Layers by names, which are those of children. As ModuleList it has no forward(), and copies are handles of one.
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

  /// Throws Error when the key is there already (replace() changes a layer), or is no name, and for a layer of a class derived
  /// from L.
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
  /// In the order of insert().
  std::vector<std::string> keys() const {
    std::vector<std::string> found;
    for (const auto& [key, layer] : all()) found.push_back(key);
    return found;
  }
  /// Throws Error, which names the keys, when there is none.
  detail::FoundIn<L> operator[](const std::string& key) const {
    for (auto& [own, layer] : all())
      if (own == key) return layer;
    detail::fail_without_key(keys(), key);
  }
  template <detail::NoName T>
  L& operator[](T) const = delete;  // layers have keys: ["0"]
  /// Pairs of keys and layers, in the order of insert(). Keys are const, and so are layers where they are of any class.
  auto begin() const { return detail::seen_from_outside<L>(all()).begin(); }
  auto end() const { return detail::seen_from_outside<L>(all()).end(); }
  std::string kind() const override { return "ModuleDict"; }

 private:
  /// Those of the dictionary that has replaced this one, if any.
  std::vector<value_type>& all() const {
    return called(*this, [](auto& self) -> std::vector<value_type>& { return *self.layers_; });
  }

  std::shared_ptr<std::vector<value_type>> layers_ = std::make_shared<std::vector<value_type>>();
};

}  // namespace clnet::nn
