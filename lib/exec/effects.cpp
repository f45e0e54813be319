#include "lib/exec/effects.h"

#include <fmt/format.h>

#include <algorithm>

#include "clnet/error.h"

namespace clnet::exec {

bool Effects::add(const Work& work) {
  bool found = false;
  std::vector<std::pair<std::shared_ptr<Effect>, std::shared_ptr<Node>>> pending;
  for (const auto& node : work.nodes) {
    // The nodes come in the program's order: of a node and its copies the first counts.
    for (const auto& effect : node->effects)
      if (effect->update && seen_.insert(effect.get()).second) pending.emplace_back(effect, node);
    if (node->slot != 0 && seen_.insert(node.get()).second) {
      waiting_.push_back(node);
      found = true;
    }
  }
  std::sort(pending.begin(), pending.end(), [](const auto& a, const auto& b) { return a.first->order < b.first->order; });
  for (const auto& [effect, node] : pending) apply(effect, node);
  return found || !pending.empty();
}

void Effects::apply(const std::shared_ptr<Effect>& effect, const std::shared_ptr<Node>& node) {
  effects_.push_back(effect);
  auto slot = effect->slot.lock();
  if (!slot) return;
  const auto [found, fresh] = change_of_.try_emplace(slot.get(), changes_.size());
  if (fresh) changes_.push_back({slot, slot->value});
  auto& now = changes_[found->second].value;
  Tensor next = effect->update(now, Tensor(node, effect->output));
  if (!next.defined() || next.spec() != now.spec())
    throw Error(fmt::format("an effect gives {} to a parameter of {}", next.defined() ? to_string(next.spec()) : "no tensor",
                            to_string(now.spec())));
  now = std::move(next);
}

std::vector<Tensor> Effects::wanted() const {
  auto all = asked_;
  for (const auto& node : waiting_) all.emplace_back(node, 0);
  for (const auto& change : changes_) all.push_back(change.value);
  return all;
}

void Effects::commit() {
  std::vector<Tensor> leaves;
  for (const auto& [slot, value] : changes_) leaves.push_back(make_leaf(*slot, value.spec(), value_of(value)));
  // From here on nothing throws.
  for (std::size_t i = 0; i < changes_.size(); ++i) changes_[i].slot->value = std::move(leaves[i]);
  for (const auto& effect : effects_) effect->update = nullptr;
  for (const auto& node : waiting_) {
    node->op.reset();
    node->inputs.clear();
  }
}

}  // namespace clnet::exec
