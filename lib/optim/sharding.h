// The states of an optimizer, dealt out to the ranks of a group: whole parameters, as some rules look at a parameter as a whole.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "clnet/dist.h"
#include "clnet/nn/parameter.h"
#include "clnet/tensor.h"

namespace clnet::optim {

class Sharding {
 public:
  /// The owner of states that every rank has, as there are none.
  static constexpr int everyone = -1;

  explicit Sharding(dist::Group group) : group_(std::move(group)), loads_(static_cast<std::size_t>(group_.size())) {}
  const dist::Group& group() const { return group_; }
  bool keeps(int owner) const { return owner == everyone || owner == group_.rank(); }

  /// An owner for each, from the bytes of its states: the largest first, each to the rank that has the least.
  std::vector<int> deal(const std::vector<std::int64_t>& bytes);
  /// What a step evaluates along of values that only other ranks step: an element of each. So the parameters count as values that
  /// change, as they do on their owners: one that nothing but the model reads would get the solvers of one that stays, and other
  /// bits.
  static std::vector<Tensor> readers_of(const std::vector<Tensor>& others);
  /// Sets parameters to their owners' values. All ranks call it, behind the evaluation of a step, so that states are updated in
  /// place. Throws RankLost.
  void exchange(const std::vector<std::pair<int, nn::Parameter>>& moved) const;
  /// A state on its way to rank 0: its value there, in host memory, and on its owner; else undefined. All ranks call it.
  Tensor to_first(int owner, const Spec& spec, const Tensor& value) const;

 private:
  dist::Group group_;
  std::vector<std::int64_t> loads_;  ///< bytes by rank
};

}  // namespace clnet::optim
