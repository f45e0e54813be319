#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "clnet/device.h"
#include "clnet/error.h"
#include "clnet/nn.h"
#include "lib/graph/capture.h"
#include "lib/graph/scope.h"
#include "lib/graph/slot.h"
#include "lib/nn/cloning.h"

namespace clnet::nn {

struct Module::State {
  enum class Kind : std::uint8_t { parameter, buffer, unsaved };

  NamedParameters parameters, buffers, unsaved;
  std::vector<std::pair<std::string, std::shared_ptr<State>>> children;
  bool training = true;
  std::string known_as;                       ///< the name under which it was added first
  std::vector<std::weak_ptr<State>> parents;  ///< whose child it is
  /// What replace() has put here: its state, its call, and itself. A handle of the child knows this state only.
  std::shared_ptr<State> successor;
  std::function<Tensor(const Tensor&)> successor_call;
  std::function<Module*()> successor_layer;

  /// In a function that compile() runs, its graph holds for the modes that it finds, and each call leaves those that it sets.
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

  /// What stands for this state now.
  static const std::shared_ptr<State>& present(const std::shared_ptr<State>& state) {
    const auto* at = &state;
    while ((*at)->successor) at = &(*at)->successor;
    return *at;
  }

  /// The same; in a function that compile() runs, its graph holds as long as that does.
  static const std::shared_ptr<State>& noted_present(const std::shared_ptr<State>& state) {
    const auto& found = present(state);
    if (auto* capture = capturing()) capture->conditions.emplace_back([state, was = found] { return present(state) == was; });
    return found;
  }

  /// The copy that belongs to the clone that is being made, or the state itself where none is.
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
      copy->children.back().second->parents.push_back(copy);
    }
    copy->training = state->training;
    copy->known_as = state->known_as;
    copy->successor = copy_of(state->successor);
    copy->successor_call = state->successor_call;
    copy->successor_layer = state->successor_layer;
    return copy;
  }

  bool is_part() const {
    return std::any_of(parents.begin(), parents.end(), [](const auto& parent) { return !parent.expired(); });
  }

  /// Is a child of `parent` from now on.
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

  void require_free(const std::string& name) const {
    if (successor) throw Error(fmt::format("module: '{}' has been replaced, and cannot get a '{}'", known_as, name));
    if (name.empty() || name.find('.') != std::string::npos)
      throw Error(fmt::format("module: '{}' is no name: it is empty or has a dot in it", name));
    const auto taken = [&](const auto& list) {
      return std::any_of(list.begin(), list.end(), [&](const auto& entry) { return entry.first == name; });
    };
    if (taken(parameters) || taken(buffers) || taken(unsaved) || taken(children))
      throw Error(fmt::format("module: the name '{}' is used twice", name));
  }

  /// Every parameter and buffer in PyTorch's order, with its full name.
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
      if ((kind != Kind::parameter) == buffers_wanted && seen.insert(parameter.slot().get()).second)
        result.emplace_back(name, parameter);
    });
    return result;
  }

  /// Whether it is the other one or leads to it.
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

  /// This and all within it; what has several names, several times.
  template <class See>
  static void each(const std::shared_ptr<State>& state, const See& see) {
    see(state);
    for (const auto& [name, child] : state->children) each(noted_present(child), see);
  }

  /// Where a path of names leads: the child that was added there, and whose child it is. Nothing where there is none.
  struct Place {
    std::shared_ptr<State> parent, child;
  };
  static Place find(std::shared_ptr<State> state, std::string_view path) {
    for (;;) {
      const auto dot = path.find('.');
      const auto first = path.substr(0, dot);
      const auto& all = state->children;
      const auto found = std::find_if(all.begin(), all.end(), [&](const auto& entry) { return entry.first == first; });
      if (found == all.end()) return {};
      if (dot == std::string_view::npos) return {state, found->second};
      state = present(found->second);
      path = path.substr(dot + 1);
    }
  }
};

namespace {

/// What summary() collects while it runs a model without computing anything.
struct Line {
  const void* module;
  std::string kind;
  Shape output;
};
thread_local std::vector<Line>* tracing = nullptr;

bool equal_values(const Tensor& a, const Tensor& b) {
  if (a.same(b)) return true;
  std::vector<std::byte> left(static_cast<std::size_t>(a.spec().bytes())), right(left.size());
  a.to_bytes(left.data(), left.size());
  b.to_bytes(right.data(), right.size());
  return left == right;
}

}  // namespace

Module::Module() : state_(std::make_shared<State>()) {}
Module::Module(const Module& other) : state_(State::copy_of(other.state_)) {}

Tensor Module::forward(const Tensor&) { throw Unsupported(fmt::format("{}: has no forward() of one tensor", kind())); }

Module& Module::operator=(const Module& other) {
  if (this == &other || state_ == other.state_) return *this;
  // A module that is assigned assigns its members one by one, each from the other module's part of the same name.
  if (state_->is_part() && !(other.state_->is_part() && other.state_->known_as == state_->known_as))
    throw Error(fmt::format("module: '{}' is part of a module, which would go on with the old one; use replace()", known_as()));
  state_ = other.state_;
  return *this;
}

