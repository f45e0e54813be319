#include "lib/exec/collect/effects.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "clnet/autocast.h"
#include "clnet/error.h"
#include "lib/exec/options/options.h"

namespace clnet::exec {

namespace {

/// Nodes whose inputs are no longer needed. Another thread may have begun to evaluate before they had a value and be walking over
/// them: the last of the evaluations that overlap cuts them off.
struct Finished {
  std::mutex mutex;
  std::size_t evaluations = 0;
  std::vector<std::shared_ptr<Node>> nodes;
};

Finished& finished() {
  static auto* const all = new Finished;  // outlives what static tensors do at exit
  return *all;
}

/// While an update builds its graph. Evaluating there would come upon the same effect again, without end.
Options of_updates() {
  auto options = Options::now();
  options.refusal = "Parameter::follow: the update evaluates or reads a value; it may only build graph";
  return options;
}

}  // namespace

Effects::Effects(std::span<const Tensor> asked) : asked_(uncounted(asked)) {
  if (const auto refusal = Options::now().refusal; !refusal.empty()) throw Error(std::string(refusal));
  auto& all = finished();
  const std::lock_guard lock(all.mutex);
  ++all.evaluations;
}

Effects::~Effects() {
  std::vector<std::shared_ptr<Node>> nodes;
  {
    auto& all = finished();
    const std::lock_guard lock(all.mutex);
    if (--all.evaluations == 0) nodes.swap(all.nodes);
  }
  // Who begins from here on finds their values and does not look at their inputs.
  for (const auto& node : nodes) node->inputs.clear();
}

Work Effects::collect(const Giving& giving, std::span<const CallEffect> more) {
  Collector collector;
  int rounds = 1;
  for (auto fresh = collector.add(asked_); add(fresh, more); ++rounds) fresh = collector.add(wanted());
  // An effect on what an effect made may have put another value in the place of one that is collected.
  if (rounds > 2) {
    collector.clear();
    collector.add(wanted());
  }
  return collector.take(giving);
}

bool Effects::add(std::span<const std::shared_ptr<Node>> nodes, std::span<const CallEffect> more) {
  bool found = false;
  std::vector<std::pair<std::shared_ptr<Effect>, std::shared_ptr<Node>>> pending;
  for (const auto& node : nodes) {
    // The nodes come in the program's order: of a node and its copies the first counts.
    for (const auto& effect : node->effects)
      if (effect->update && seen_.insert(effect.get()).second) pending.emplace_back(effect, node);
    if (node->slot != 0 && seen_.insert(node.get()).second) {
      waiting_.push_back(node);
      found = true;
    }
  }
  for (const auto& [value, effect] : more)
    if (seen_.insert(effect.get()).second) pending.emplace_back(effect, node_of(value));
  std::sort(pending.begin(), pending.end(), [](const auto& a, const auto& b) { return a.first->order < b.first->order; });
  for (const auto& [effect, node] : pending) apply(effect, node);
  return found || !pending.empty();
}

void Effects::apply(const std::shared_ptr<Effect>& effect, const std::shared_ptr<Node>& node) {
  effects_.push_back(effect);
  auto slot = effect->slot.lock();
  if (!slot) return;
  const auto [found, fresh] = change_of_.try_emplace(slot.get(), changes_.size());
  if (fresh) changes_.push_back({slot, uncounted(slot->value)});
  auto& now = changes_[found->second].value;
  Tensor next = [&] {
    const OptionsScope here(of_updates());
    const Autocast as_written(Dtype::f32);
    return effect->update(now, tensor_of(node, effect->output));
  }();
  if (!next.defined() || next.spec() != now.spec())
    throw Error(fmt::format("an effect gives {} to a parameter of {}", next.defined() ? to_string(next.spec()) : "no tensor",
                            to_string(now.spec())));
  now = uncounted(next);
}

std::vector<Tensor> Effects::wanted() const {
  auto all = uncounted(asked_);
  for (const auto& node : waiting_) all.push_back(uncounted(node, 0));
  for (const auto& change : changes_) all.push_back(uncounted(change.value));
  return all;
}

void Effects::commit(const std::function<std::shared_ptr<Value>(const Tensor&)>& value_of) {
  std::vector<Tensor> leaves;
  for (const auto& [slot, tensor] : changes_) {
    auto value = exec::value_of(tensor);
    leaves.push_back(make_leaf(*slot, tensor.spec(), value ? std::move(value) : value_of(tensor)));
  }
  if (!waiting_.empty()) {
    auto& all = finished();
    const std::lock_guard lock(all.mutex);
    all.nodes.insert(all.nodes.end(), waiting_.begin(), waiting_.end());
  }
  // From here on nothing throws.
  for (std::size_t i = 0; i < changes_.size(); ++i) changes_[i].slot->value = std::move(leaves[i]);
  for (const auto& effect : effects_) effect->finish();
}

}  // namespace clnet::exec
