#include "lib/exec/plan/kept.h"

#include <algorithm>
#include <functional>
#include <unordered_set>

#include "lib/exec/collect/value.h"

namespace clnet::exec {

namespace {

/// Which evaluation computed a node and let its value go: Node::origin, 0 for none. A structure is only told by a hash: what is
/// learned of a wrong one is kept for nothing, but never wrong.
struct Origin {
  std::uint32_t structure, index;
  bool written;
};

constexpr std::uint32_t most_nodes = 1U << 30;

std::uint64_t packed(const Origin& origin) {
  return std::uint64_t{origin.structure} << 32 | std::uint64_t{origin.index} << 2 | (origin.written ? 2U : 0U) | 1U;
}

Origin unpacked(std::uint64_t bits) {
  return {static_cast<std::uint32_t>(bits >> 32), static_cast<std::uint32_t>(bits) >> 2, (bits & 2U) != 0};
}

std::uint64_t origin_of(const Node& node) { return node.origin.load(std::memory_order_relaxed); }

/// The nodes that would have spared the work everything that is computed again, had they been kept: of what is new, or was never
/// written, the inputs.
std::vector<Origin> missing(const Work& work) {
  std::unordered_set<const Node*> needed;
  for (const auto& tensor : work.wanted) needed.insert(node_of(tensor).get());
  std::vector<Origin> result;
  for (auto at = work.nodes.rbegin(); at != work.nodes.rend(); ++at) {
    const auto& node = **at;
    const auto bits = origin_of(node);
    if (bits != 0 && needed.count(&node) == 0) continue;
    if (bits != 0 && unpacked(bits).written)
      result.push_back(unpacked(bits));
    else
      for (const auto& input : node.inputs) needed.insert(node_of(input).get());
  }
  return result;
}

}  // namespace

KeptValues::Choice KeptValues::choose(const Work& work, const std::string& key) {
  Choice choice{static_cast<std::uint32_t>(std::hash<std::string>{}(key)), work.kept};
  if (!work.keeps) return choice;
  const bool again = std::any_of(work.nodes.begin(), work.nodes.end(), [](const auto& node) { return origin_of(*node) != 0; });
  const auto origins = again ? missing(work) : std::vector<Origin>{};
  const std::lock_guard lock(mutex_);
  constexpr std::size_t most_structures = 1024;
  if (needed_.size() > most_structures) {
    needed_.clear();
    runs_.clear();
  }
  for (const auto& origin : origins) needed_[origin.structure].insert(origin.index);
  const auto found = needed_.find(choice.structure);
  if (found == needed_.end()) return choice;
  std::set<std::pair<const Node*, int>> known;
  for (const auto& tensor : work.wanted) known.emplace(node_of(tensor).get(), output_of(tensor));
  for (const auto& [node, output] : work.kept) known.emplace(work.nodes[node].get(), output);
  for (auto index : found->second) {
    if (index >= work.nodes.size()) break;
    const auto& node = work.nodes[index];
    for (int output = 0; output < static_cast<int>(node->outputs.size()); ++output)
      if (known.emplace(node.get(), output).second) choice.kept.push_back({index, output});
  }
  return choice;
}

void KeptValues::computed(const Work& work, std::uint32_t structure, const std::vector<bool>& written) {
  const auto count = std::min<std::size_t>(work.nodes.size(), most_nodes);
  for (std::size_t i = 0; i < count; ++i)
    work.nodes[i]->origin.store(packed({structure, static_cast<std::uint32_t>(i), i < written.size() && written[i]}),
                                std::memory_order_relaxed);
}

void KeptValues::add(std::uint32_t structure, const std::vector<Kept>& kept, std::size_t learned) {
  // Freed without the lock.
  std::vector<std::shared_ptr<Node>> nodes;
  std::vector<std::shared_ptr<Value>> values;
  const std::lock_guard lock(mutex_);
  if (entries_.size() >= sweep_at_) {
    forget_dead();
    sweep_at_ = std::max<std::size_t>(64, 2 * entries_.size());
  }
  for (const auto& [tensor, value] : kept) entries_.push_back({node_of(tensor), output_of(tensor), value});
  if (learned == 0) return;
  auto& runs = runs_[structure];
  runs.emplace_back(std::prev(entries_.end(), static_cast<std::ptrdiff_t>(learned)), entries_.end());
  if (runs.size() <= most_runs) return;
  for (const auto& entry : runs.front()) take_away(entry, nodes, values);
  runs.pop_front();
}

void KeptValues::forget_dead() {
  std::erase_if(entries_, [](const Entry& entry) { return entry.value.expired(); });
}

bool KeptValues::take_away(const Entry& entry, std::vector<std::shared_ptr<Node>>& nodes,
                           std::vector<std::shared_ptr<Value>>& values) {
  auto node = entry.node.lock();
  auto value = entry.value.lock();
  // Of those two one is the slot's.
  const bool held = value.use_count() > 2;
  if (node && value && !held) node->values[static_cast<std::size_t>(entry.output)].exchange(value.get(), nullptr);
  nodes.push_back(std::move(node));
  values.push_back(std::move(value));
  return !held;
}

std::size_t KeptValues::evict(std::size_t bytes) {
  // Freed without the lock.
  std::vector<std::shared_ptr<Node>> nodes;
  std::vector<std::shared_ptr<Value>> values;
  std::unordered_map<const ocl::Buffer*, long> released;
  std::size_t freed = 0;
  const std::lock_guard lock(mutex_);
  for (auto at = entries_.begin(); at != entries_.end() && freed < bytes;) {
    const bool gone = take_away(*at, nodes, values);
    // Views share memory, which is free when the last of them goes.
    if (const auto* placed = dynamic_cast<const DeviceValue*>(values.back().get());
        gone && nodes.back() && placed && ++released[placed->buffer.get()] == placed->buffer.use_count())
      freed += placed->buffer->bytes();
    at = gone ? entries_.erase(at) : std::next(at);
  }
  return freed;
}

std::size_t KeptValues::count() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(
      std::count_if(entries_.begin(), entries_.end(), [](const Entry& entry) { return !entry.value.expired(); }));
}

}  // namespace clnet::exec
