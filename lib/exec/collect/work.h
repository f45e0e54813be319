// The work of an evaluation, collected from the graph.
#pragma once

#include <cstdint>
#include <memory>
#include <memory_resource>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "clnet/tensor.h"
#include "lib/exec/collect/walk.h"
#include "lib/graph/node.h"
#include "lib/graph/slot.h"

namespace clnet::exec {

inline ValueCell& cell_of(const Tensor& tensor) { return node_of(tensor)->values[static_cast<std::size_t>(output_of(tensor))]; }
/// The value, speculative or not.
inline std::shared_ptr<Value> value_of(const Tensor& tensor) { return cell_of(tensor).get(); }
/// The value if the program asked for it: answers to the program depend on no other.
inline std::shared_ptr<Value> asked_value_of(const Tensor& tensor) { return cell_of(tensor).asked(); }

/// The values that may overwrite a leaf's memory, if the evaluation is its last reader. nothing: no value. ranges: a partial
/// rewrite that may be repeated after a failure (Launch::if_in_place). all: any elementwise result, as the caller has offered
/// (DonationOffer).
enum class MayOverwrite : std::uint8_t { nothing, ranges, all };

/// Offers the memory of what `slots` hold now, the offer's leaves. After success the caller sets all these slots to `results`
/// and drops the graph between. Its only handle of a leaf is the slot's; of the results it has uncounted() tensors only. A
/// failure half-way loses the leaves (see Plan::replay).
class DonationOffer {
 public:
  DonationOffer() = default;
  DonationOffer(std::vector<std::shared_ptr<const Slot>> slots, std::vector<const Node*> results);

  /// The slot of an offered leaf; null: not offered.
  std::shared_ptr<const Slot> slot_of(const Node* leaf) const;
  bool has_result(const Node* node) const;

 private:
  std::vector<std::pair<const Node*, std::shared_ptr<const Slot>>> leaves_;  ///< sorted, as is
  std::vector<const Node*> results_;
};

/// The number of a value of a work: leaves first, then the outputs of the nodes, both in order.
using ValueNumber = std::uint32_t;

/// The nodes to compute in topological order, the leaves with their values, and the wanted results. It is a snapshot of one
/// moment, whatever other threads evaluate meanwhile.
struct Work {
  std::vector<std::shared_ptr<Node>> nodes;
  std::vector<Tensor> leaves;                  ///< uncounted, as are all tensors here
  std::vector<std::shared_ptr<Value>> values;  ///< of the leaves
  std::vector<MayOverwrite> may_overwrite;     ///< by leaf; empty: all `nothing`
  /// The holders of a leaf that belong to the work and its caller.
  struct OwnHolders {
    std::uint32_t inputs = 0;
    std::shared_ptr<const Slot> slot;  ///< null, or a holder as long as the leaf is its value
  };
  std::vector<OwnHolders> own_holders;  ///< by leaf; only of leaves that may be overwritten
  std::vector<Tensor> wanted;           ///< results of `nodes`
  /// Output `output` of nodes[node].
  struct Result {
    std::uint32_t node;
    int output;
    auto operator<=>(const Result&) const = default;
  };
  /// A wanted tensor that had a value, which is held here, with its node's output.
  struct Present {
    const Node* node;
    int output;
    std::shared_ptr<Value> value;
  };
  std::vector<Present> present;
  std::vector<Result> speculative;  ///< further results, returned where launches write them anyway; in order

  // Set by number(), once all nodes and leaves are there:
  std::vector<ValueNumber> first_outputs;  ///< by node, then the number of values
  std::vector<std::size_t> first_reads;    ///< by node, then the number of reads
  std::vector<ValueNumber> reads;          ///< the nodes' inputs, node by node
  std::vector<ValueNumber> results;        ///< `wanted`
  void number();
  std::size_t value_count() const { return first_outputs.back(); }
  bool is_leaf(ValueNumber value) const { return value < leaves.size(); }
  /// The node of a value that is not a leaf.
  std::size_t producer(ValueNumber value) const;
  /// The inputs of a node.
  std::span<const ValueNumber> reads_of(std::size_t node) const {
    return std::span(reads).subspan(first_reads[node], first_reads[node + 1] - first_reads[node]);
  }

  /// The permission to overwrite a leaf now: the program may have made handles of it since the collection.
  MayOverwrite may_overwrite_now(std::size_t leaf) const;
  Tensor tensor(const Result& result) const { return uncounted(nodes[result.node], result.output); }
  /// The value of a wanted tensor, from those `made` or as found at collection: it may have been taken away since.
  template <class Results>
  std::shared_ptr<Value> value_of(const Tensor& asked, const Results& made) const {
    for (std::size_t i = 0; i < wanted.size(); ++i)
      if (wanted[i].same(asked)) return made[i];
    for (std::size_t i = 0; i < leaves.size(); ++i)
      if (leaves[i].same(asked)) return values[i];
    for (const auto& [node, output, value] : present)
      if (node == node_of(asked).get() && output == output_of(asked)) return value;
    return nullptr;
  }
};

/// All nodes that `tensors` need and that have no value yet. Nodes keep their inputs while `walk` lives.
Work collect(std::span<const Tensor> tensors, Walk& walk);
/// The same where no other thread evaluates the graph.
Work collect(std::span<const Tensor> tensors);

/// The same in several rounds, where the found nodes add more wanted tensors.
class Collector {
 public:
  explicit Collector(Walk& walk) : walk_(walk) {}
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;
  /// Starts a new collection.
  void clear();
  /// Adds the nodes of these tensors, and wants only these. Returns the new nodes in the program's order.
  std::vector<std::shared_ptr<Node>> add(std::span<const Tensor> tensors);
  Work& work() { return work_; }
  /// Ends the collection and returns the work. It includes the results that outside handles or graph refer to, and the
  /// may_overwrite of its leaves.
  Work take(const DonationOffer& offer);

 private:
  /// The state of a node's outputs when first seen: a value that another thread publishes later changes nothing.
  struct Found {
    bool computed = false;      ///< it is among the nodes to compute, except these outputs:
    std::vector<int> leaves;    ///< outputs that had a value
    bool asked = false;         ///< at least one output is wanted
    std::uint32_t readers = 0;  ///< number of node inputs that read it
    bool is_leaf(int output) const;
  };
  struct Visit {
    std::shared_ptr<Node> node;
    std::size_t next = 0;
  };
  void enter(const Tensor& tensor, Found& found);
  /// The holders of a node. inside: only the work. asked: also callers that want its outputs. outside: also a handle or graph,
  /// which may need more of it later.
  enum class Seen : std::uint8_t { inside, asked, outside };
  void find_may_overwrite(const std::vector<Seen>& seen, const DonationOffer& offer);

  Walk& walk_;
  Work work_;
  std::pmr::monotonic_buffer_resource memory_;  ///< of found_, whose entries are freed together
  std::pmr::unordered_map<const Node*, Found> found_{&memory_};
  std::vector<Visit> stack_;
};

/// The work over private nodes. While a plan is made, only their leaves have values.
Work private_copy(const Work& work);

}  // namespace clnet::exec
