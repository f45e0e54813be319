#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "clnet/error.h"
#include "clnet/nn.h"
#include "lib/graph/slot.h"

namespace clnet::nn {

struct Module::State {
  NamedParameters parameters, buffers;
  std::vector<std::pair<std::string, std::shared_ptr<State>>> children;
  bool training = true;

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
    for (const auto& [name, child] : children) child->visit(prefix + name + '.', see);
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
      for (const auto& [name, child] : state->children) open.push_back(child.get());
    }
    return false;
  }

  /// This and all within it; what has several names, several times.
  template <class See>
  void each(const See& see) {
    see(*this);
    for (auto& [name, child] : children) child->each(see);
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

Tensor Module::operator()(const Tensor& x) {
  auto y = forward(x);
  if (tracing) tracing->push_back({state_.get(), kind(), y.shape()});
  return y;
}

NamedParameters Module::parameters() const { return state_->slots(false); }
NamedParameters Module::buffers() const { return state_->slots(true); }

io::StateDict Module::state() const {
  io::StateDict result;
  state_->visit("", [&](const auto& name, const auto& parameter, bool) { result.emplace_back(name, parameter.value()); });
  return result;
}

void Module::load_state(const io::StateDict& state) {
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
  std::vector<Change> changes;
  std::unordered_map<const Slot*, std::size_t> change_of;
  state_->visit("", [&](const auto& name, const auto& parameter, bool) {
    const auto found = given.find(name);
    if (found == given.end()) {
      faults.push_back(fmt::format("{} is missing", name));
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
  for (const auto& [name, tensor] : given) faults.push_back(fmt::format("{} is not in the model", name));
  if (!faults.empty()) throw Error(fmt::format("the weights do not fit the model: {}", fmt::join(faults, "; ")));
  for (auto& change : changes) change.parameter.set(change.value);
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
    for (const auto& [own, child] : state.children) name_all(*child, name.empty() ? own : name + '.' + own);
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
    eval();  // a forward pass must not touch running statistics
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

void Sequential::append(std::function<Tensor(const Tensor&)> function) { steps_->push_back(std::move(function)); }

void Sequential::append_module(std::shared_ptr<Module> layer) {
  add(std::to_string(steps_->size()), *layer);
  steps_->push_back([layer = std::move(layer)](const Tensor& x) { return (*layer)(x); });
}

Tensor Sequential::forward(const Tensor& x) {
  Tensor y = x;
  for (const auto& step : *steps_) y = step(y);
  return y;
}

}  // namespace clnet::nn
