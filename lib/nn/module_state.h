// The state that handles of a module share.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "clnet/error.h"
#include "clnet/nn/module.h"
#include "lib/graph/capture.h"
#include "lib/nn/cloning.h"
#include "lib/nn/here.h"
#include "lib/nn/parameter.h"

namespace clnet::nn {

/// While it lives, new modules of this thread belong to a Child handle and are not counted; or are counted again.
class Uncounted {
 public:
  explicit Uncounted(bool on = true) : before_(std::exchange(here().uncounted, on)) {}
  ~Uncounted() { here().uncounted = before_; }
  Uncounted(const Uncounted&) = delete;
  Uncounted& operator=(const Uncounted&) = delete;

 private:
  bool before_;
};

struct HookEntry {
  ForwardHook call;
  std::uint64_t id;
  std::uint64_t graph;  ///< the graph in whose construction it was made, by the capture's id; 0: none
};

/// A function as a layer.
struct Function : Module {
  std::function<Tensor(const Tensor&)> function;

  explicit Function(std::function<Tensor(const Tensor&)> f) : function(std::move(f)) {}
  Tensor forward(const Tensor& x) override { return function(x); }
  std::string kind() const override { return "function"; }
};

struct Module::State {
  enum class Kind : std::uint8_t { parameter, buffer, unsaved };

  NamedParameters parameters, buffers, unsaved;
  std::vector<std::pair<std::string, std::shared_ptr<State>>> children;
  bool training = true;
  bool tied = false;                          ///< may have several names: see tied()
  std::string known_as;                       ///< the name of the first add()
  std::vector<std::weak_ptr<State>> parents;  ///< whose child it is
  /// The replacement by replace(): its state, its call, and itself. A handle of the child knows only this state.
  std::shared_ptr<State> successor;
  std::function<Tensor(const Tensor&)> successor_call;
  std::function<Module*()> successor_layer;
  /// The layer that child() calls: a copy without this state, which would be a cycle, or the layer at its own place.
  const detail::LayerClass* layer_class = nullptr;
  std::shared_ptr<Module> copied;
  std::weak_ptr<Module> pointer;
  std::vector<std::weak_ptr<const HookEntry>> hooks;
  bool dotted = false;     ///< a child's name here or below has a dot
  bool container = false;  ///< a list or dictionary, which is not called itself
  bool function = false;   ///< a function of a Sequential, no layer
  bool stand_in = false;   ///< the state of a layer kept for child(), in place of the one that its copies get
  /// The number of modules with this state, except child() handles.
  std::atomic<long> handles{0};

  /// The contents of a module and its children.
  struct Held {
    bool trainable = false, frozen = false, buffers = false;
  };
  Held held() const {
    Held found;
    visit("", [&](const auto&, const Parameter& parameter, Kind kind) {
      (kind != Kind::parameter ? found.buffers : parameter.frozen() ? found.frozen : found.trainable) = true;
    });
    return found;
  }

  /// Under compile() the graph holds for the modes that it reads, and each call sets those that the function sets.
  static bool mode(const std::shared_ptr<State>& state) {
    const bool on = state->training;
    if (auto* capture = capturing(); capture && !capture->settings.contains(state.get()))
      capture->conditions.emplace_back([state, on] { return state->training == on; });
    return on;
  }
  static void set_mode(const std::shared_ptr<State>& state, bool on) {
    state->training = on;
    if (auto* capture = capturing()) capture->settings[state.get()] = [state, on] { state->training = on; };
  }

  /// The hooks that were not added during the construction of this graph, which contains those.
  std::vector<std::uint64_t> hooks_outside(std::uint64_t graph) const {
    std::vector<std::uint64_t> ids;
    for (const auto& hook : hooks)
      if (const auto entry = hook.lock(); entry && entry->graph != graph) ids.push_back(entry->id);
    return ids;
  }

  /// The present state: its own, or its replacement's.
  static const std::shared_ptr<State>& present(const std::shared_ptr<State>& state) {
    const auto* at = &state;
    while ((*at)->successor) at = &(*at)->successor;
    return *at;
  }

  /// The same; under compile() the graph holds while this answer and the hooks stay the same.
  static const std::shared_ptr<State>& noted_present(const std::shared_ptr<State>& state) {
    const auto& found = present(state);
    if (auto* capture = capturing())
      capture->conditions.emplace_back([state, was = found, graph = capture->id, hooks = state->hooks_outside(capture->id)] {
        return present(state) == was && state->hooks_outside(graph) == hooks;
      });
    return found;
  }

