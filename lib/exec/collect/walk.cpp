#include "lib/exec/collect/walk.h"

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <unordered_map>

namespace clnet::exec {

namespace {

/// How often each waiting node has been entered by walks that have not ended.
struct Walkers {
  std::mutex mutex;
  std::unordered_map<const Node*, std::size_t> of;
};

Walkers& walkers() {
  static auto* const all = new Walkers;  // outlives what static tensors do at exit
  return *all;
}

}  // namespace

bool Walk::enter_waiting(const std::shared_ptr<Node>& node) {
  auto& all = walkers();
  const std::lock_guard lock(all.mutex);
  if (node->values[0]) return false;
  auto& count = all.of[node.get()];
  nodes_.push_back(node);
  ++count;
  return true;
}

Walk::~Walk() {
  if (nodes_.empty()) return;
  auto& all = walkers();
  const auto is_done = [&](const std::shared_ptr<Node>& node) {
    const auto found = all.of.find(node.get());
    if (--found->second > 0) return false;
    all.of.erase(found);
    return node->values[0].is_asked();
  };
  auto done = nodes_.begin();
  {
    const std::lock_guard lock(all.mutex);
    done = std::partition(nodes_.begin(), nodes_.end(), is_done);
  }
  // Nobody enters what has a value, so the lock is not needed for what may free much.
  for (auto node = nodes_.begin(); node != done; ++node) (*node)->inputs.clear();
}

}  // namespace clnet::exec
