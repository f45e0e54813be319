// What an evaluation has to do, read off the graph.
#pragma once

#include <cstdint>
#include <memory>
#include <memory_resource>
#include <span>
#include <unordered_map>
#include <vector>

#include "clnet/tensor.h"
#include "lib/exec/collect/walk.h"
#include "lib/graph/node.h"

namespace clnet::exec {

inline ValueSlot& slot_of(const Tensor& tensor) { return node_of(tensor)->values[static_cast<std::size_t>(output_of(tensor))]; }
inline std::shared_ptr<Value> value_of(const Tensor& tensor) { return slot_of(tensor).get(); }

/// What a leaf's memory may take when the evaluation is the last that reads it: nothing; what rewrites parts of it, and may be
/// made again if the evaluation fails (Launch::if_in_place); or whatever is made of it element by element, as whoever asks for
/// the evaluation has said (Giving).
enum class Gift : std::uint8_t { nothing, rewritten, any };

/// New values may be made in the memory of `leaves`, each of which is a slot's value: when the evaluation has succeeded, the
/// caller sets all of the slots to `results` and lets go of the graph between the two. The slot's handle is the only one that
/// the caller has of a leaf; of a result it has none, but uncounted() tensors. A failure half-way loses the leaves (see
/// Plan::replay).
class Giving {
 public:
  Giving() = default;
  Giving(std::vector<const Node*> leaves, std::vector<const Node*> results);

  bool has_leaf(const Node* node) const;
  bool has_result(const Node* node) const;

 private:
  std::vector<const Node*> leaves_, results_;  ///< sorted
};

/// A value of a work, by number: the leaves first, in their order, then the outputs of the nodes in theirs.
using ValueNumber = std::uint32_t;

/// The nodes to compute, each after those that it needs, the leaves that they read with their values, and what is asked for: as
/// they were found at one time, whatever other threads evaluate meanwhile.
struct Work {
  std::vector<std::shared_ptr<Node>> nodes;
  std::vector<Tensor> leaves;                  ///< uncounted, as are all tensors here
  std::vector<std::shared_ptr<Value>> values;  ///< of the leaves
  std::vector<Gift> gifts;                     ///< of the leaves; empty: of all nothing
  std::vector<Holders::Counts> own_holders;    ///< of the leaves that give something: the work's and the asker's
  std::vector<Tensor> wanted;                  ///< results of `nodes`
  /// Output `output` of nodes[node].
  struct Result {
    std::uint32_t node;
    int output;
    auto operator<=>(const Result&) const = default;
  };
  /// What was asked for and had a value, which is held here: by what it is an output of.
  struct Present {
    const Node* node;
    int output;
    std::shared_ptr<Value> value;
  };
  std::vector<Present> present;
  std::vector<Result> kept;  ///< further results, to be kept where they are written anyway; in order

  // Set by number(), once all nodes and leaves are there:
  std::vector<ValueNumber> first_outputs;  ///< by node, and how many values there are
  std::vector<std::size_t> first_reads;    ///< by node, and how many reads there are
  std::vector<ValueNumber> reads;          ///< the nodes' inputs, one node's after the other's
  std::vector<ValueNumber> results;        ///< `wanted`
  void number();
  std::size_t value_count() const { return first_outputs.back(); }
  bool is_leaf(ValueNumber value) const { return value < leaves.size(); }
  /// The node that computes a value that is no leaf.
  std::size_t producer(ValueNumber value) const;
  /// The inputs of a node.
  std::span<const ValueNumber> reads_of(std::size_t node) const {
    return std::span(reads).subspan(first_reads[node], first_reads[node + 1] - first_reads[node]);
  }

  /// What a leaf may still give: who asks for the evaluation may have made handles of it since it was collected.
  Gift gift_now(std::size_t leaf) const;
  Tensor tensor(const Result& result) const { return uncounted(nodes[result.node], result.output); }
  /// The value of something that was asked for, from those `made` of `wanted` or as it was found: it may have been taken away
  /// since.
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

/// Everything that `tensors` need and that has no value yet. Its nodes keep their inputs for as long as `walk` lives.
Work collect(std::span<const Tensor> tensors, Walk& walk);
/// The same where no other thread evaluates the graph.
Work collect(std::span<const Tensor> tensors);

/// The same in several goes, where what is found makes more to be asked for.
class Collector {
 public:
  explicit Collector(Walk& walk) : walk_(walk) {}
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;
  /// Begins anew.
  void clear();
  /// Adds what these need, and wants these only. Returns the nodes that were not there before, in the program's order.
  std::vector<std::shared_ptr<Node>> add(std::span<const Tensor> tensors);
  Work& work() { return work_; }
  /// The work, along with what of its results a handle or a graph outside of it refers to, and what of its leaves nothing else
  /// does, or is given. Ends the collection.
  Work take(const Giving& giving);

 private:
  /// What the first look at a node's outputs found: a value that another thread publishes later changes nothing.
  struct Found {
    bool computed = false;      ///< it is among the nodes, and so are all outputs but these:
    std::vector<int> leaves;    ///< outputs that had a value
    bool asked = false;         ///< for one of its outputs at least
    std::uint32_t readers = 0;  ///< inputs of nodes that it is
    bool is_leaf(int output) const;
  };
  struct Visit {
    std::shared_ptr<Node> node;
    std::size_t next = 0;
  };
  void enter(const Tensor& tensor, Found& found);
  /// Who holds a node of the work: the work; those besides who ask for outputs of it; or a handle or a graph, too, that may ask
  /// for more of it later.
  enum class Seen : std::uint8_t { inside, asked, outside };
  void find_gifts(const std::vector<Seen>& seen, const Giving& giving);

  Walk& walk_;
  Work work_;
  std::pmr::monotonic_buffer_resource memory_;  ///< of found_, whose entries come and go together
  std::pmr::unordered_map<const Node*, Found> found_{&memory_};
  std::vector<Visit> stack_;
};

/// The same work over nodes of its own, which no other thread sees: in those a leaf has a value and nothing else has one, for as
/// long as it takes to make a plan.
Work private_copy(const Work& work);

}  // namespace clnet::exec
