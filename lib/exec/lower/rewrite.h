// Ways to compute some operations of a subgraph other than one by one: with less arithmetic, memory or traffic.
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

/// One way. It lives with the operation that it is about, which names it (Op::rewrite).
class Rewrite {
 public:
  Rewrite() = default;
  Rewrite(const Rewrite&) = delete;
  Rewrite& operator=(const Rewrite&) = delete;
  virtual ~Rewrite() = default;

  /// Before operations are fused: the same results from other nodes; nothing where that gains nothing.
  virtual std::optional<Subgraph> nodes(const Subgraph& graph) const;

  /// Groups that one operation computes, of which each but the first alone reads the result of the one before, as its first
  /// input.
  struct Sequence {
    std::vector<std::size_t> groups;  ///< ascending
    /// Records the launches that compute the last one's output. The recorder's inputs are those of the first group's node, then
    /// those of each later one's, in which -1 stands for the result before.
    std::function<void(Recorder&)> lower;
  };
  /// When operations are fused. No group is in two sequences.
  virtual std::vector<Sequence> sequences(std::span<const Group> groups, const Subgraph& graph, const DeviceInfo& device,
                                          const Choosing& choosing) const;
};

/// Those that the subgraph's operations name, each once.
std::vector<const Rewrite*> rewrites_of(const Subgraph& graph);

/// The subgraph by the ways that its operations name, unless nothing is to be fused.
Subgraph rewritten(Subgraph graph, const Options& options);

}  // namespace clnet::exec
