#include "lib/exec/record/work.h"

#include <algorithm>
#include <unordered_map>

namespace clnet::exec {

namespace {

/// What the first look at a node's outputs found: a value that another thread publishes later changes nothing.
struct Found {
  bool computed = false;      ///< it is among the nodes, and so are all outputs but these:
  std::vector<int> leaves{};  ///< outputs that had a value
  bool is_leaf(int output) const { return std::find(leaves.begin(), leaves.end(), output) != leaves.end(); }
};

}  // namespace

Work collect(std::span<const Tensor> tensors) {
  Work work;
  struct Visit {
    std::shared_ptr<Node> node;
    std::size_t next = 0;
  };
  std::unordered_map<const Node*, Found> found;
  std::vector<Visit> stack;
  const auto enter = [&](const Tensor& tensor) {
    auto& node = found[tensor.node().get()];
    if (node.is_leaf(tensor.output()) || node.computed) return;
    if (slot_of(tensor)) {
      node.leaves.push_back(tensor.output());
      work.leaves.push_back(tensor);
      work.values.push_back(value_of(tensor));
    } else {
      node.computed = true;
      stack.push_back({tensor.node()});
    }
  };
  for (const auto& tensor : tensors) {
    const auto& node = found[tensor.node().get()];
    if (node.is_leaf(tensor.output()) || (!node.computed && slot_of(tensor))) continue;
    work.wanted.push_back(tensor);
    enter(tensor);
    while (!stack.empty()) {
      auto& visit = stack.back();
      if (visit.next < visit.node->inputs.size()) {
        enter(visit.node->inputs[visit.next++]);
      } else {
        work.nodes.push_back(std::move(visit.node));
        stack.pop_back();
      }
    }
  }
  // As the program asked for them: of several gradients each is used up before the next is made, so that less is alive at once.
  std::sort(work.nodes.begin(), work.nodes.end(), [](const auto& a, const auto& b) { return a->sequence < b->sequence; });
  return work;
}

Work private_copy(const Work& work) {
  Work copy;
  std::unordered_map<const Node*, std::shared_ptr<Node>> nodes;
  std::unordered_map<const Node*, std::vector<std::pair<int, Tensor>>> leaves;
  for (std::size_t i = 0; i < work.leaves.size(); ++i) {
    const auto& leaf = work.leaves[i];
    copy.leaves.push_back(make_leaf(leaf.spec(), work.values[i]));
    copy.values.push_back(work.values[i]);
    leaves[leaf.node().get()].emplace_back(leaf.output(), copy.leaves.back());
  }
  const auto copied = [&](const Tensor& tensor) {
    if (const auto found = leaves.find(tensor.node().get()); found != leaves.end())
      for (const auto& [output, leaf] : found->second)
        if (output == tensor.output()) return leaf;
    return Tensor(nodes.at(tensor.node().get()), tensor.output());
  };
  for (const auto& node : work.nodes) {
    Tensors inputs;
    for (const auto& input : node->inputs) inputs.push_back(copied(input));
    copy.nodes.push_back(std::make_shared<Node>(node->op, std::move(inputs), node->outputs));
    nodes[node.get()] = copy.nodes.back();
  }
  for (const auto& tensor : work.wanted) copy.wanted.push_back(copied(tensor));
  return copy;
}

}  // namespace clnet::exec
