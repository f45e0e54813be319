// Walks over graph that other threads may be evaluating.
#pragma once

#include <memory>
#include <vector>

#include "lib/graph/node.h"

namespace clnet::exec {

/// A slot's value that waited needs no inputs any more once it is computed. They are cut off as soon as nobody walks over them:
/// what looks at a graph's inputs, be it to evaluate or not, says so here.
class Walk {
 public:
  Walk() = default;
  /// Cuts off what it was the last to look at.
  ~Walk();
  Walk(const Walk&) = delete;
  Walk& operator=(const Walk&) = delete;

  /// Whether the node's inputs may be looked at, for as long as this lives. False: the node has got its value.
  bool enter(const std::shared_ptr<Node>& node) { return node->slot == 0 || enter_waiting(node); }

 private:
  bool enter_waiting(const std::shared_ptr<Node>& node);

  std::vector<std::shared_ptr<Node>> nodes_;  ///< that wait or did; each as often as it was entered
};

}  // namespace clnet::exec
