#include "lib/exec/plan/speculative_outputs.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/exec/collect/value.h"
#include "lib/graph/op.h"

namespace clnet::exec {

void SpeculativeOutputs::add(const std::vector<Output>& outputs) {
  const std::lock_guard lock(mutex_);
  if (entries_.size() >= sweep_at_) {
    forget_dead();
    sweep_at_ = std::max<std::size_t>(64, 2 * entries_.size());
  }
  for (const auto& [tensor, value] : outputs) entries_.push_back({node_of(tensor), output_of(tensor), value});
}

void SpeculativeOutputs::forget_dead() {
  std::erase_if(entries_, [](const WeakOutput& entry) { return entry.value.expired(); });
}

std::shared_ptr<Value> SpeculativeOutputs::take_away(const WeakOutput& entry, std::vector<std::shared_ptr<Node>>& nodes) {
  auto node = entry.node.lock();
  if (!node) return nullptr;
  auto value = node->values[static_cast<std::size_t>(entry.output)].take_last(entry.value);
  if (value) node->past.store(Node::Past::taken, std::memory_order_relaxed);
  nodes.push_back(std::move(node));
  return value;
}

std::size_t SpeculativeOutputs::evict(std::size_t bytes) {
  // Freed without the lock.
  std::vector<std::shared_ptr<Node>> nodes;
  std::vector<std::shared_ptr<Value>> values;
  std::size_t freed = 0;
  const std::lock_guard lock(mutex_);
  for (auto at = entries_.begin(); at != entries_.end() && freed < bytes;) {
    auto taken = take_away(*at, nodes);
    const auto* placed = dynamic_cast<const DeviceValue*>(taken.get());
    // Views share memory, which is free when the last of them goes.
    if (placed && placed->buffer->holders() == 0) freed += placed->buffer->bytes();
    at = taken || at->value.expired() ? entries_.erase(at) : std::next(at);
    if (taken) values.push_back(std::move(taken));
  }
  return freed;
}

std::size_t SpeculativeOutputs::count() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(
      std::count_if(entries_.begin(), entries_.end(), [](const WeakOutput& entry) { return !entry.value.expired(); }));
}

std::string computed_again(const Work& work) {
  const Node* found = nullptr;
  for (const auto& node : work.nodes) {
    const auto past = node->past.load(std::memory_order_relaxed);
    if (past == Node::Past::taken) return {};
    if (past == Node::Past::none) continue;
    const auto hints = node->op->tuning(specs_of(node->inputs));
    if (hints.measured && !hints.last) found = node.get();
  }
  // Another thread may have computed the same meanwhile.
  if (!found || std::any_of(work.wanted.begin(), work.wanted.end(), [](const Tensor& tensor) { return value_of(tensor); }))
    return {};
  return fmt::format("{} of {}", found->op->name(), to_string(found->outputs[0]));
}

}  // namespace clnet::exec
