// Which leaves nobody needs any more when an evaluation has succeeded.
#include <algorithm>
#include <utility>

#include "lib/exec/collect/sole_owner.h"
#include "lib/exec/collect/value.h"
#include "lib/exec/collect/work.h"

namespace clnet::exec {

Giving::Giving(std::vector<const Node*> leaves, std::vector<const Node*> results)
    : leaves_(std::move(leaves)), results_(std::move(results)) {
  std::sort(leaves_.begin(), leaves_.end());
  std::sort(results_.begin(), results_.end());
}
bool Giving::has_leaf(const Node* node) const { return std::binary_search(leaves_.begin(), leaves_.end(), node); }
bool Giving::has_result(const Node* node) const { return std::binary_search(results_.begin(), results_.end(), node); }

/// A value of which somebody holds what depends on it, however far behind, may be needed again: what has no value is computed
/// anew, and a gradient reads what was in between. So a leaf is given for good only if all that depends on it goes with the
/// evaluation. What is merely rewritten may be read by one node, whose value is there from then on, in its own name or a slot's,
/// so that nothing that is computed anew goes back behind it; and whose gradient needs no value of the leaf, as nothing but a
/// slice's change may be recorded so.
void Collector::find_gifts(const std::vector<Seen>& seen, const Giving& giving) {
  const auto& nodes = work_.nodes;
  work_.gifts.assign(work_.leaves.size(), Gift::nothing);
  std::unordered_map<const Node*, std::size_t> candidates;
  for (std::size_t i = 0; i < work_.leaves.size(); ++i) {
    const auto& node = node_of(work_.leaves[i]);
    if (node->outputs.size() != 1 || !dynamic_cast<const DeviceValue*>(work_.values[i].get())) continue;
    // A slot's value that waited is cut off from its inputs, by another thread perhaps at this moment: they are not looked at.
    if (node->slot == 0 && !node->inputs.empty()) continue;
    const bool of_slot = giving.has_leaf(node.get());
    const auto& its = found_.at(node.get());
    // What is asked for is there afterwards.
    if (its.asked || !sole_owner(*node, {of_slot ? 1U : 0U, its.readers}) || (!of_slot && its.readers != 1)) continue;
    candidates[node.get()] = i;
    if (of_slot) work_.gifts[i] = Gift::any;
  }
  if (candidates.empty()) return;

  // By node: whether somebody holds it, or what depends on it; and whether a slot's value that waited, a leaf from now on, is all
  // that reads it.
  std::vector<bool> stays(nodes.size()), in_slot(nodes.size());
  for (std::size_t k = nodes.size(); k-- > 0;) {
    const auto& node = *nodes[k];
    const bool waited = node.slot != 0;
    if (seen[k] == Seen::outside || (seen[k] == Seen::asked && !giving.has_result(&node))) stays[k] = true;
    for (const auto& input : node.inputs) {
      const auto& its = found_.at(node_of(input).get());
      if (its.computed && !its.is_leaf(output_of(input))) {
        if (stays[k] && !waited) stays[its.index] = true;
        if (waited && its.readers == 1) in_slot[its.index] = true;
        continue;
      }
      const auto found = candidates.find(node_of(input).get());
      if (found == candidates.end()) continue;
      auto& gift = work_.gifts[found->second];
      if (gift == Gift::any || giving.has_leaf(node_of(input).get())) {
        if (stays[k]) gift = Gift::nothing;
      } else if (node.checkpoint == 0 && node.outputs.size() == 1 &&
                 (seen[k] == Seen::asked || (seen[k] == Seen::inside && in_slot[k]))) {
        gift = Gift::rewritten;
      }
    }
  }
}

}  // namespace clnet::exec
