// From a graph to launches: the one way there, for plans, reports and trials of solvers.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "lib/exec/choose/preferences.h"
#include "lib/exec/collect/work.h"
#include "lib/exec/launch/recorder.h"
#include "lib/exec/options/options.h"

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

struct Lowering {
  Options options = Options::now();
  const Preferences* preferences = nullptr;  ///< which solvers to take; null: their own order decides
  std::vector<std::int64_t> lengths = {};    ///< see Recording::set_lengths()
  std::vector<Maker> avoided = {};           ///< see Choosing
  ListChoices* list = nullptr;               ///< see Choosing
};

struct Lowered {
  Recording recording;           ///< its first values are the work's leaves, in their order
  ValueIds ids;                  ///< of leaves and results; other values may never come into being
  std::vector<ValueId> results;  ///< of what the work wants
};

/// Fuses the work's operations and lets each group record its launches.
Lowered lower(const Work& work, const DeviceInfo& device, Lowering how = {});

}  // namespace clnet::exec
