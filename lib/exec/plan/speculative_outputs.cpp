#include "lib/exec/plan/speculative_outputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "lib/base/process_mutex.h"
#include "lib/exec/collect/value.h"
#include "lib/graph/op.h"

namespace clnet::exec {

namespace {

/// The outputs of all devices.
struct All {
  ProcessMutex mutex;
  std::vector<SpeculativeOutputs*> of;
};

All& all() {
  static auto* const one = new All;  // outlives what static tensors do at exit
  return *one;
}

}  // namespace

SpeculativeOutputs::SpeculativeOutputs() {
  const std::lock_guard lock(all().mutex);
  all().of.push_back(this);
}

SpeculativeOutputs::~SpeculativeOutputs() {
  const std::lock_guard lock(all().mutex);
  std::erase(all().of, this);
}

void SpeculativeOutputs::add(const std::vector<Output>& outputs) {
  Held held;
  const std::lock_guard lock(mutex_);
  if (entries_.size() >= sweep_at_) {
    forget_dead(held);
    sweep_at_ = std::max<std::size_t>(64, 2 * entries_.size());
  }
  for (const auto& [tensor, value] : outputs) entries_.push_back({node_of(tensor), output_of(tensor), value});
}

bool SpeculativeOutputs::is_kept(const WeakOutput& entry, Held& held) {
  auto node = entry.value.expired() ? nullptr : entry.node.lock();
  if (!node) return false;
  const bool kept = node->values[static_cast<std::size_t>(entry.output)].is_speculative();
  held.push_back(std::move(node));
  return kept;
}

void SpeculativeOutputs::forget_dead(Held& held) {
  std::erase_if(entries_, [&](const WeakOutput& entry) { return !is_kept(entry, held); });
}

std::size_t SpeculativeOutputs::evict(std::size_t bytes) {
  Taken taken;
  return take_away(bytes, true, taken);
}

void SpeculativeOutputs::clear() {
  Taken taken;
  take_away(std::numeric_limits<std::size_t>::max(), false, taken);
}

void SpeculativeOutputs::clear_all() {
  Taken taken;
  const std::lock_guard lock(all().mutex);
  for (auto* outputs : all().of) outputs->take_away(std::numeric_limits<std::size_t>::max(), false, taken);
}

std::size_t SpeculativeOutputs::take_away(std::size_t bytes, bool sole, Taken& taken) {
  std::size_t freed = 0;
  const std::lock_guard lock(mutex_);
  for (auto at = entries_.begin(); at != entries_.end() && freed < bytes;) {
    auto node = at->node.lock();
    auto* cell = node ? &node->values[static_cast<std::size_t>(at->output)] : nullptr;
    auto value = cell ? cell->take_speculative(at->value, sole) : nullptr;
    if (value) node->past.store(Node::Past::taken, std::memory_order_relaxed);
    const auto* placed = dynamic_cast<const DeviceValue*>(value.get());
    // Views share memory, which is free when the last of them goes.
    if (placed && placed->buffer->holders() == 0) freed += placed->buffer->bytes();
    at = cell && cell->is_speculative() && !at->value.expired() ? std::next(at) : entries_.erase(at);
    if (value) taken.values.push_back(std::move(value));
    if (node) taken.nodes.push_back(std::move(node));
  }
  return freed;
}

std::size_t SpeculativeOutputs::count() const {
  Held held;
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(
      std::count_if(entries_.begin(), entries_.end(), [&](const WeakOutput& entry) { return is_kept(entry, held); }));
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
