#include "lib/exec/collect/effects.h"

#include <fmt/format.h>

#include <algorithm>

#include "clnet/autocast.h"
#include "clnet/error.h"
#include "lib/exec/options/options.h"

namespace clnet::exec {

namespace {

/// While an update builds its graph. Evaluating there would come upon the same effect again, without end.
Options of_updates() {
  auto options = Options::now();
  options.refusal = "Parameter::follow: the update evaluates or reads a value; it may only build graph";
  return options;
}

}  // namespace

Tensor updated(const Effect::Update& update, const Tensor& now, const Tensor& value) {
  auto next = [&] {
    const OptionsScope here(of_updates());
    const Autocast as_written(Dtype::f32);
    return update(now, value);
  }();
  if (!next.defined() || next.spec() != now.spec())
    throw Error(fmt::format("an effect gives {} to a parameter of {}", next.defined() ? to_string(next.spec()) : "no tensor",
                            to_string(now.spec())));
  return next;
}

Effects::Effects(std::span<const Tensor> asked) : asked_(uncounted(asked)) {
  if (const auto refusal = Options::now().refusal; !refusal.empty()) throw Error(std::string(refusal));
}

Work Effects::collect(const DonationOffer& offer, std::span<const CallEffect> more) {
  Collector collector(walk_);
  int rounds = 1;
  for (auto fresh = collector.add(asked_); add(fresh, more); ++rounds) fresh = collector.add(wanted());
  // An effect on another effect's result may have replaced a value that is already collected.
  if (rounds > 2) {
    collector.clear();
    collector.add(wanted());
  }
  return collector.take(offer);
}

bool Effects::add(std::span<const std::shared_ptr<Node>> nodes, std::span<const CallEffect> more) {
  bool found = false;
  std::vector<Applied> pending;
  const auto take = [&](const std::shared_ptr<Effect>& effect, const std::shared_ptr<Node>& node) {
    if (seen_.contains(effect.get())) return;
    auto update = effect->update();
    if (!update) return;
    seen_.insert(effect.get());
    pending.push_back({effect, node, std::move(update), std::nullopt});
  };
  for (const auto& node : nodes) {
    // Nodes come in the program's order; the first of a node and its copies counts.
    for (const auto& effect : node->effects) take(effect, node);
    if (node->slot != 0 && seen_.insert(node.get()).second) {
      waiting_.push_back(node);
      found = true;
    }
  }
  for (const auto& [value, effect] : more) take(effect, node_of(value));
  std::sort(pending.begin(), pending.end(), [](const auto& a, const auto& b) { return a.effect->order < b.effect->order; });
  found |= !pending.empty();
  for (auto& effect : pending) apply(std::move(effect));
  return found;
}

void Effects::apply(Applied applied) {
  auto& added = effects_.emplace_back(std::move(applied));
  auto slot = added.effect->slot.lock();
  if (!slot) return;
  const auto [found, fresh] = change_of_.try_emplace(slot.get(), changes_.size());
  if (fresh) {
    const SlotsLock lock({slot.get()});
    const auto now = slot->now();
    // Under compile() the slot's value is another one in each call.
    auto* capture = capturing();
    changes_.push_back({slot, uncounted(capture ? capture->value_of(slot) : now), uncounted(now)});
  }
  added.change = found->second;
  auto& now = changes_[found->second].value;
  now = uncounted(updated(*added.update, now, tensor_of(added.node, added.effect->output)));
}

std::vector<Tensor> Effects::wanted() const {
  auto all = uncounted(asked_);
  for (const auto& node : waiting_) all.push_back(uncounted(node, 0));
  for (const auto& change : changes_) all.push_back(uncounted(change.value));
  return all;
}

std::vector<CallEffect> Effects::commit(const std::function<std::shared_ptr<Value>(const Tensor&)>& value_of) {
  std::vector<CallEffect> left;
  if (effects_.empty()) return left;
  std::vector<Tensor> leaves;
  for (const auto& [slot, tensor, before] : changes_) {
    auto value = exec::value_of(tensor);
    leaves.push_back(make_leaf(*slot, tensor.spec(), value ? std::move(value) : value_of(tensor)));
  }
  left.reserve(effects_.size());

  // Old values of slots and functions of effects are freed without the lock: `leaves` and `effects_` hold them.
  std::vector<Slot*> slots;
  slots.reserve(changes_.size());
  for (const auto& change : changes_) slots.push_back(change.slot.get());
  const SlotsLock lock(std::move(slots));
  // New values may depend on several slots: all of these must be as read, or nothing changes.
  bool is_late = false;
  for (const auto& change : changes_) is_late = is_late || !change.slot->now().same(change.before);
  for (const auto& applied : effects_) is_late = is_late || (applied.change && !applied.effect->update());
  // From here on nothing throws.
  if (!is_late)
    for (std::size_t i = 0; i < changes_.size(); ++i) changes_[i].slot->swap(leaves[i]);
  for (const auto& applied : effects_) {
    if (!is_late || !applied.change)
      applied.effect->finish();
    else if (applied.effect->update())
      left.push_back({tensor_of(applied.node, applied.effect->output), applied.effect});
  }
  return left;
}

}  // namespace clnet::exec
