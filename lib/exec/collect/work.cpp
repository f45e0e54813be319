#include "lib/exec/collect/work.h"

#include <algorithm>
#include <memory_resource>
#include <unordered_map>
#include <utility>

#include "lib/exec/collect/sole_owner.h"
#include "lib/exec/collect/value.h"

namespace clnet::exec {

DonationOffer::DonationOffer(std::vector<std::shared_ptr<const Slot>> slots, std::vector<const Node*> results)
    : results_(std::move(results)) {
  for (auto& slot : slots) {
    const auto* leaf = node_of(slot->now()).get();
    leaves_.emplace_back(leaf, std::move(slot));
  }
  std::sort(leaves_.begin(), leaves_.end());
  std::sort(results_.begin(), results_.end());
}

std::shared_ptr<const Slot> DonationOffer::slot_of(const Node* leaf) const {
  const auto found = std::lower_bound(leaves_.begin(), leaves_.end(), leaf,
                                      [](const auto& offered, const Node* wanted) { return offered.first < wanted; });
  return found != leaves_.end() && found->first == leaf ? found->second : nullptr;
}

bool DonationOffer::has_result(const Node* node) const { return std::binary_search(results_.begin(), results_.end(), node); }

bool Collector::Found::is_leaf(int output) const { return std::find(leaves.begin(), leaves.end(), output) != leaves.end(); }

void Collector::enter(const Tensor& tensor, Found& found) {
  if (found.computed || found.is_leaf(output_of(tensor))) return;
  auto value = value_of(tensor);
  // A node that another thread has computed since, and perhaps cut from its inputs, has a value by now.
  if (!value && !walk_.enter(node_of(tensor))) value = value_of(tensor);
  if (value) {
    found.leaves.push_back(output_of(tensor));
    work_.leaves.push_back(uncounted(tensor));
    work_.values.push_back(std::move(value));
  } else {
    found.computed = true;
    stack_.push_back({node_of(tensor)});
  }
}

std::vector<std::shared_ptr<Node>> Collector::add(std::span<const Tensor> tensors) {
  work_.wanted.clear();
  std::vector<std::shared_ptr<Node>> fresh;
  for (const auto& tensor : tensors) {
    auto& found = found_[node_of(tensor).get()];
    found.asked = true;
    if (found.is_leaf(output_of(tensor))) continue;
    if (!found.computed) {
      if (auto value = value_of(tensor)) {
        work_.present.push_back({node_of(tensor).get(), output_of(tensor), std::move(value)});
        continue;
      }
    }
    enter(tensor, found);
    // Another thread may have set its value since.
    if (found.computed) work_.wanted.push_back(uncounted(tensor));
    while (!stack_.empty()) {
      auto& visit = stack_.back();
      if (visit.next < visit.node->inputs.size()) {
        const auto& input = visit.node->inputs[visit.next++];
        auto& its = found_[node_of(input).get()];
        ++its.readers;
        enter(input, its);
      } else {
        fresh.push_back(std::move(visit.node));
        stack_.pop_back();
      }
    }
  }
  // In the program's order: each of several gradients is used up before the next is made, so that fewer are alive at once.
  const auto earlier = [](const auto& a, const auto& b) { return a->order < b->order; };
  std::sort(fresh.begin(), fresh.end(), earlier);
  auto& nodes = work_.nodes;
  const auto middle = static_cast<std::ptrdiff_t>(nodes.size());
  nodes.insert(nodes.end(), fresh.begin(), fresh.end());
  std::inplace_merge(nodes.begin(), nodes.begin() + middle, nodes.end(), earlier);
  return fresh;
}

void Collector::clear() {
  work_ = {};
  found_.clear();
  stack_.clear();
}

Work Collector::take(const DonationOffer& offer) {
  work_.number();
  std::vector<bool> asked(work_.value_count());
  for (const auto result : work_.results) asked[result] = true;
  std::vector<bool> its_asked;
  std::vector<Seen> seen(work_.nodes.size(), Seen::inside);
  for (std::uint32_t k = 0; k < work_.nodes.size(); ++k) {
    const auto& node = *work_.nodes[k];
    const auto& its = found_.at(&node);
    const auto first = asked.begin() + work_.first_outputs[k];
    its_asked.assign(first, first + static_cast<std::ptrdiff_t>(node.outputs.size()));
    if (its.asked) seen[k] = Seen::asked;
    // A wanted node has a value afterwards, whoever holds it. But one that takes a leaf's place must have no other holders: these
    // would miss the leaf.
    if (sole_owner(node, its.readers, its.asked && offer.has_result(&node) ? std::vector<bool>{} : its_asked)) continue;
    seen[k] = Seen::outside;
    for (std::size_t i = 0; i < node.outputs.size(); ++i)
      if (!its_asked[i]) work_.speculative.push_back({k, static_cast<int>(i)});
  }
  find_may_overwrite(seen, offer);
  return std::move(work_);
}

/// A leaf's value may be needed again while anything that depends on it is held: values are recomputed, and gradients read
/// intermediates. So a leaf is donated for good only if everything that depends on it ends with the evaluation.
///
/// A rewritten leaf may have one reader. The reader's value exists afterwards, in its own name or a slot's, so no recomputation
/// goes back behind it. Its gradient needs no value of the leaf: only a slice's change may be recorded that way.
void Collector::find_may_overwrite(const std::vector<Seen>& seen, const DonationOffer& offer) {
  const auto& nodes = work_.nodes;
  work_.may_overwrite.assign(work_.leaves.size(), MayOverwrite::nothing);
  work_.own_holders.resize(work_.leaves.size());
  std::vector<bool> candidates(work_.leaves.size());
  for (std::size_t i = 0; i < work_.leaves.size(); ++i) {
    const auto& node = node_of(work_.leaves[i]);
    if (node->outputs.size() != 1 || !dynamic_cast<const DeviceValue*>(work_.values[i].get())) continue;
    // A pending slot value may be cut from its inputs by another thread right now: they are not read.
    if (node->slot == 0 && !node->inputs.empty()) continue;
    const auto slot = offer.slot_of(node.get());
    const auto& its = found_.at(node.get());
    // A wanted value exists afterwards.
    if (its.asked || !sole_owner(*node, {slot ? 1U : 0U, its.readers}) || (!slot && its.readers != 1)) continue;
    candidates[i] = true;
    work_.own_holders[i] = {its.readers, slot};
    if (slot) work_.may_overwrite[i] = MayOverwrite::all;
  }
  if (std::find(candidates.begin(), candidates.end(), true) == candidates.end()) return;

  // By node: `stays`, whether it or a dependent is held; `in_slot`, whether its only reader is a pending slot value, a leaf from
  // now on.
  std::vector<bool> stays(nodes.size()), in_slot(nodes.size());
  for (std::size_t k = nodes.size(); k-- > 0;) {
    const auto& node = *nodes[k];
    const bool waited = node.slot != 0;
    if (seen[k] == Seen::outside || (seen[k] == Seen::asked && !offer.has_result(&node))) stays[k] = true;
    for (const auto value : work_.reads_of(k)) {
      if (!work_.is_leaf(value)) {
        const auto producer = work_.producer(value);
        if (stays[k] && !waited) stays[producer] = true;
        if (waited && found_.at(nodes[producer].get()).readers == 1) in_slot[producer] = true;
        continue;
      }
      if (!candidates[value]) continue;
      auto& allowed = work_.may_overwrite[value];
      if (allowed == MayOverwrite::all || work_.own_holders[value].slot) {
        if (stays[k]) allowed = MayOverwrite::nothing;
      } else if (node.checkpoint == 0 && node.outputs.size() == 1 &&
                 (seen[k] == Seen::asked || (seen[k] == Seen::inside && in_slot[k]))) {
        allowed = MayOverwrite::ranges;
      }
    }
  }
}

MayOverwrite Work::may_overwrite_now(std::size_t leaf) const {
  if (may_overwrite.empty() || may_overwrite[leaf] == MayOverwrite::nothing) return MayOverwrite::nothing;
  const auto& node = *node_of(leaves[leaf]);
  const auto& own = own_holders[leaf];
  // A function of the program may have given the slot another value, and keep this one.
  if (own.slot && node_of(own.slot->now()).get() != &node) return MayOverwrite::nothing;
  return sole_owner(node, {own.slot ? 1U : 0U, own.inputs}) ? may_overwrite[leaf] : MayOverwrite::nothing;
}

Work collect(std::span<const Tensor> tensors, Walk& walk) {
  Collector collector(walk);
  collector.add(tensors);
  auto work = std::move(collector.work());
  work.number();
  return work;
}

Work collect(std::span<const Tensor> tensors) {
  Walk walk;
  return collect(tensors, walk);
}

void Work::number() {
  // By node: the numbers of its first output, and of leaves among its outputs.
  struct Numbers {
    ValueNumber first = 0;
    std::vector<std::pair<int, ValueNumber>> leaves = {};
  };
  std::pmr::monotonic_buffer_resource memory;
  std::pmr::unordered_map<const Node*, Numbers> numbers(&memory);
  numbers.reserve(2 * (nodes.size() + leaves.size()));
  ValueNumber next = 0;
  for (const auto& leaf : leaves) numbers[node_of(leaf).get()].leaves.emplace_back(output_of(leaf), next++);
  const auto number_of = [&](const Tensor& tensor) {
    const auto& found = numbers.at(node_of(tensor).get());
    for (const auto& [output, leaf] : found.leaves)
      if (output == output_of(tensor)) return leaf;
    return found.first + static_cast<ValueNumber>(output_of(tensor));
  };
  first_outputs.clear();
  first_reads.clear();
  reads.clear();
  results.clear();
  for (const auto& node : nodes) {
    first_reads.push_back(reads.size());
    for (const auto& input : node->inputs) reads.push_back(number_of(input));
    first_outputs.push_back(next);
    numbers[node.get()].first = next;
    next += static_cast<ValueNumber>(node->outputs.size());
  }
  first_outputs.push_back(next);
  first_reads.push_back(reads.size());
  for (const auto& tensor : wanted) results.push_back(number_of(tensor));
}

std::size_t Work::producer(ValueNumber value) const {
  const auto behind = std::upper_bound(first_outputs.begin(), first_outputs.end(), value);
  return static_cast<std::size_t>(behind - first_outputs.begin()) - 1;
}

Work private_copy(const Work& work) {
  Work copy;
  std::vector<Tensor> values;
  for (std::size_t i = 0; i < work.leaves.size(); ++i) {
    values.push_back(make_leaf(work.leaves[i].spec(), work.values[i]));
    node_of(values.back())->slot = node_of(work.leaves[i])->slot;
  }
  copy.leaves = values;
  copy.values = work.values;
  for (std::size_t k = 0; k < work.nodes.size(); ++k) {
    const auto& node = *work.nodes[k];
    Tensors inputs;
    for (const auto value : work.reads_of(k)) inputs.push_back(values[value]);
    copy.nodes.push_back(std::make_shared<Node>(node, std::move(inputs)));
    for (std::size_t i = 0; i < node.outputs.size(); ++i) values.push_back(tensor_of(copy.nodes.back(), static_cast<int>(i)));
  }
  for (const auto result : work.results) copy.wanted.push_back(values[result]);
  copy.first_outputs = work.first_outputs;
  copy.first_reads = work.first_reads;
  copy.reads = work.reads;
  copy.results = work.results;
  return copy;
}

}  // namespace clnet::exec
