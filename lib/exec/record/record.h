// From the graph to launches: lets each operation record how it is computed.
#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "lib/exec/choose/tuning.h"
#include "lib/exec/record/recorder.h"
#include "lib/exec/record/work.h"

namespace clnet::exec {

/// Which value of the recording an output of the graph is.
class ValueIds {
 public:
  /// Throws Error for a tensor that has none.
  ValueId at(const Tensor& tensor) const;
  bool contains(const Tensor& tensor) const { return find(tensor) >= 0; }
  void set(const Tensor& tensor, ValueId id);
  /// The tensor turned out to be no value of its own.
  void remove(const Tensor& tensor) { set(tensor, -1); }

 private:
  ValueId find(const Tensor& tensor) const;
  std::unordered_map<const Node*, std::vector<ValueId>> ids_;
};

/// Leaves become the recording's first values, in the order of `work.leaves`. `wanted` are the results to be kept; other values
/// may never come into being. `tuning` knows which solvers to prefer.
ValueIds record(const Work& work, std::span<const Tensor> wanted, const DeviceInfo& device, Recording& recording,
                const Tuning* tuning = nullptr);

}  // namespace clnet::exec