  /// The state's copy in the clone under construction, or the state itself where there is none.
  static std::shared_ptr<State> copy_of(const std::shared_ptr<State>& state) {
    auto* cloning = cloning_now();
    if (!cloning || !state) return state;
    auto& known = cloning->states[state.get()];
    if (known.second) return std::static_pointer_cast<State>(known.second);
    const auto copy = std::make_shared<State>();
    known = {state, copy};
    // Parameters copy themselves.
    copy->parameters = state->parameters;
    copy->buffers = state->buffers;
    copy->unsaved = state->unsaved;
    for (const auto& [name, child] : state->children) {
      copy->children.emplace_back(name, copy_of(child));
      const auto& part = copy->children.back().second;
      part->parents.push_back(copy);
      if (child->successor && child->successor->is_child_of(state)) part->successor->parents.push_back(copy);
    }
    copy->training = state->training;
    copy->tied = state->tied;
    copy->dotted = state->dotted;
    copy->container = state->container;
    copy->function = state->function;
    copy->known_as = state->known_as;
    copy->successor = copy_of(state->successor);
    copy->successor_call = state->successor_call;
    copy->successor_layer = state->successor_layer;
    return copy;
  }

  std::shared_ptr<State> first_parent() const {
    for (const auto& parent : parents)
      if (auto found = parent.lock()) return found;
    return nullptr;
  }
  bool is_part() const {
    return std::any_of(parents.begin(), parents.end(), [](const auto& parent) { return !parent.expired(); });
  }

  bool is_child_of(const std::shared_ptr<State>& parent) const {
    return std::any_of(parents.begin(), parents.end(), [&](const auto& candidate) { return candidate.lock() == parent; });
  }

  /// Becomes a child of `parent`.
  void join(const std::shared_ptr<State>& parent, const std::string& name) {
    std::erase_if(parents, [](const auto& one) { return one.expired(); });
    if (parents.empty()) known_as = name;
    parents.push_back(parent);
  }
  void leave(const std::shared_ptr<State>& parent) {
    const auto found =
        std::find_if(parents.begin(), parents.end(), [&](const auto& candidate) { return candidate.lock() == parent; });
    if (found != parents.end()) parents.erase(found);
    if (!is_part()) known_as.clear();
  }

  template <class See>
  void each_own(const See& see) const {
    for (const auto* list : {&parameters, &buffers, &unsaved})
      for (const auto& [name, own] : *list) see(own);
  }

  /// Keeps a layer for child(): the first one that it can call.
  void keep_layer(const Module& layer, const detail::LayerClass& of, const std::weak_ptr<Module>& where) {
    if (copied || !pointer.expired()) return;
    const Module* it = &layer;
    const auto* its_class = &of;
    auto its_place = where;
    // A Child handle keeps a layer itself: use that.
    if (const auto* handle = dynamic_cast<const Child*>(&layer)) {
      if (!handle->layer_) return;
      it = handle->layer_.get();
      its_class = handle->class_;
      if (handle->by_pointer_) its_place = handle->layer_;
    }
    layer_class = its_class;
    pointer = its_place;
    if (!pointer.expired()) return;
    copied = layer_class->copy(*it);
    if (copied) stand_in_for_copies(*copied);
  }
  /// Gives a kept layer a stand-in state: its own would be a cycle, and without any a user's destructor could not read the
  /// module.
  static void stand_in_for_copies(Module& layer) {
    auto empty = std::make_shared<State>();
    empty->stand_in = true;
    layer.set_state(std::move(empty));
  }
  /// The same for a copy, when the copies of its parts exist.
  static void copy_layer(const std::shared_ptr<State>& copy, const State& original) {
    copy->layer_class = original.layer_class;
    if (!original.copied || copy->copied) return;
    copy->copied = layer_with(copy, original);
    stand_in_for_copies(*copy->copied);
  }
  /// A copy of the layer that `original` keeps, with this state.
  static std::shared_ptr<Module> layer_with(const std::shared_ptr<State>& state, const State& original) {
    struct Given {
      std::shared_ptr<void> outer;
      explicit Given(std::shared_ptr<void> given) : outer(std::exchange(here().state_of_copies, std::move(given))) {}
      ~Given() { here().state_of_copies = outer; }
      Given(const Given&) = delete;
      Given& operator=(const Given&) = delete;
    } given(state);
    return original.layer_class->copy(*original.copied);
  }

  bool has_own() const { return !parameters.empty() || !buffers.empty() || !unsaved.empty(); }

  void require_free_of_dots(const std::string& name) const {
    if (name.find('.') != std::string::npos)
      throw Error(fmt::format("module: '{}' is no name of a parameter: it has a dot in it", name));
    require_free(name);
  }

