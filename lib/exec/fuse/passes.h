// Groups that become one pass over the data: each alone reads what the one before makes, which is then no value of the plan.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <vector>

#include "clnet/device.h"
#include "lib/exec/fuse/fusion.h"
#include "lib/exec/launch/choosing.h"

namespace clnet::exec {

class Passes {
 public:
  /// Asks the operations that may end a pass (Op::pass_length). `wanted` are to be kept.
  Passes(std::span<const Group> groups, std::span<const Tensor> wanted, const DeviceInfo& device, const Choosing& choosing);

  /// Whether the group is recorded by one that comes later.
  bool before_end(std::size_t group) const { return inner_[group]; }
  /// The groups of the pass that ends with this one, itself last; empty: it is a pass of its own.
  const std::vector<std::size_t>& ending_with(std::size_t group) const;

 private:
  std::vector<bool> inner_;
  std::map<std::size_t, std::vector<std::size_t>> passes_;
};

}  // namespace clnet::exec
