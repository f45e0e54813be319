// Sums over the parts of a step within their graphs: each is a host call of its lane's plan, in which lanes meet.
#pragma once

#include <memory>
#include <vector>

#include "clnet/tensor.h"

namespace clnet::parallel {

/// The sums in the graph of one part, while it is built. Parts that build the same graph have the same sums in the same order.
class PartSums {
 public:
  PartSums();
  ~PartSums();
  PartSums(const PartSums&) = delete;
  PartSums& operator=(const PartSums&) = delete;

  /// The sums of f32 tensors over all parts. Only a thread in an Attendance can evaluate them, which otherwise throws Error.
  /// Gradients are sums over all parts, too.
  std::vector<Tensor> add_up(const std::vector<Tensor>& own) const;

 private:
  class SumOp;
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace clnet::parallel
