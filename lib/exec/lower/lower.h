// Lowering, from a graph to launches: the only way, for plans, reports and trials of solvers.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/exec/choose/preferences.h"
#include "lib/exec/collect/subgraph.h"
#include "lib/exec/launch/recorder.h"
#include "lib/exec/options/options.h"

namespace clnet::exec {

/// The recording's value id of each value of the subgraph.
class ValueIds {
 public:
  explicit ValueIds(const Subgraph& graph) : ids_(graph.value_count(), -1) {}
  /// Throws Error for a tensor without an id.
  ValueId at(const Tensor& tensor) const;
  bool contains(const Tensor& tensor) const { return ids_[Subgraph::number(tensor)] >= 0; }
  void set(const Tensor& tensor, ValueId id) { ids_[Subgraph::number(tensor)] = id; }
  /// Removes the id of a tensor that has no value of its own.
  void remove(const Tensor& tensor) { set(tensor, -1); }

 private:
  std::vector<ValueId> ids_;
};

struct Lowering {
  Options options = Options::now();
  const Preferences* preferences = nullptr;  ///< preferred solvers; null: their own order decides
  std::vector<std::int64_t> lengths = {};    ///< see Recording::set_lengths()
  std::vector<Maker> avoided = {};           ///< see Choosing
  ListChoices* list = nullptr;               ///< see Choosing
};

struct Lowered {
  Recording recording;           ///< its first values are the leaves, in order
  ValueIds ids;                  ///< of leaves and results; other values may not exist
  std::vector<ValueId> results;  ///< ids of the wanted values
};

/// Fuses the operations and lets each group record its launches.
Lowered lower(const Subgraph& graph, const DeviceInfo& device, Lowering how = {});

}  // namespace clnet::exec
