// The states of an optimizer, dealt out to the ranks of a group: whole parameters, as some rules look at a parameter as a whole.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "clnet/dist.h"
#include "clnet/nn/parameter.h"
#include "clnet/tensor.h"
#include "lib/exec/collect/copy.h"

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
  /// A parameter in a step, on a device or, null, on none yet.
  struct Moved {
    int owner;
    nn::Parameter parameter;
    Tensor computed, gradient;  ///< `computed`: the new value, where this rank keeps the states
    const ocl::Context* device;
  };
  /// Adds the new values of parameters whose states other ranks keep. Returns what is to be evaluated along, as other ranks wait
  /// for this one's values, or nothing. Throws Error, for this optimizer, where parameters are on several devices.
  Tensor take_others(std::string_view optimizer, const std::vector<Moved>& moved,
                     std::vector<std::pair<nn::Parameter, Tensor>>& values) const;
  /// A state on its way to rank 0: its value there, in host memory, and on its owner; else undefined. All ranks call it.
  Tensor to_first(int owner, const Spec& spec, const Tensor& value) const;

 private:
  dist::Group group_;
  std::vector<std::int64_t> loads_;  ///< bytes by rank
};

}  // namespace clnet::optim