Tensor Module::operator()(const Tensor& x) {
  if (present() != state_) return state_->successor_call(x);
  return in_scope([&] {
    auto y = forward(x);
    if (tracing) tracing->push_back({state_.get(), kind(), y.shape()});
    return y;
  });
}

const std::string& Module::known_as() const { return state_->known_as; }
const std::shared_ptr<Module::State>& Module::present() const { return State::noted_present(state_); }

void Module::place(Error& error) {
  if (const auto where = to_string(scope_now()); !where.empty()) error.place(where);
}

Module* Module::replacement() const { return present() != state_ ? state_->successor_layer() : nullptr; }

void Module::fail_as_replaced(const Module& other) const {
  const NamedScope scope(known_as());
  Error error(fmt::format("{} was replaced by {}, but is called with several inputs; these need a layer of its class", kind(),
                          other.kind()));
  place(error);
  throw error;
}

Parameter Module::parameter(const std::string& name) const {
  const Parameter* found = nullptr;
  present()->visit("", [&](const auto& full_name, const auto& parameter, auto) {
    if (full_name == name) found = &parameter;
  });
  if (!found) throw Error(fmt::format("module: there is no parameter or buffer '{}'", name));
  return *found;
}

std::vector<std::string> Module::children() const {
  std::vector<std::string> result;
  for (const auto& [name, child] : present()->children) result.push_back(name);
  return result;
}

Module Module::child(const std::string& name) const {
  const auto place = State::find(present(), name);
  if (!place.child) throw Error(fmt::format("module: there is no child '{}'", name));
  return Module(place.child);
}

namespace {

/// A function that has replaced a layer.
struct Function : Module {
  std::function<Tensor(const Tensor&)> call;

  explicit Function(std::function<Tensor(const Tensor&)> f) : call(std::move(f)) {}
  Tensor forward(const Tensor& x) override { return call(x); }
  std::string kind() const override { return "function"; }
};

}  // namespace

void Module::replace(const std::string& name, const Step& step) {
  if (!step.module_) return replace(name, Function(step.call_));
  const auto [parent, child] = State::find(present(), name);
  if (!child) throw Error(fmt::format("module: there is no child '{}' to replace", name));
  const auto layer = step.module_()->state_;
  if (layer != child && (layer->contains(*present()) || layer->contains(*child)))
    throw Error(fmt::format("module: what is to replace '{}' is the module itself or contains it", name));
  if (child->successor) child->successor->leave(parent);
  if (layer == child) {
    child->successor = nullptr;
    child->successor_call = nullptr;
    child->successor_layer = nullptr;
    return;
  }
  layer->join(parent, child->known_as);
  child->successor = layer;
  child->successor_call = step.call_;
  child->successor_layer = step.module_;
}

void Module::to(const Device& device) {
  present()->visit(
      "", [&](const auto&, const auto& parameter, auto) { Parameter(parameter).set(copy_to(parameter.value(), device)); });
}

NamedParameters Module::parameters() const { return present()->slots(false); }
NamedParameters Module::buffers() const { return present()->slots(true); }

io::StateDict Module::state() const {
  io::StateDict result;
  present()->visit("", [&](const auto& name, const auto& parameter, State::Kind kind) {
    if (kind != State::Kind::unsaved) result.emplace_back(name, parameter.value());
  });
  return result;
}

void Module::load_state(const io::StateDict& state) { load_state(state, {}); }

LoadResult Module::load_state(const io::StateDict& state, const LoadOptions& options) {
  std::map<std::string, Tensor> given;
  std::vector<std::string> faults;
  for (const auto& [name, tensor] : state) {
    if (!tensor.defined()) faults.push_back(fmt::format("{} is undefined", name));
    if (!given.emplace(name, tensor).second) faults.push_back(fmt::format("{} is given twice", name));
  }
  struct Change {
    std::string name;
    Parameter parameter;
    Tensor value;
  };
  LoadResult left_out;
  std::vector<Change> changes;
  std::unordered_map<const Slot*, std::size_t> change_of;
  present()->visit("", [&](const auto& name, const auto& parameter, State::Kind kind) {
    if (kind == State::Kind::unsaved) return;
    const auto found = given.find(name);
    if (found == given.end()) {
      left_out.missing.push_back(name);
      return;
    }
    const auto tensor = found->second;
    given.erase(found);
    if (!tensor.defined()) return;
    const auto &have = tensor.spec(), &want = parameter.value().spec();
    if (have != want && options.skip_unfitting) {
      left_out.unfitting.push_back(name);
      return;
    }
    if (have != want) {
      faults.push_back(fmt::format("{} is {}, the model has {}", name, to_string(have), to_string(want)));
      return;
    }
    const auto [before, first] = change_of.try_emplace(parameter.slot().get(), changes.size());
    if (first)
      changes.push_back({name, parameter, tensor});
    else if (const auto& other = changes[before->second]; !equal_values(other.value, tensor))
      faults.push_back(fmt::format("{} and {} are one in the model, but differ", other.name, name));
  });
  for (const auto& [name, tensor] : given) left_out.unknown.push_back(name);
  if (options.strict) {
    for (const auto& name : left_out.missing) faults.push_back(fmt::format("{} is missing", name));
    for (const auto& name : left_out.unknown) faults.push_back(fmt::format("{} is not in the model", name));
  }
  if (!faults.empty()) throw Error(fmt::format("the weights do not fit the model: {}", fmt::join(faults, "; ")));
  for (auto& change : changes) change.parameter.set(change.value);
  return left_out;
}

