#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "clnet/device.h"
#include "clnet/error.h"
#include "clnet/nn.h"
#include "lib/graph/scope.h"
#include "lib/graph/slot.h"
#include "lib/nn/cloning.h"

namespace clnet::nn {

struct Module::State {
  NamedParameters parameters, buffers;
  std::vector<std::pair<std::string, std::shared_ptr<State>>> children;
  bool training = true;
  std::string known_as;  ///< the name under which it was added first
  /// What replace() has put here: its state, and its call.
  std::shared_ptr<State> successor;
  std::function<Tensor(const Tensor&)> successor_call;

  /// What stands for this state now.
  static const std::shared_ptr<State>& present(const std::shared_ptr<State>& state) {
    const auto* at = &state;
    while ((*at)->successor) at = &(*at)->successor;
    return *at;
  }

  /// The copy that belongs to the clone that is being made, or the state itself where none is.
  static std::shared_ptr<State> copy_of(const std::shared_ptr<State>& state) {
    auto* cloning = cloning_now();
    if (!cloning || !state) return state;
    auto& known = cloning->states[state.get()];
    if (known) return std::static_pointer_cast<State>(known);
    const auto copy = std::make_shared<State>();
    known = copy;
    // Parameters copy themselves.
    copy->parameters = state->parameters;
    copy->buffers = state->buffers;
    for (const auto& [name, child] : state->children) copy->children.emplace_back(name, copy_of(child));
    copy->training = state->training;
    copy->known_as = state->known_as;
    copy->successor = copy_of(state->successor);
    copy->successor_call = state->successor_call;
    return copy;
  }

  void require_free(const std::string& name) const {
    if (name.empty() || name.find('.') != std::string::npos)
      throw Error(fmt::format("module: '{}' is no name: it is empty or has a dot in it", name));
    const auto taken = [&](const auto& list) {
      return std::any_of(list.begin(), list.end(), [&](const auto& entry) { return entry.first == name; });
    };
    if (taken(parameters) || taken(buffers) || taken(children))
      throw Error(fmt::format("module: the name '{}' is used twice", name));
  }

  /// Every parameter and buffer in PyTorch's order, with its full name and whether it is a buffer.
  void visit(const std::string& prefix, const std::function<void(const std::string&, const Parameter&, bool)>& see) const {
    for (const auto& [name, parameter] : parameters) see(prefix + name, parameter, false);
    for (const auto& [name, buffer] : buffers) see(prefix + name, buffer, true);
    for (const auto& [name, child] : children) present(child)->visit(prefix + name + '.', see);
  }

