#include "lib/nn/parameter.h"

#include <fmt/format.h>

#include <unordered_set>

#include "clnet/autograd.h"
#include "clnet/error.h"
#include "clnet/nn.h"
#include "lib/cl/compile_watch.h"
#include "lib/exec/collect/effects.h"
#include "lib/exec/collect/value.h"
#include "lib/exec/collect/work.h"
#include "lib/exec/evaluate.h"
#include "lib/exec/options/options.h"
#include "lib/exec/upload.h"
#include "lib/graph/capture.h"
#include "lib/graph/node.h"
#include "lib/nn/cloning.h"
#include "lib/nn/module_text.h"
#include "lib/nn/reached.h"
#include "lib/ops/hold.h"

namespace clnet::nn {

namespace {

/// The tensor as a leaf of the slot.
Tensor leaf_of(const Slot& slot, const Tensor& tensor) {
  if (auto value = exec::asked_value_of(tensor)) return make_leaf(slot, tensor.spec(), std::move(value));
  auto waiting = ops::hold(tensor);
  node_of(waiting)->slot = slot.id;
  return waiting;
}

void require_same_spec(const Tensor& now, const Tensor& next) {
  if (!next.defined()) throw Error(fmt::format("a parameter of {} cannot be set to an undefined tensor", to_string(now.spec())));
  if (now.shape() != next.shape())
    throw ShapeError(fmt::format("a parameter of {} cannot be set to {}", to_string(now.spec()), to_string(next.spec())));
  if (now.dtype() != next.dtype())
    throw DtypeError(fmt::format("a parameter of {} cannot be set to {}", to_string(now.spec()), to_string(next.spec())));
}

/// Updates by values that are there, all or none: again where another thread has changed a slot meanwhile.
void follow_now(std::span<const Following> all) {
  for (;;) {
    std::vector<Tensor> before, next, leaves;  // what goes is freed without the lock
    for (const auto& [parameter, value, update] : all) {
      before.push_back(uncounted(slot_of(parameter)->now()));
      next.push_back(exec::updated(update, before.back(), value));
    }
    eval(next);
    for (std::size_t i = 0; i < all.size(); ++i) leaves.push_back(leaf_of(*slot_of(all[i].parameter), next[i]));
    std::vector<Slot*> slots;
    for (const auto& each : all) slots.push_back(slot_of(each.parameter).get());
    const SlotsLock lock(std::move(slots));
    bool same = true;
    for (std::size_t i = 0; i < all.size(); ++i) same = same && slot_of(all[i].parameter)->now().same(before[i]);
    if (!same) continue;
    for (std::size_t i = 0; i < all.size(); ++i) slot_of(all[i].parameter)->swap(leaves[i]);
    return;
  }
}

}  // namespace

Parameter::Parameter(const Tensor& value) : slot_(std::make_shared<Slot>()) {
  if (!value.defined()) throw Error("a parameter needs a value: the tensor is undefined");
  auto leaf = leaf_of(*slot_, value);
  slot_->swap(leaf);
  ++slot_->handles;
}

Parameter::Parameter(const Parameter& other) : slot_(other.slot_) {
  if (auto* cloning = cloning_now()) {
    auto& copy = cloning->slots[slot_.get()];
    if (!copy) {
      copy = std::make_shared<Slot>();
      auto leaf = leaf_of(*copy, slot_here(slot_)->now());
      copy->swap(leaf);
      copy->frozen = slot_->frozen.load();
      copy->held = slot_->held.load();
    }
    slot_ = copy;
  }
  ++slot_->handles;
}

Parameter& Parameter::operator=(const Parameter& other) & {
  if (this == &other) return *this;
  ++other.slot_->handles;
  --slot_->handles;
  slot_ = other.slot_;
  return *this;
}

Parameter::~Parameter() { --slot_->handles; }

Tensor Parameter::value() const {
  if (!slot_->held && !slot_->frozen) warn_if_in_forward();
  const auto& slot = slot_here(slot_);
  if (auto* capture = capturing()) return capture->value_of(slot);
  exec::apply_overdue();
  return slot->now();
}

Shape Parameter::shape() const { return slot_->now().shape(); }
Dtype Parameter::dtype() const { return slot_->now().dtype(); }

void require_may_set() {
  if (capturing()) throw Error("compile: the function sets a parameter; follow() does so in each call");
  if (!exec::Options::now().refusal.empty()) throw Error("Parameter::set: called by the update of Parameter::follow");
}

void Parameter::set(const Tensor& value) {
  require_may_set();
  const auto& slot = slot_here(slot_);
  const auto now = slot->now();
  require_same_spec(now, value);
  // A value that waits, as an average that is set in each step, would hold all those before it. One that is there holds none, and
  // takes the place of whatever waited, even of what cannot be computed.
  if (!exec::asked_value_of(value) && !exec::asked_value_of(now)) eval({now});
  exec::drop_overdue(*slot);
  auto leaf = leaf_of(*slot, value);  // what was there is freed without the lock
  const SlotsLock lock({slot.get()});
  slot->swap(leaf);
}

void Parameter::follow(const Tensor& value, std::function<Tensor(const Tensor& now, const Tensor& value)> update) {
  follow_together(std::vector<Following>{{*this, value, std::move(update)}});
}

void follow_together(std::span<const Following> all) {
  std::vector<Following> now;
  for (const auto& following : all) {
    const auto& [parameter, value, update] = following;
    if (!value.defined()) throw Error("a parameter cannot follow an undefined tensor");
    if (!update) throw Error("a parameter cannot follow a tensor without an update");
    // An evaluation under way has collected its effects already: it would compute the value and never change the parameter.
    if (ocl::is_telling()) throw Error("Parameter::follow: called by on_compile()'s function");
    if (!exec::Options::now().refusal.empty()) throw Error("Parameter::follow: called by the update of Parameter::follow");
    const auto effect = [&each = following] {
      return std::make_shared<Effect>(slot_of(each.parameter), output_of(each.value), each.update);
    };
    if (auto* capture = capturing(); capture && (exec::asked_value_of(value) || node_of(value)->order < capture->first)) {
      capture->effects.push_back({value, effect()});
      continue;
    }
    if (node_of(value)->past.load(std::memory_order_relaxed) != Node::Past::none) exec::forget_speculative();
    if (exec::asked_value_of(value))
      now.push_back(following);
    else
      node_of(value)->effects.push_back(effect());
  }
  if (!now.empty()) follow_now(now);
}

void prepare_to_set(std::span<const std::pair<Parameter, Tensor>> changes) {
  require_may_set();
  std::vector<Tensor> waiting;
  for (const auto& [parameter, tensor] : changes)
    if (auto now = parameter.value(); !exec::asked_value_of(tensor) && !exec::asked_value_of(now))
      waiting.push_back(std::move(now));
  if (!waiting.empty()) eval(waiting);
}

std::vector<std::pair<Parameter, Tensor>> copies_on(std::span<const Parameter> parameters, const Device& device) {
  require_may_set();
  std::vector<std::pair<Parameter, Tensor>> copies;
  std::unordered_set<const Slot*> seen;
  for (const auto& parameter : parameters) {
    if (!seen.insert(slot_of(parameter).get()).second) continue;
    const Tensor now = parameter;
    const auto placed = std::dynamic_pointer_cast<exec::DeviceValue>(exec::evaluated(now));
    if (!placed || placed->device != context_of(device)) copies.emplace_back(parameter, exec::copy_now(now, device));
  }
  return copies;
}

void Parameter::freeze(bool on) { slot_->frozen = on; }
bool Parameter::frozen() const { return slot_->frozen; }

void assign(std::span<const std::pair<Parameter, Tensor>> values) {
  require_may_set();
  std::vector<Tensor> tensors;
  std::unordered_set<const Slot*> seen;
  for (const auto& [parameter, tensor] : values) {
    require_same_spec(parameter.value(), tensor);
    if (!seen.insert(slot_of(parameter).get()).second)
      throw Error(fmt::format("assign: a parameter of {} is given twice", to_string(tensor.spec())));
    tensors.push_back(tensor);
  }
  eval(tensors);
  for (const auto& [parameter, tensor] : values) Parameter(parameter).set(tensor);
}

void assign(std::initializer_list<std::pair<Parameter, Tensor>> values) { assign(std::span(values.begin(), values.size())); }

std::vector<Tensor> gradients(const Tensor& loss, const NamedParameters& parameters) {
  if (!loss.defined()) throw Error("gradients: the loss is undefined");
  auto values = leaves_of("gradients", loss, parameters);
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!values[i].defined()) values[i] = parameters[i].second.value();
  return clnet::gradients(loss, values);
}

}  // namespace clnet::nn
