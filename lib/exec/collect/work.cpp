#include "lib/exec/collect/work.h"

#include <algorithm>
#include <unordered_map>

#include "lib/exec/collect/sole_owner.h"

namespace clnet::exec {

bool Collector::Found::is_leaf(int output) const { return std::find(leaves.begin(), leaves.end(), output) != leaves.end(); }

void Collector::enter(const Tensor& tensor, Found& found) {
  if (found.computed || found.is_leaf(output_of(tensor))) return;
  if (auto value = value_of(tensor)) {
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
    // Another thread may have given it its value since.
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
  // As the program asked for them: of several gradients each is used up before the next is made, so that less is alive at once.
  const auto earlier = [](const auto& a, const auto& b) { return a->sequence < b->sequence; };
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

Work Collector::take(const Giving& giving) {
  std::unordered_map<const Node*, std::vector<bool>> asked;
  for (const auto& tensor : work_.wanted) {
    auto& outputs = asked[node_of(tensor).get()];
    outputs.resize(node_of(tensor)->outputs.size());
    outputs[static_cast<std::size_t>(output_of(tensor))] = true;
  }
  const std::vector<bool> nothing;
  std::vector<Seen> seen(work_.nodes.size(), Seen::inside);
  for (std::uint32_t k = 0; k < work_.nodes.size(); ++k) {
    const auto& node = work_.nodes[k];
    auto& its = found_.at(node.get());
    its.index = k;
    const auto& its_asked = its.asked ? asked[node.get()] : nothing;
    if (its.asked) seen[k] = Seen::asked;
    // What is asked for has a value from now on, whoever holds it. Where it is to take a leaf's place, others would miss the
    // leaf.
    if (sole_owner(*node, its.readers, its.asked && giving.has_result(node.get()) ? nothing : its_asked)) continue;
    seen[k] = Seen::outside;
    for (std::size_t i = 0; i < node->outputs.size(); ++i)
      if (its_asked.empty() || !its_asked[i]) work_.kept.push_back({k, static_cast<int>(i)});
  }
  find_gifts(seen, giving);
  return std::move(work_);
}

Work collect(std::span<const Tensor> tensors) {
  Collector collector;
  collector.add(tensors);
  return std::move(collector.work());
}

Work private_copy(const Work& work) {
  Work copy;
  std::unordered_map<const Node*, std::shared_ptr<Node>> nodes;
  std::unordered_map<const Node*, std::vector<std::pair<int, Tensor>>> leaves;
  for (std::size_t i = 0; i < work.leaves.size(); ++i) {
    const auto& leaf = work.leaves[i];
    copy.leaves.push_back(make_leaf(leaf.spec(), work.values[i]));
    node_of(copy.leaves.back())->slot = node_of(leaf)->slot;
    copy.values.push_back(work.values[i]);
    leaves[node_of(leaf).get()].emplace_back(output_of(leaf), copy.leaves.back());
  }
  const auto copied = [&](const Tensor& tensor) {
    if (const auto found = leaves.find(node_of(tensor).get()); found != leaves.end())
      for (const auto& [output, leaf] : found->second)
        if (output == output_of(tensor)) return leaf;
    return tensor_of(nodes.at(node_of(tensor).get()), output_of(tensor));
  };
  for (const auto& node : work.nodes) {
    Tensors inputs;
    for (const auto& input : node->inputs) inputs.push_back(copied(input));
    copy.nodes.push_back(std::make_shared<Node>(*node, std::move(inputs)));
    nodes[node.get()] = copy.nodes.back();
  }
  for (const auto& tensor : work.wanted) copy.wanted.push_back(copied(tensor));
  return copy;
}

}  // namespace clnet::exec
