// What an evaluation has to do, read off the graph.
#pragma once

#include <cstdint>
#include <memory>
#include <memory_resource>
#include <span>
#include <unordered_map>
#include <vector>

#include "clnet/tensor.h"
#include "lib/graph/node.h"

namespace clnet::exec {

inline ValueSlot& slot_of(const Tensor& tensor) { return tensor.node()->values[static_cast<std::size_t>(tensor.output())]; }
inline std::shared_ptr<Value> value_of(const Tensor& tensor) { return slot_of(tensor).get(); }
/// The same after evaluation: never null.
std::shared_ptr<Value> evaluated(const Tensor& tensor);

/// The nodes to compute, each after those that it needs, the leaves that they read with their values, and what is asked for: as
/// they were found at one time, whatever other threads evaluate meanwhile.
struct Work {
  std::vector<std::shared_ptr<Node>> nodes;
  std::vector<Tensor> leaves;
  std::vector<std::shared_ptr<Value>> values;  ///< of the leaves
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
  bool keeps = false;        ///< its nodes live on: what somebody may read later is worth keeping
  std::vector<Result> kept;  ///< further results, to be kept where they are written anyway; in order

  Tensor tensor(const Result& result) const { return {nodes[result.node], result.output}; }
  /// The value of something that was asked for, from `results` of `wanted` or as it was found: it may have been taken away since.
  template <class Results>
  std::shared_ptr<Value> value_of(const Tensor& asked, const Results& results) const {
    for (std::size_t i = 0; i < wanted.size(); ++i)
      if (wanted[i].same(asked)) return results[i];
    for (std::size_t i = 0; i < leaves.size(); ++i)
      if (leaves[i].same(asked)) return values[i];
    for (const auto& [node, output, value] : present)
      if (node == asked.node().get() && output == asked.output()) return value;
    return nullptr;
  }
};

/// Everything that `tensors` need and that has no value yet.
CLNET_API Work collect(std::span<const Tensor> tensors);

/// The same in several goes, where what is found makes more to be asked for.
class Collector {
 public:
  Collector() = default;
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;
  /// Begins anew.
  void clear();
  /// Adds what these need, and wants these only. Returns the nodes that were not there before, in the program's order.
  std::vector<std::shared_ptr<Node>> add(std::span<const Tensor> tensors);
  Work& work() { return work_; }
  /// The work, along with what of its results a handle or a graph outside of it refers to. Ends the collection.
  Work take();

 private:
  /// What the first look at a node's outputs found: a value that another thread publishes later changes nothing.
  struct Found {
    bool computed = false;    ///< it is among the nodes, and so are all outputs but these:
    std::vector<int> leaves;  ///< outputs that had a value
    long readers = 0;         ///< inputs of nodes that it is
    bool is_leaf(int output) const;
  };
  struct Visit {
    std::shared_ptr<Node> node;
    std::size_t next = 0;
  };
  void enter(const Tensor& tensor, Found& found);

  Work work_;
  std::pmr::monotonic_buffer_resource memory_;  ///< of found_, whose entries come and go together
  std::pmr::unordered_map<const Node*, Found> found_{&memory_};
  std::vector<Visit> stack_;
};

/// The same work over nodes of its own, which no other thread sees: in those a leaf has a value and nothing else has one, for as
/// long as it takes to make a plan.
Work private_copy(const Work& work);

}  // namespace clnet::exec
