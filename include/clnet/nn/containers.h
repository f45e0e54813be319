// Lists and dictionaries of layers, as parts of a module.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <type_traits>
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
/// both, or of any layer where they differ.
template <std::derived_from<Module> L = Child>
class ModuleList : public Module {
 public:
  using Element = detail::ElementOf<L>;
  using value_type = L;

  ModuleList() = default;
  ModuleList(const ModuleList& other) : Module(other), layers_(detail::shared_or_cloned(other.layers_)) {}
  ModuleList& operator=(const ModuleList&) = default;
  template <class... Layers>
  requires(sizeof...(Layers) > 0 &&
           (... && std::convertible_to<Layers&&, Element>)&&!(
               sizeof...(Layers) == 1 &&
               (... && std::same_as<std::remove_cvref_t<Layers>, ModuleList>))) explicit ModuleList(Layers&&... layers) {
    (append(std::forward<Layers>(layers)), ...);
  }

  /// Throws Error when the list has been replaced, or is a part of the layer.
  void append(const Element& layer) {
    const L element(layer);
    add(std::to_string(layers_->size()), element);
    layers_->push_back(element);
  }
  template <class Layers>
  requires requires(const Layers& layers) { layers.begin(), layers.end(); }
  void extend(const Layers& layers) {
    for (const auto& layer : layers) append(layer);
  }
  std::size_t size() const { return all().size(); }
  bool empty() const { return all().empty(); }
  /// From the end where the position is negative. Throws Error when there is none.
  template <std::integral Position>
  L& operator[](Position position) const {
    auto& layers = all();
    return layers[detail::position_of("ModuleList", static_cast<std::int64_t>(position), layers.size())];
  }
  auto begin() const { return all().begin(); }
  auto end() const { return all().end(); }
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
class ModuleDict : public Module {
 public:
  using Element = detail::ElementOf<L>;
  using value_type = std::pair<std::string, L>;

  ModuleDict() = default;
  ModuleDict(const ModuleDict& other) : Module(other), layers_(detail::shared_or_cloned(other.layers_)) {}
  ModuleDict& operator=(const ModuleDict&) = default;
  ModuleDict(std::initializer_list<std::pair<std::string, Element>> layers) {
    for (const auto& [key, layer] : layers) insert(key, layer);
  }

  /// Throws Error when the key is there already (replace() changes a layer), or is no name.
  void insert(const std::string& key, const Element& layer) {
    if (contains(key)) detail::fail_at_old_key(key);
    const L element(layer);
    add(key, element);
    layers_->emplace_back(key, element);
  }
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
  L& operator[](const std::string& key) const {
    for (auto& [own, layer] : all())
      if (own == key) return layer;
    detail::fail_without_key(keys(), key);
  }
  /// Pairs of keys and layers, in the order of insert().
  auto begin() const { return all().begin(); }
  auto end() const { return all().end(); }
  std::string kind() const override { return "ModuleDict"; }

 private:
  /// Those of the dictionary that has replaced this one, if any.
  std::vector<value_type>& all() const {
    return called(*this, [](auto& self) -> std::vector<value_type>& { return *self.layers_; });
  }

  std::shared_ptr<std::vector<value_type>> layers_ = std::make_shared<std::vector<value_type>>();
};

}  // namespace clnet::nn
