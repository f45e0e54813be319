#include "lib/exec/collect/walk.h"

#include <array>
#include <cstddef>
#include <functional>
#include <mutex>
#include <unordered_map>

namespace clnet::exec {

namespace {

/// How often each waiting node has been entered by walks that have not ended. Many shards, by the node: threads of several
/// devices hardly ever want one at the same time.
class Walkers {
 public:
  struct Shard {
    std::mutex mutex;
    std::unordered_map<const Node*, std::size_t> of;
  };
  Shard& of(const Node* node) { return shards_[std::hash<const Node*>()(node) / alignof(Node) % shards_.size()]; }

 private:
  std::array<Shard, 251> shards_;
};

Walkers& walkers() {
  static auto* const all = new Walkers;  // outlives what static tensors do at exit
  return *all;
}

}  // namespace

bool Walk::enter_waiting(const std::shared_ptr<Node>& node) {
  auto& shard = walkers().of(node.get());
  const std::lock_guard lock(shard.mutex);
  if (node->values[0]) return false;
  auto& count = shard.of[node.get()];
  nodes_.push_back(node);
  ++count;
  return true;
}

Walk::~Walk() {
  const auto is_done = [](const std::shared_ptr<Node>& node) {
    auto& shard = walkers().of(node.get());
    const std::lock_guard lock(shard.mutex);
    const auto found = shard.of.find(node.get());
    if (--found->second > 0) return false;
    shard.of.erase(found);
    return node->values[0].is_asked();
  };
  // Nobody enters what has a value, so the lock is not needed for what may free much.
  for (const auto& node : nodes_)
    if (is_done(node)) node->inputs.clear();
}

}  // namespace clnet::exec
