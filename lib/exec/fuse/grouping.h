// Groups of operations while fusion decides on them.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "clnet/tensor.h"
#include "lib/exec/collect/subgraph.h"
#include "lib/exec/fuse/order.h"
#include "lib/graph/node.h"

namespace clnet::exec {

/// The number of a node, or of the group that began with it.
using Index = NodeNumber;

/// Nodes in groups; each group becomes one kernel. At first every node, except views, has a group with its own number.
///
/// Invariants, which check() tests:
///   1. where(k) are the groups that compute node k. writer(k) writes its value if anything outside of these groups needs it;
///      then writer(k) is one of them.
///   2. Earlier groups write a group's inputs, unless it computes them itself: no group depends on itself.
///   3. A group does not compute a value that it reads at other places: parts of a value come from memory.
///   4. Only its own group reads a head's first output, and only the operation after it a prologue's; neither is a result.
class Grouping {
 public:
  struct Group {
    std::vector<Index> members;  ///< the nodes of its kernel, ascending; empty: the group was merged
    Index head = none;           ///< the member with its own lowering, where the others end its kernel
    std::vector<Index> first;    ///< the nodes at the beginning of the head's kernel, ascending
    Index first_output = none;   ///< the last of `first`
  };

  /// The subgraph must outlive it.
  explicit Grouping(const Subgraph& graph);

  std::size_t count() const { return graph_.nodes().size(); }
  const std::shared_ptr<Node>& node(Index k) const { return graph_.nodes()[k]; }
  std::int64_t elements(Index k) const { return node(k)->outputs[0].shape.numel(); }
  bool elementwise(Index k) const { return elementwise_[k]; }
  bool is_view(Index k) const { return view_[k]; }
  /// Whether one of its outputs, or its first one, is a result.
  bool is_result(Index k) const { return is_result_[k]; }
  bool is_first_result(Index k) const { return is_first_result_[k]; }
  const std::vector<Index>& reads(Index k) const { return reads_[k]; }
  const std::vector<Index>& readers(Index k) const { return readers_[k]; }
  /// Whether it reads elements of the other's value at other places than its own.
  bool reads_elsewhere(Index reader, Index source) const;

  const Group& group(Index id) const { return groups_[id]; }
  Index writer(Index k) const { return writer_[k]; }
  const std::vector<Index>& where(Index k) const { return where_[k]; }
  bool computes(Index id, Index k) const;
  bool written(Index k) const { return written_[k]; }
  /// The elementwise members whose values the group writes.
  std::vector<Index> outputs(Index id) const;
  bool is_read_outside(Index k, Index group, Index or_this = none) const;

  /// The change of the order when two groups merge.
  struct Joint {
    bool early;                ///< the one takes the other's place, instead of the reverse
    std::vector<Index> moved;  ///< groups that move aside, in their order
  };
  /// Whether `to` may absorb the earlier group `from`: no group between them connects the two. Also nothing where the search is
  /// too long, so that planning stays linear.
  std::optional<Joint> joint(Index from, Index to) const;
  /// Moves the nodes of `from` to `to`.
  void join(Index from, Index to, const Joint& joint);
  /// The same where nothing reads either group.
  void join_results(Index from, Index to);
  /// Makes `from`, which `reader` alone reads, the beginning of the reader's kernel.
  void put_first(Index from, Index output, Index reader);
  void set_head(Index id, Index head) { groups_[id].head = head; }

  /// Determines the written values, once no more nodes move between groups.
  void find_written();
  /// Lets all `targets` compute `tree`, of writer(k), themselves, so that k is no longer written.
  void compute_in(const std::vector<Index>& targets, const std::vector<Index>& tree, Index k);
  /// The members that a group still needs after `tree` has moved elsewhere.
  std::vector<Index> remaining(Index writer, const std::vector<Index>& tree) const;

  /// The groups in topological order, otherwise in the program's order of their last members. Throws Error if a group depends on
  /// itself.
  std::vector<Index> ordered() const;
  /// Throws Error, with the operations, where an invariant does not hold.
  void check() const;

 private:
  class Search;

  template <class Function>
  void for_each_member(Index id, const Function& function) const {
    for (auto k : groups_[id].first) function(k);
    for (auto k : groups_[id].members) function(k);
  }
  /// Calls function(group, its member) for everything that must be computed before.
  template <class Function>
  void for_each_source(Index id, const Function& function) const;
  void absorb(Index from, Index to);
  [[noreturn]] void fail(Index id, std::string_view what) const;

  const Subgraph& graph_;
  // By node:
  std::vector<bool> elementwise_, view_, is_result_, is_first_result_, written_;
  std::vector<std::vector<Index>> reads_, readers_;
  std::vector<std::vector<Index>> elsewhere_;  ///< the part of reads_ with elements at other places
  std::vector<Index> writer_;
  std::vector<std::vector<Index>> where_;
  // By group:
  std::vector<Group> groups_;
  Order order_;
  mutable std::vector<std::uint32_t> seen_[2];  ///< number of the last search that saw them, from either side
  mutable std::uint32_t searches_ = 0;
};

}  // namespace clnet::exec
