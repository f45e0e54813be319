// The gradients that arrive at one value, and their sum.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "clnet/tensor.h"
#include "lib/graph/op.h"

namespace clnet {

/// Concatenated tensors; equal lists are joined once.
class Joints {
 public:
  bool has(const Tensors& parts, int dim) const { return joints_.count(key(parts, dim)) != 0; }
  Tensor of(const Tensors& parts, int dim);

 private:
  using Key = std::pair<int, std::vector<std::pair<const Node*, int>>>;
  static Key key(const Tensors& parts, int dim);
  std::map<Key, Tensor> joints_;
};

/// Most gradients are added as they come. Those of a recurrence's steps wait for each other: the products for a weight's gradient
/// become one product over all steps, the gradients of slices one concatenation.
class Arrivals {
 public:
  bool empty() const { return !first_.defined() && !sum_.defined() && waiting_.empty(); }
  /// `may_wait`: the gradient's inputs may live until all have arrived.
  void add(const Tensor& gradient, bool may_wait);
  /// Joins waiting gradients where that takes less than adding.
  void join(Joints& joints);
  /// The sum, after the last arrival.
  Tensor total(Joints& joints);

 private:
  void sort_in(const Tensor& gradient, bool may_wait);
  void join_slices();
  void add_up(const Tensor& gradient);

  /// Most values get one gradient only, which is kept as it is.
  Tensor first_;
  bool first_may_wait_ = false;
  Tensor sum_;
  Tensors waiting_;
};

}  // namespace clnet
