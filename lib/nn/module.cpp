#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "clnet/device.h"
#include "clnet/error.h"
#include "clnet/nn.h"
#include "lib/base/pattern.h"
#include "lib/base/readable.h"
#include "lib/graph/scope.h"
#include "lib/nn/module_state.h"
#include "lib/nn/module_text.h"
#include "lib/nn/parameter.h"

namespace clnet::nn {

namespace {

bool equal_values(const Tensor& a, const Tensor& b) {
  if (a.same(b)) return true;
  std::vector<std::byte> left(static_cast<std::size_t>(a.spec().bytes())), right(left.size());
  a.to_bytes(left.data(), left.size());
  b.to_bytes(right.data(), right.size());
  return left == right;
}

constexpr std::size_t most_told = 20;  // faults in one line

/// The known names, for the error of an unknown one.
std::string instead(const std::vector<std::string>& names) {
  constexpr std::size_t most = 8;
  if (names.empty()) return "; there are none";
  const std::vector<std::string> first(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), most)));
  return fmt::format("; there {} {}{}", names.size() == 1 ? "is" : "are", fmt::join(first, ", "),
                     names.size() > most ? fmt::format(" and {} more", names.size() - most) : "");
}

}  // namespace

Module::Module() : state_(std::make_shared<State>()), counted_(!here().uncounted) {
  if (counted_) ++state_->handles;
}
Module::Module(const Module& other)
    : state_(other.state_->stand_in && here().state_of_copies ? std::static_pointer_cast<State>(here().state_of_copies)
                                                              : State::copy_of(other.state_)),
      counted_(!here().uncounted) {
  if (counted_) ++state_->handles;
}
Module::~Module() {
  if (counted_) --state_->handles;
}

void Module::set_state(std::shared_ptr<State> state) {
  if (counted_) {
    --state_->handles;
    ++state->handles;
  }
  state_ = std::move(state);
}

Tensor Module::forward(const Tensor&) {
  throw Unsupported(
      fmt::format("{}: has no forward() of one tensor (Tensor forward(const Tensor& x) override)", class_name(*this)));
}

Module& Module::operator=(const Module& other) {
  if (this == &other || state_ == other.state_) return *this;
  // Assignment of a whole module assigns its members one by one, each from the other module's part of the same name.
  if (state_->is_part() && !(other.state_->is_part() && other.state_->known_as == state_->known_as))
    throw Error(fmt::format("module: '{}' is part of a module, which would go on with the old one; use replace()", known_as()));
  set_state(other.state_);
  return *this;
}

Tensor Module::operator()(const Tensor& x) const { return called_with_one(x); }

Tensor Module::called_with_one(const Tensor& x) const {
  if (present() != state_) {
    auto y = state_->successor_call(x);
    finish(x, y);
    return y;
  }
  return in_scope([&] {
    auto y = const_cast<Module*>(this)->forward(x);
    finish(x, y);
    return y;
  });
}

const std::string& Module::known_as() const { return state_->known_as; }
std::string Module::scope_name() const {
  auto name = known_as();
  for (auto parent = state_->first_parent(); parent && parent->container && !Call::lies_in(Call::current(), parent.get());
       parent = parent->first_parent())
    if (!parent->known_as.empty()) name = parent->known_as + '.' + name;
  return name;
}
const std::shared_ptr<Module::State>& Module::present() const { return State::noted_present(state_); }

void Module::place(Error& error) {
  if (const auto where = to_string(scope_now()); !where.empty()) error.place(where);
}

Module* Module::replacement() const {
  if (present() == state_) return nullptr;
  auto* layer = state_->successor_layer();
  const auto* handle = dynamic_cast<Child*>(layer);
  return handle && handle->layer_ ? handle->layer_.get() : layer;
}

void Module::fail_as_replaced(const Module& other) const {
  const NamedScope scope(scope_name());
  Error error(
      fmt::format("{} was replaced by {}, but is called with several inputs or asked for its layers; that needs one of its class",
                  kind(), other.kind()));
  place(error);
  throw error;
}

Parameter Module::parameter(const std::string& name) const {
  const Parameter* found = nullptr;
  present()->visit("", [&](const auto& full_name, const auto& parameter, auto) {
    if (full_name == name) found = &parameter;
  });
  if (found) return *found;
  std::vector<std::string> names;
  present()->visit("", [&](const auto& full_name, const auto&, auto) { names.push_back(full_name); });
  throw Error(fmt::format("module: there is no parameter or buffer '{}'{}", name, instead(names)));
}

std::vector<std::string> Module::children() const {
  std::vector<std::string> result;
  for (const auto& [name, child] : present()->children) result.push_back(name);
  return result;
}

std::shared_ptr<Module::State> Module::part(const std::string& name) const {
  const auto place = State::find(present(), name);
  if (!place.child) throw Error(fmt::format("module: there is no child '{}'{}", name, instead(children())));
  return place.child;
}

Child Module::child(const std::string& name) const { return Child(part(name)); }

bool Module::same(const Module& other) const { return present() == other.present(); }

void Module::replace(const std::string& name, const Step& step) {
  if (!step.module_) return replace(name, Function(step.call_));
  const auto [parent, child] = State::find(present(), name);
  if (!child) throw Error(fmt::format("module: there is no child '{}' to replace{}", name, instead(children())));
  const auto layer = step.module_()->state_;
  if (layer != child && (layer->contains(*present()) || layer->contains(*child)))
    throw Error(fmt::format("module: what is to replace '{}' is the module itself or contains it", name));
  const auto before = std::exchange(child->successor, layer == child ? nullptr : layer);
  if (layer->dotted) child->note_dots();
  try {
    child->require_clear_names();
  } catch (const Error&) {
    child->successor = before;
    throw;
  }
  if (before) before->leave(parent);
  if (layer == child) {
    child->successor_call = nullptr;
    child->successor_layer = nullptr;
    return;
  }
  if (layer != before) warn_of_second_name(name, layer);
  layer->join(parent, child->known_as);
  child->successor_call = step.call_;
  child->successor_layer = step.module_;
}

