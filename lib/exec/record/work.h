// What an evaluation has to do, read off the graph.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "clnet/tensor.h"
#include "lib/graph/node.h"

namespace clnet::exec {

inline const std::shared_ptr<Value>& value_of(const Tensor& tensor) {
  return tensor.node()->values[static_cast<std::size_t>(tensor.output())];
}

/// The nodes to compute, each after those that it needs, and the leaves that they read.
struct Work {
  std::vector<std::shared_ptr<Node>> nodes;
  std::vector<Tensor> leaves;
};

/// Everything that `tensors` need and that has no value yet.
CLNET_API Work collect(std::span<const Tensor> tensors);

}  // namespace clnet::exec
