// Which operations are computed together, while that is being decided.
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

/// Nodes in groups, each of which is to become one kernel. At first every node but views has a group of its own, of its number.
///
/// What holds at any time (and check() looks for):
///  1. where(k) are the groups that compute node k. home(k) writes its value if anything needs that from outside of what computes
///     it; then home(k) is one of them.
///  2. What a group reads and does not compute itself is written by a group that comes before it in the order: no group depends
///  on
///     itself.
///  3. A group does not compute what it reads at other places: a part of a value comes from memory.
///  4. Only its own group reads a head's first output, and only the operation behind it a prologue's; neither is a result.
class Grouping {
 public:
  struct Group {
    std::vector<Index> members;  ///< what its kernel computes, ascending; empty: the group is no more
    Index head = none;           ///< the member that lowers itself, where the others are the end of its kernel
    std::vector<Index> first;    ///< what the kernel of the operation that lowers itself begins with, ascending
    Index first_output = none;   ///< the last of them
  };

  /// The subgraph outlives it.
  explicit Grouping(const Subgraph& graph);

  std::size_t count() const { return graph_.nodes().size(); }
  const std::shared_ptr<Node>& node(Index k) const { return graph_.nodes()[k]; }
  std::int64_t elements(Index k) const { return node(k)->outputs[0].shape.numel(); }
  bool elementwise(Index k) const { return elementwise_[k]; }
  bool is_view(Index k) const { return view_[k]; }
  /// Whether one of its outputs is a result, or its first one.
  bool kept(Index k) const { return kept_[k]; }
  bool first_kept(Index k) const { return first_kept_[k]; }
  const std::vector<Index>& reads(Index k) const { return reads_[k]; }
  const std::vector<Index>& readers(Index k) const { return readers_[k]; }
  /// Whether it reads elements of the other's value at other places than its own.
  bool reads_part(Index reader, Index source) const;

  const Group& group(Index id) const { return groups_[id]; }
  Index home(Index k) const { return home_[k]; }
  const std::vector<Index>& where(Index k) const { return where_[k]; }
  bool computes(Index id, Index k) const;
  bool written(Index k) const { return written_[k]; }
  /// The elementwise members whose values the group writes.
  std::vector<Index> outputs(Index id) const;
  bool is_read_outside(Index k, Index group, Index or_this = none) const;

  /// How the order changes when two groups become one.
  struct Joint {
    bool early;                ///< the one comes to the other's place instead of the other way round
    std::vector<Index> moved;  ///< groups that go out of the way, in their order
  };
  /// Whether `to` may take in `from`, which comes before it: it needs nothing that others make of `from`. Nothing, too, where
  /// that is too much to search, so that planning stays linear.
  std::optional<Joint> joint(Index from, Index to) const;
  /// `to` computes what `from` computed.
  void join(Index from, Index to, const Joint& joint);
  /// `to` computes what `from` computed, where nothing reads either.
  void join_results(Index from, Index to);
  /// `from`, which makes only what `reader` reads, becomes the beginning of the reader's kernel.
  void put_first(Index from, Index output, Index reader);
  void set_head(Index id, Index head) { groups_[id].head = head; }

  /// Says who writes what, when no more values move to other groups.
  void find_written();
  /// All `targets` compute `tree`, of home(k), themselves, so that k is written no more.
  void compute_in(const std::vector<Index>& targets, const std::vector<Index>& tree, Index k);
  /// The members of a group that it still needs when the last of `tree` is computed elsewhere.
  std::vector<Index> remaining(Index home, const std::vector<Index>& tree) const;

  /// The groups, each behind those that it reads from, else as their last members were asked for. Throws Error if a group depends
  /// on itself.
  std::vector<Index> ordered() const;
  /// Throws Error, naming the operations, where one of the invariants does not hold.
  void check() const;

 private:
  class Search;

  template <class Function>
  void for_each_member(Index id, const Function& function) const {
    for (auto k : groups_[id].first) function(k);
    for (auto k : groups_[id].members) function(k);
  }
  /// Calls function(group, its member) for what must be computed before.
  template <class Function>
  void for_each_source(Index id, const Function& function) const;
  void absorb(Index from, Index to);
  [[noreturn]] void fail(Index id, std::string_view what) const;

  const Subgraph& graph_;
  // By node:
  std::vector<bool> elementwise_, view_, kept_, first_kept_, written_;
  std::vector<std::vector<Index>> reads_, readers_;
  std::vector<std::vector<Index>> parts_;  ///< those of reads_ whose elements are at other places
  std::vector<Index> home_;
  std::vector<std::vector<Index>> where_;
  // By group:
  std::vector<Group> groups_;
  Order order_;
  mutable std::vector<std::uint32_t> seen_[2];  ///< by the search that saw them last, from either side
  mutable std::uint32_t searches_ = 0;
};

}  // namespace clnet::exec