  void require_free(const std::string& name) const {
    if (successor) throw Error(fmt::format("module: '{}' has been replaced, and cannot get a '{}'", known_as, name));
    if (name.empty() || name.starts_with('.') || name.ends_with('.') || name.find("..") != std::string::npos)
      throw Error(fmt::format("module: '{}' is no name: it, or what is beside a dot in it, is empty", name));
    const auto taken = [&](const auto& list) {
      return std::any_of(list.begin(), list.end(), [&](const auto& entry) { return entry.first == name; });
    };
    if (taken(parameters) || taken(buffers) || taken(unsaved) || taken(children))
      throw Error(fmt::format("module: the name '{}' is used twice", name));
  }

  /// Visits every parameter and buffer in PyTorch's order, with its full name.
  void visit(const std::string& prefix, const std::function<void(const std::string&, const Parameter&, Kind)>& see) const {
    for (const auto& [name, parameter] : parameters) see(prefix + name, parameter, Kind::parameter);
    for (const auto& [name, buffer] : buffers) see(prefix + name, buffer, Kind::buffer);
    for (const auto& [name, buffer] : unsaved) see(prefix + name, buffer, Kind::unsaved);
    for (const auto& [name, child] : children) present(child)->visit(prefix + name + '.', see);
  }

  /// Parameters or buffers, each under its first name.
  NamedParameters slots(bool buffers_wanted) const {
    NamedParameters result;
    std::unordered_set<const Slot*> seen;
    visit("", [&](const auto& name, const auto& parameter, Kind kind) {
      if ((kind != Kind::parameter) == buffers_wanted && seen.insert(own_slot_of(parameter).get()).second)
        result.emplace_back(name, parameter);
    });
    return result;
  }

  /// Whether it is the other state or contains it.
  bool contains(const State& other) const {
    std::unordered_set<const State*> seen;
    std::vector<const State*> open{this};
    while (!open.empty()) {
      const auto* state = open.back();
      open.pop_back();
      if (state == &other) return true;
      if (!seen.insert(state).second) continue;
      if (state->successor) open.push_back(state->successor.get());
      for (const auto& [name, child] : state->children) open.push_back(child.get());
    }
    return false;
  }

  /// Visits this state and all within it; one with several names, several times.
  template <class See>
  static void each(const std::shared_ptr<State>& state, const See& see) {
    see(state);
    for (const auto& [name, child] : state->children) each(noted_present(child), see);
  }

  /// The target of a path of names: the child, and its parent. Empty where there is none.
  struct Place {
    std::shared_ptr<State> parent, child;
  };
  static Place find(const std::shared_ptr<State>& state, const std::string& path) {
    std::vector<std::pair<Place, std::string>> found;
    find_all(state, path, "", found);
    if (found.size() > 1) fail_as_ambiguous(path, found[0].second, found[1].second);
    return found.empty() ? Place{} : found[0].first;
  }

  /// Throws Error where a name with a dot is also another child's, here or in a module that contains this one.
  void require_clear_names() const {
    if (dotted) {
      std::map<std::string, std::string> known;
      require_new_names("", "", known);
    }
    for (const auto& weak : parents)
      if (const auto parent = weak.lock()) parent->require_clear_names();
  }
  void note_dots() {
    if (dotted) return;
    dotted = true;
    for (const auto& weak : parents)
      if (const auto parent = weak.lock()) parent->note_dots();
  }

 private:
  [[noreturn]] static void fail_as_ambiguous(const std::string& path, const std::string& one, const std::string& other) {
    throw Error(fmt::format("module: the name '{}' is ambiguous: there are {} and {}", path, one, other));
  }
  /// "'0' of 'layers'".
  static std::string route(const std::string& name, const std::string& within) {
    return within.empty() ? fmt::format("'{}'", name) : fmt::format("'{}' of {}", name, within);
  }
  static void find_all(const std::shared_ptr<State>& state, std::string_view path, const std::string& within,
                       std::vector<std::pair<Place, std::string>>& found) {
    for (const auto& [name, child] : state->children) {
      if (!path.starts_with(name)) continue;
      if (path.size() == name.size())
        found.emplace_back(Place{state, child}, route(name, within));
      else if (path[name.size()] == '.')
        find_all(present(child), path.substr(name.size() + 1), route(name, within), found);
    }
  }
  void require_new_names(const std::string& prefix, const std::string& within, std::map<std::string, std::string>& known) const {
    for (const auto& [name, child] : children) {
      const auto way = route(name, within);
      const auto [before, fresh] = known.emplace(prefix + name, way);
      if (!fresh) fail_as_ambiguous(prefix + name, before->second, way);
      present(child)->require_new_names(prefix + name + '.', way, known);
    }
  }
};

}  // namespace clnet::nn
