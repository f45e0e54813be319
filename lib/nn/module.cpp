#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "clnet/error.h"
#include "clnet/nn.h"
#include "lib/graph/node.h"

namespace clnet::nn {

struct Parameter::Slot {
  Tensor value;
  int waiting = 0;  ///< values set one upon the other without any of them being computed
};

Parameter::Parameter(Tensor value) : slot_(std::make_shared<Slot>(Slot{std::move(value)})) {}

const Tensor& Parameter::value() const { return slot_->value; }

bool Parameter::pending() const { return slot_->value.node()->op != nullptr; }

void Parameter::set(Tensor value) {
  const auto &now = slot_->value.spec(), &next = value.spec();
  if (now.shape != next.shape)
    throw ShapeError(fmt::format("a parameter of {} cannot be set to {}", to_string(now), to_string(next)));
  if (now.dtype != next.dtype)
    throw DtypeError(fmt::format("a parameter of {} cannot be set to {}", to_string(now), to_string(next)));
  slot_->value = std::move(value);
  slot_->waiting = pending() ? slot_->waiting + 1 : 0;
  // Forward passes without a step in between chain running statistics; the chain would hold every batch of the past.
  constexpr int longest_chain = 8;
  if (slot_->waiting > longest_chain) {
    slot_->value = slot_->value.detach();
    slot_->waiting = 0;
  }
}

struct Module::State {
  NamedParameters parameters, buffers;
  std::vector<std::pair<std::string, std::shared_ptr<State>>> children;
  bool training = true;

  void require_free(const std::string& name) const {
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

  void set_training(bool on) {
    training = on;
    for (auto& [name, child] : children) child->set_training(on);
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

}  // namespace

Module::Module() : state_(std::make_shared<State>()) {}

Tensor Module::operator()(const Tensor& x) {
  auto y = forward(x);
  if (tracing) tracing->push_back({state_.get(), kind(), y.shape()});
  return y;
}

NamedParameters Module::parameters() const {
  NamedParameters result;
  state_->visit("", [&](const auto& name, const auto& parameter, bool buffer) {
    if (!buffer) result.emplace_back(name, parameter);
  });
  return result;
}

NamedParameters Module::buffers() const {
  NamedParameters result;
  state_->visit("", [&](const auto& name, const auto& parameter, bool buffer) {
    if (buffer) result.emplace_back(name, parameter);
  });
  return result;
}

io::StateDict Module::state() const {
  io::StateDict result;
  state_->visit("", [&](const auto& name, const auto& parameter, bool) { result.emplace_back(name, parameter.value()); });
  return result;
}

void Module::load_state(const io::StateDict& state) {
  std::map<std::string, Tensor> given(state.begin(), state.end());
  std::vector<std::string> faults;
  std::vector<std::pair<Parameter, Tensor>> changes;
  state_->visit("", [&](const auto& name, const auto& parameter, bool) {
    const auto found = given.find(name);
    if (found == given.end()) {
      faults.push_back(fmt::format("{} is missing", name));
      return;
    }
    const auto &have = found->second.spec(), &want = parameter.value().spec();
    if (have != want) faults.push_back(fmt::format("{} is {}, the model has {}", name, to_string(have), to_string(want)));
    changes.emplace_back(parameter, found->second);
    given.erase(found);
  });
  for (const auto& [name, tensor] : given) faults.push_back(fmt::format("{} is not in the model", name));
  if (!faults.empty()) throw Error(fmt::format("the weights do not fit the model: {}", fmt::join(faults, "; ")));
  for (auto& [parameter, tensor] : changes) parameter.set(tensor);
}

std::int64_t Module::parameter_count() const {
  std::int64_t count = 0;
  for (const auto& [name, parameter] : parameters()) count += parameter.value().numel();
  return count;
}

void Module::train(bool on) { state_->set_training(on); }
bool Module::training() const { return state_->training; }

Parameter Module::add_parameter(const std::string& name, Tensor value) {
  state_->require_free(name);
  return state_->parameters.emplace_back(name, Parameter(std::move(value))).second;
}

Parameter Module::add_buffer(const std::string& name, Tensor value) {
  state_->require_free(name);
  return state_->buffers.emplace_back(name, Parameter(std::move(value))).second;
}

void Module::add(const std::string& name, const Module& child) {
  state_->require_free(name);
  state_->children.emplace_back(name, child.state_);
}

std::string Module::summary(const Shape& input) {
  std::map<const void*, std::string> names;
  std::map<const void*, std::int64_t> counts;
  std::map<const void*, bool> inner;
  const std::function<void(const State&, const std::string&)> name_all = [&](const State& state, const std::string& name) {
    names[&state] = name;
    inner[&state] = !state.children.empty();
    for (const auto& [own, parameter] : state.parameters) counts[&state] += parameter.value().numel();
    for (const auto& [own, child] : state.children) name_all(*child, name.empty() ? own : name + '.' + own);
  };
  name_all(*state_, "");

  std::vector<Line> lines;
  {
    struct Restore {
      Module& module;
      bool training;
      std::vector<Line>* outer;
      ~Restore() {
        tracing = outer;
        module.train(training);
      }
    } restore{*this, training(), tracing};
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

void Sequential::append(std::function<Tensor(const Tensor&)> function) { steps_.push_back(std::move(function)); }

void Sequential::append_module(std::shared_ptr<Module> layer) {
  add(std::to_string(steps_.size()), *layer);
  steps_.push_back([layer = std::move(layer)](const Tensor& x) { return (*layer)(x); });
}

Tensor Sequential::forward(const Tensor& x) {
  Tensor y = x;
  for (const auto& step : steps_) y = step(y);
  return y;
}

}  // namespace clnet::nn