void Module::to(const Device& device) {
  std::vector<Parameter> all;
  present()->visit("", [&](const auto&, const auto& parameter, auto) { all.push_back(parameter); });
  for (auto& [parameter, copy] : copies_on(all, device)) parameter.set(copy);
}

NamedParameters Module::parameters() const { return present()->slots(false); }
NamedParameters Module::buffers() const { return present()->slots(true); }

io::StateDict Module::state_dict() const {
  io::StateDict result;
  present()->visit("", [&](const auto& name, const auto& parameter, State::Kind kind) {
    if (kind != State::Kind::unsaved) result.emplace_back(name, parameter.value());
  });
  return result;
}

void Module::load_state_dict(const io::StateDict& state) { load_state_dict(state, {}); }

LoadResult Module::load_state_dict(const io::StateDict& state, const LoadOptions& options) {
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
    Tensor tensor = found->second;
    given.erase(found);
    if (!tensor.defined()) return;
    const auto want = parameter.value().spec();
    // Rounded by the host, as the device may have no doubles.
    if (tensor.dtype() == Dtype::f64 && want.dtype == Dtype::f32)
      tensor = Tensor::from(tensor.to_vector<float>(), tensor.shape());
    else if (is_floating(tensor.dtype()) && want.dtype == Dtype::f32)
      tensor = cast(tensor, Dtype::f32);
    const auto& have = tensor.spec();
    if (have != want && options.skip_unfitting) {
      left_out.unfitting.push_back(name);
      return;
    }
    if (have != want) {
      faults.push_back(fmt::format("{} is {}, the model has {}", name, to_string(have), to_string(want)));
      return;
    }
    const auto [before, first] = change_of.try_emplace(slot_of(parameter).get(), changes.size());
    if (first)
      changes.push_back({name, parameter, tensor});
    else if (const auto& other = changes[before->second]; !equal_values(other.value, tensor))
      faults.push_back(fmt::format("{} and {} are one in the model, but differ", other.name, name));
  });
  for (const auto& [name, tensor] : given) left_out.unknown.push_back(name);
  if (options.strict) {
    for (const auto& name : left_out.missing) faults.push_back(fmt::format("{} is missing", name));
    for (const auto& name : left_out.unknown) faults.push_back(fmt::format("{} is not in the model", readable(name)));
  }
  if (faults.size() > most_told) {
    faults[most_told - 1] = fmt::format("and {} more", faults.size() - most_told + 1);
    faults.resize(most_told);
  }
  if (!faults.empty()) throw Error(fmt::format("the weights do not fit the model: {}", fmt::join(faults, "; ")));
  std::vector<std::pair<Parameter, Tensor>> values;
  for (const auto& change : changes) values.emplace_back(change.parameter, change.value);
  prepare_to_set(values);
  for (auto& [parameter, tensor] : values) parameter.set(tensor);
  return left_out;
}

std::int64_t Module::parameter_count() const {
  std::int64_t count = 0;
  for (const auto& [name, parameter] : parameters()) count += parameter.value().numel();
  return count;
}

void Module::freeze(bool on) {
  for (auto& [name, parameter] : parameters()) parameter.freeze(on);
}

void Module::freeze_matching(const std::string& pattern, bool on) {
  bool found = false;
  std::vector<std::string> names;
  for (auto& [name, parameter] : parameters()) {
    names.push_back(name);
    if (!matches_pattern(name, pattern)) continue;
    found = true;
    parameter.freeze(on);
  }
  if (!found) throw Error(fmt::format("module: no parameter matches '{}'{}", pattern, instead(names)));
}

Parameter Module::add_parameter(const std::string& name, const Tensor& value) { return add_parameter(name, Parameter(value)); }
Parameter Module::add_buffer(const std::string& name, const Tensor& value, bool saved) {
  if (saved) return add_buffer(name, Parameter(value));
  state_->require_free_of_dots(name);
  const Parameter buffer(value);
  own_slot_of(buffer)->held = true;
  return state_->unsaved.emplace_back(name, buffer).second;
}

Parameter Module::add_parameter(const std::string& name, const Parameter& shared) {
  state_->require_free_of_dots(name);
  own_slot_of(shared)->held = true;
  return state_->parameters.emplace_back(name, shared).second;
}

Parameter Module::add_buffer(const std::string& name, const Parameter& shared) {
  state_->require_free_of_dots(name);
  own_slot_of(shared)->held = true;
  return state_->buffers.emplace_back(name, shared).second;
}

void Module::require_pointer(const std::string& name, const Module* child) {
  if (!child) throw Error(fmt::format("module: the pointer to '{}' is null", name));
}

void Module::add_part(const std::string& name, const Module& child, const detail::LayerClass& layer_class,
                      const std::weak_ptr<Module>& pointer) {
  const auto& part = child.state_;
  state_->require_free(name);
  if (part->contains(*state_)) throw Error(fmt::format("module: '{}' is the module itself or contains it", name));
  warn_of_second_name(name, part);
  part->keep_layer(child, layer_class, pointer);
  part->join(state_, name);
  state_->children.emplace_back(name, part);
  if (part->dotted || name.find('.') != std::string::npos) state_->note_dots();
  try {
    state_->require_clear_names();
  } catch (const Error&) {
    state_->children.pop_back();
    part->leave(state_);
    throw;
  }
}

}  // namespace clnet::nn