  /// Parameters or buffers, each under its first name.
  NamedParameters slots(bool buffers_wanted) const {
    NamedParameters result;
    std::unordered_set<const Slot*> seen;
    visit("", [&](const auto& name, const auto& parameter, bool buffer) {
      if (buffer == buffers_wanted && seen.insert(parameter.slot().get()).second) result.emplace_back(name, parameter);
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
  void each(const See& see) {
    see(*this);
    for (auto& [name, child] : children) present(child)->each(see);
  }

  /// The child at the end of a path of names; nothing where there is none.
  static std::shared_ptr<State> find(std::shared_ptr<State> state, std::string_view path) {
    while (state) {
      const auto dot = path.find('.');
      const auto first = path.substr(0, dot);
      const auto& all = state->children;
      const auto found = std::find_if(all.begin(), all.end(), [&](const auto& entry) { return entry.first == first; });
      if (found == all.end()) return nullptr;
      state = present(found->second);
      if (dot == std::string_view::npos) return state;
      path = path.substr(dot + 1);
    }
    return nullptr;
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

Tensor Module::operator()(const Tensor& x) {
  const auto& present = State::present(state_);
  if (present != state_) return state_->successor_call(x);
  return called([&] {
    auto y = forward(x);
    if (tracing) tracing->push_back({state_.get(), kind(), y.shape()});
    return y;
  });
}

const std::string& Module::known_as() const { return state_->known_as; }

void Module::place(Error& error) {
  if (const auto where = to_string(scope_now()); !where.empty()) error.place(where);
}

Parameter Module::parameter(const std::string& name) const {
  const Parameter* found = nullptr;
  state_->visit("", [&](const auto& full_name, const auto& parameter, bool) {
    if (full_name == name) found = &parameter;
  });
  if (!found) throw Error(fmt::format("module: there is no parameter or buffer '{}'", name));
  return *found;
}

std::vector<std::string> Module::children() const {
  std::vector<std::string> result;
  for (const auto& [name, child] : State::present(state_)->children) result.push_back(name);
  return result;
}

Module Module::child(const std::string& name) const {
  const auto found = State::find(State::present(state_), name);
  if (!found) throw Error(fmt::format("module: there is no child '{}'", name));
  return Module(found);
}

void Module::replace_child(const std::string& name, const Module& layer, std::function<Tensor(const Tensor&)> forward) {
  const auto found = State::find(State::present(state_), name);
  if (!found) throw Error(fmt::format("module: there is no child '{}' to replace", name));
  const auto& present = State::present(layer.state_);
  if (present == found) return;
  if (present->contains(*state_) || present->contains(*found))
    throw Error(fmt::format("module: what is to replace '{}' is the module itself or contains it", name));
  if (present->known_as.empty()) present->known_as = found->known_as;
  found->successor_call = std::move(forward);
  found->successor = present;
}

void Module::to(const Device& device) {
  state_->visit("",
                [&](const auto&, const auto& parameter, bool) { Parameter(parameter).set(copy_to(parameter.value(), device)); });
}

NamedParameters Module::parameters() const { return state_->slots(false); }
NamedParameters Module::buffers() const { return state_->slots(true); }

io::StateDict Module::state() const {
  io::StateDict result;
  state_->visit("", [&](const auto& name, const auto& parameter, bool) { result.emplace_back(name, parameter.value()); });
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
  state_->visit("", [&](const auto& name, const auto& parameter, bool) {
    const auto found = given.find(name);
    if (found == given.end()) {
      left_out.missing.push_back(name);
      return;
    }
    const auto tensor = found->second;
    given.erase(found);
    if (!tensor.defined()) return;
    const auto &have = tensor.spec(), &want = parameter.value().spec();
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
  state_->each([&](State& state) { state.training = on; });
}
bool Module::training() const { return state_->training; }

void Module::freeze(bool on) {
  for (auto& [name, parameter] : parameters()) parameter.freeze(on);
}

Parameter Module::add_parameter(const std::string& name, const Tensor& value) { return add_parameter(name, Parameter(value)); }
Parameter Module::add_buffer(const std::string& name, const Tensor& value) { return add_buffer(name, Parameter(value)); }

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
  if (child.state_->known_as.empty()) child.state_->known_as = name;
  state_->children.emplace_back(name, child.state_);
}

std::string Module::summary(const Shape& input) {
  std::map<const void*, std::string> names;
  std::map<const void*, std::int64_t> counts;
  std::map<const void*, bool> inner;
  const std::function<void(const State&, const std::string&)> name_all = [&](const State& state, const std::string& name) {
    if (!names.emplace(&state, name).second) return;  // it has another name, too
    inner[&state] = !state.children.empty();
    for (const auto& [own, parameter] : state.parameters) counts[&state] += parameter.value().numel();
    for (const auto& [own, child] : state.children) name_all(*State::present(child), name.empty() ? own : name + '.' + own);
  };
  name_all(*state_, "");

  std::vector<Line> lines;
  {
    struct Restore {
      std::vector<std::pair<State*, bool>> modes;  ///< a part may be frozen
      std::vector<Line>* outer;
      ~Restore() {
        tracing = outer;
        for (const auto& [state, on] : modes) state->training = on;
      }
    } restore{{}, tracing};
    state_->each([&](State& state) { restore.modes.emplace_back(&state, state.training); });
    train(false);  // a forward pass must not touch running statistics
    tracing = &lines;
    (*this)(zeros(input));
  }

  std::string text = fmt::format("{:<24} {:<52} {:<22} {:>12}\n", "name", "layer", "output", "parameters");
  for (const auto& line : lines)
    if (!inner[line.module])
      text += fmt::format("{:<24} {:<52} {:<22} {:>12}\n", names[line.module], line.kind, to_string(line.output),
                          counts[line.module]);
  return text + fmt::format("{} parameters\n", parameter_count());
}

namespace {

/// A model that is only known by pointer.
struct Pointed {
  std::shared_ptr<Module> model;

  explicit Pointed(std::shared_ptr<Module> m) : model(std::move(m)) {}
  Pointed(const Pointed& other) : model(other.model) {
    if (cloning_now()) throw Error(fmt::format("clone: a {} that is held by pointer has no copy", model->kind()));
  }
  Tensor operator()(const Tensor& x) const { return (*model)(x); }
};

}  // namespace

Step::Step(Tensor (*function)(const Tensor&)) : call_(function) {
  if (!function) throw Error("Sequential: a function is null");
}

Step::Step(std::shared_ptr<Module> model) : call_(Pointed(model)), module_(std::move(model)) {
  if (!module_) throw Error("Sequential: a model's pointer is null");
}

Sequential::Sequential(const Sequential& other)
    : Module(other), steps_(cloning_now() ? std::make_shared<Steps>(*other.steps_) : other.steps_) {}

Sequential::Sequential(std::initializer_list<Step> steps) {
  if (steps.size() == 1)
    if (const auto* only = dynamic_cast<const Sequential*>(steps.begin()->module_.get())) {
      *this = *only;
      return;
    }
  for (const auto& step : steps) append(step);
}

void Sequential::append(const Step& step) {
  if (step.module_) add(std::to_string(steps_->size()), *step.module_);
  steps_->push_back(step.call_);
}

Tensor Sequential::forward(const Tensor& x) {
  Tensor y = x;
  for (const auto& step : *steps_) y = step(y);
  return y;
}

}  // namespace clnet::nn