std::int64_t Module::parameter_count() const {
  std::int64_t count = 0;
  for (const auto& [name, parameter] : parameters()) count += parameter.value().numel();
  return count;
}

void Module::train(bool on) {
  State::each(present(), [&](const auto& state) { State::set_mode(state, on); });
}
bool Module::training() const { return State::mode(present()); }

KeptModes::KeptModes(const Module& module) {
  Module::State::each(module.present(), [&](const auto& state) { modes_.emplace_back(state, Module::State::mode(state)); });
}
KeptModes::~KeptModes() {
  for (const auto& [state, on] : modes_) Module::State::set_mode(state, on);
}

void Module::freeze(bool on) {
  for (auto& [name, parameter] : parameters()) parameter.freeze(on);
}

Parameter Module::add_parameter(const std::string& name, const Tensor& value) { return add_parameter(name, Parameter(value)); }
Parameter Module::add_buffer(const std::string& name, const Tensor& value, bool saved) {
  if (saved) return add_buffer(name, Parameter(value));
  state_->require_free(name);
  return state_->unsaved.emplace_back(name, Parameter(value)).second;
}

Parameter Module::add_parameter(const std::string& name, const Parameter& shared) {
  state_->require_free(name);
  return state_->parameters.emplace_back(name, shared).second;
}

Parameter Module::add_buffer(const std::string& name, const Parameter& shared) {
  state_->require_free(name);
  return state_->buffers.emplace_back(name, shared).second;
}

void Module::add(const std::string& name, const Module& child) {
  state_->require_free(name);
  if (child.state_->contains(*state_)) throw Error(fmt::format("module: '{}' is the module itself or contains it", name));
  child.state_->join(state_, name);
  state_->children.emplace_back(name, child.state_);
}

void Module::require_held(const Clones& clones) {
  const auto state_of = [](const std::shared_ptr<void>& state) { return static_cast<const State*>(state.get()); };
  // How often models refer to a state or a slot, beside the handles of modules and parameters.
  std::unordered_map<const State*, long> states;
  std::unordered_map<const Slot*, long> slots;
  for (const auto& [key, pair] : clones.states) {
    for (const auto* state : {state_of(pair.first), state_of(pair.second)}) {
      for (const auto& [name, child] : state->children) ++states[child.get()];
      if (state->successor) ++states[state->successor.get()];
      for (const auto* list : {&state->parameters, &state->buffers, &state->unsaved})
        for (const auto& [name, parameter] : *list) ++slots[parameter.slot().get()];
    }
  }
  const auto has_handle = [&](const std::shared_ptr<void>& state) { return state.use_count() > 1 + states[state_of(state)]; };
  for (const auto& [key, pair] : clones.states) {
    if (!has_handle(pair.first) || has_handle(pair.second)) continue;
    const auto* state = state_of(pair.second);
    for (const auto* list : {&state->parameters, &state->buffers, &state->unsaved})
      for (const auto& [name, parameter] : *list)
        if (parameter.slot().use_count() == 1 + slots[parameter.slot().get()])
          throw Error(
              fmt::format("clone: child '{}' is held by pointer, and the copy would not use its own '{}'; a module that "
                          "is cloned holds its layers themselves",
                          state->known_as, name));
  }
}

std::string Module::summary(const Shape& input, Dtype dtype) {
  std::map<const void*, std::string> names;
  std::map<const void*, std::int64_t> counts;
  std::map<const void*, bool> inner;
  const std::function<void(const State&, const std::string&)> name_all = [&](const State& state, const std::string& name) {
    if (!names.emplace(&state, name).second) return;  // it has another name, too
    inner[&state] = !state.children.empty();
    for (const auto& [own, parameter] : state.parameters) counts[&state] += parameter.value().numel();
    for (const auto& [own, child] : state.children) name_all(*State::present(child), name.empty() ? own : name + '.' + own);
  };
  name_all(*present(), "");

  std::vector<Line> lines;
  {
    const KeptModes kept(*this);
    struct Restore {
      std::vector<Line>* outer;
      ~Restore() { tracing = outer; }
    } restore{tracing};
    train(false);  // a forward pass must not touch running statistics
    tracing = &lines;
    (*this)(zeros(input, dtype));
  }

  std::string text = fmt::format("{:<24} {:<52} {:<22} {:>12}\n", "name", "layer", "output", "parameters");
  for (const auto& line : lines)
    if (!inner[line.module])
      text += fmt::format("{:<24} {:<52} {:<22} {:>12}\n", names[line.module], line.kind, to_string(line.output),
                          counts[line.module]);
  return text + fmt::format("{} parameters\n", parameter_count());
}

}  // namespace clnet::nn
