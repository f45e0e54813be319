#include "lib/exec/record/work.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace clnet::exec {

Work collect(std::span<const Tensor> tensors) {
  Work work;
  struct Visit {
    std::shared_ptr<Node> node;
    std::size_t next = 0;
  };
  std::unordered_set<const Node*> seen;
  std::unordered_map<const Node*, std::unordered_set<int>> leaf_outputs;
  std::vector<Visit> stack;
  const auto enter = [&](const Tensor& tensor) {
    if (value_of(tensor)) {
      if (leaf_outputs[tensor.node().get()].insert(tensor.output()).second) work.leaves.push_back(tensor);
      return;
    }
    if (seen.insert(tensor.node().get()).second) stack.push_back({tensor.node()});
  };
  for (const auto& tensor : tensors) {
    if (value_of(tensor)) continue;
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

}  // namespace clnet::exec
