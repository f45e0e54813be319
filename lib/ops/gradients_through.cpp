#include "lib/ops/gradients_through.h"

#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "clnet/ops.h"
#include "lib/graph/node.h"

namespace clnet::ops {

Tensors gradients_through(const Tensors& outputs, const Tensors& output_gradients, const Tensors& inputs, std::uint64_t first) {
  std::map<std::pair<const Node*, int>, Tensor> arrived;
  std::map<std::uint64_t, std::shared_ptr<Node>, std::greater<>> open;  // the latest first: readers before what they read
  const auto arrive = [&](const Tensor& at, const Tensor& gradient) {
    if (!at.defined() || !gradient.defined()) return;
    auto& sum = arrived[{node_of(at).get(), output_of(at)}];
    sum = sum.defined() ? sum + gradient : gradient;
    if (node_of(at)->op && node_of(at)->order >= first) open.emplace(node_of(at)->order, node_of(at));
  };
  for (std::size_t i = 0; i < outputs.size(); ++i) arrive(outputs[i], output_gradients[i]);
  while (!open.empty()) {
    const auto node = open.begin()->second;
    open.erase(open.begin());
    Tensors values, gradients;
    for (int i = 0; i < static_cast<int>(node->outputs.size()); ++i) {
      values.push_back(tensor_of(node, i));
      const auto found = arrived.find({node.get(), i});
      gradients.push_back(found == arrived.end() ? Tensor{} : found->second);
    }
    const auto result = node->op->vjp(node->inputs, values, gradients);
    for (std::size_t i = 0; i < result.size(); ++i)
      if (is_floating(node->inputs[i].dtype())) arrive(node->inputs[i], result[i]);
  }
  Tensors result;
  for (const auto& input : inputs) {
    auto gradient = input.defined() ? arrived.extract({node_of(input).get(), output_of(input)}) : decltype(arrived)::node_type{};
    result.push_back(gradient.empty() ? Tensor{} : gradient.mapped());
  }
  return result;
}

}  // namespace clnet::ops
