// The input of planning: a private copy of a work's nodes, with a number for each value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "clnet/tensor.h"
#include "lib/exec/collect/work.h"
#include "lib/graph/node.h"

namespace clnet::exec {

/// The index of a node in a subgraph.
using NodeNumber = std::size_t;
constexpr NodeNumber none = std::numeric_limits<NodeNumber>::max();

class Subgraph {
 public:
  /// Copies the nodes over new leaves. A wanted view of less than a quarter of its memory becomes a copy, so that the result does
  /// not keep the whole memory.
  explicit Subgraph(const Work& work);

  /// The nodes, each after its inputs.
  const std::vector<std::shared_ptr<Node>>& nodes() const { return nodes_; }
  /// The work's leaves, in its order. Only they have values.
  const std::vector<Tensor>& leaves() const { return leaves_; }
  const std::vector<Tensor>& wanted() const { return wanted_; }
  /// A further result, returned where a launch writes it anyway.
  struct SpeculativeOutput {
    Tensor tensor;
    Work::Result of;  ///< its place in the work
  };
  const std::vector<SpeculativeOutput>& speculative() const { return speculative_; }

  static ValueNumber number(const Tensor& tensor) {
    return node_of(tensor)->number + static_cast<ValueNumber>(output_of(tensor));
  }
  std::size_t value_count() const { return roots_.size(); }
  bool is_leaf(ValueNumber value) const { return value < leaves_.size(); }
  /// The node of a value; `none` for a leaf.
  NodeNumber producer(ValueNumber value) const { return producers_[value]; }

  /// The value whose memory contains another value's elements, and their offset: itself, unless it is a view.
  struct Root {
    ValueNumber value;
    std::int64_t offset;  ///< in elements
  };
  const Root& root(ValueNumber value) const { return roots_[value]; }
  const Root& root(const Tensor& tensor) const { return root(number(tensor)); }
  /// The node that computes the tensor's elements; `none` for those of a leaf.
  NodeNumber source(const Tensor& tensor) const { return producer(root(tensor).value); }

  /// An input of a node.
  struct Use {
    NodeNumber node;
    std::size_t input;
  };
  /// The inputs that are this value, in the nodes' order. Views are nodes, too.
  std::span<const Use> uses(ValueNumber value) const;
  bool is_wanted(ValueNumber value) const { return wants_[value]; }
  bool is_speculative(ValueNumber value) const { return is_speculative_[value]; }

 private:
  friend class Rebuilding;
  Subgraph(std::vector<std::shared_ptr<Node>> nodes, std::vector<Tensor> leaves, std::vector<Tensor> wanted,
           std::vector<SpeculativeOutput> speculative);
  void number();

  std::vector<std::shared_ptr<Node>> nodes_;
  std::vector<Tensor> leaves_, wanted_;
  std::vector<SpeculativeOutput> speculative_;
  // By value:
  std::vector<NodeNumber> producers_;
  std::vector<Root> roots_;
  std::vector<bool> wants_, is_speculative_;
  std::vector<std::size_t> first_uses_;  ///< one more entry than values: the end
  std::vector<Use> uses_;
};

/// Builds another subgraph over the same leaves, node by node; the given one stays unchanged.
class Rebuilding {
 public:
  explicit Rebuilding(const Subgraph& from);

  /// The replacement of a value of the given subgraph; undefined: none yet.
  const Tensor& now(ValueNumber value) const { return now_[value]; }
  const Tensor& now(const Tensor& tensor) const { return now(Subgraph::number(tensor)); }
  void set(const Tensor& tensor, Tensor now) { now_[Subgraph::number(tensor)] = std::move(now); }
  /// Adds a node over nodes that are there.
  void add(std::shared_ptr<Node> node) { nodes_.push_back(std::move(node)); }
  /// Adds a node that replaces one of the given subgraph, with the same outputs.
  void put(NodeNumber instead, std::shared_ptr<Node> node);
  /// Adds a copy of a node over the replacements of its inputs; the copy replaces the node.
  void copy(NodeNumber node);
  /// Finishes with the replacements of wanted values and speculative outputs; one of the latter without a
  /// replacement is dropped.
  Subgraph finish() &&;

 private:
  const Subgraph& from_;
  std::vector<std::shared_ptr<Node>> nodes_;
  std::vector<Tensor> now_;
};

}  // namespace clnet::exec
