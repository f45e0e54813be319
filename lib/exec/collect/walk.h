// Traversal of graph that other threads may evaluate.
#pragma once

#include <memory>
#include <vector>

#include "lib/graph/node.h"

namespace clnet::exec {

/// A pending value of a slot does not need its inputs once it is computed. They are cut off when the last Walk over them ends. So
/// every reader of a graph's inputs, in an evaluation or not, enters nodes through a Walk.
class Walk {
 public:
  Walk() = default;
  /// Cuts off inputs that no other Walk reads.
  ~Walk();
  Walk(const Walk&) = delete;
  Walk& operator=(const Walk&) = delete;

  /// Whether the node's inputs may be read while this lives. False: the node has a value by now.
  bool enter(const std::shared_ptr<Node>& node) { return node->slot == 0 || enter_waiting(node); }

 private:
  bool enter_waiting(const std::shared_ptr<Node>& node);

  std::vector<std::shared_ptr<Node>> nodes_;  ///< pending nodes or former ones; one entry per enter()
};

}  // namespace clnet::exec
