// Rewrites: ways to compute several operations together, with less arithmetic, memory or traffic.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "clnet/device.h"
#include "lib/exec/collect/subgraph.h"
#include "lib/exec/fuse/fusion.h"
#include "lib/exec/launch/choosing.h"
#include "lib/exec/launch/recorder.h"

namespace clnet::exec {

/// One rewrite. It lives in its operation's folder, and the operation names it (Op::rewrite).
class Rewrite {
 public:
  Rewrite() = default;
  Rewrite(const Rewrite&) = delete;
  Rewrite& operator=(const Rewrite&) = delete;
  virtual ~Rewrite() = default;

  /// Runs before fusion: a subgraph with other nodes and the same results; nothing where that gains nothing.
  virtual std::optional<Subgraph> nodes(const Subgraph& graph) const;

  /// Groups that are computed together. Each one after the first is the only reader of the result before, as its first input.
  struct FusedGroups {
    std::vector<std::size_t> groups;  ///< ascending
    /// Records the launches for the last group's output. The recorder's inputs are those of the first group's node, then those of
    /// each later one; -1 stands for the result before.
    std::function<void(Recorder&)> lower;
  };
  /// Runs during fusion. No group is in two of them.
  virtual std::vector<FusedGroups> fused_groups(std::span<const Group> groups, const Subgraph& graph, const DeviceInfo& device,
                                                const Choosing& choosing) const;
};

/// The rewrites that the subgraph's operations name, each once.
std::vector<const Rewrite*> rewrites_of(const Subgraph& graph);

/// The subgraph after all rewrites of its operations, unless fusion is off.
Subgraph rewritten(Subgraph graph, const Options& options);

}  // namespace clnet::exec
