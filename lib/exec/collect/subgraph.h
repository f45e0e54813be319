// What a plan is made from: a copy of a work's nodes that no other thread sees, with everything in it known by a number.
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

/// A node of a subgraph, by its place.
using NodeNumber = std::size_t;
constexpr NodeNumber none = std::numeric_limits<NodeNumber>::max();

class Subgraph {
 public:
  /// Copies the nodes, over leaves of its own. In the place of a view that is wanted and shows less than a quarter of its memory
  /// there is a copy of it, so that a result does not keep all of that.
  explicit Subgraph(const Work& work);

  /// Each after those that it reads.
  const std::vector<std::shared_ptr<Node>>& nodes() const { return nodes_; }
  /// The work's, in its order. They have values; nothing else has one.
  const std::vector<Tensor>& leaves() const { return leaves_; }
  const std::vector<Tensor>& wanted() const { return wanted_; }
  /// A further result, to be kept where it is written anyway.
  struct Kept {
    Tensor tensor;
    Work::Result of;  ///< the work's
  };
  const std::vector<Kept>& kept() const { return kept_; }

  static ValueNumber number(const Tensor& tensor) {
    return node_of(tensor)->number + static_cast<ValueNumber>(output_of(tensor));
  }
  std::size_t value_count() const { return roots_.size(); }
  bool is_leaf(ValueNumber value) const { return value < leaves_.size(); }
  /// The node whose output it is; `none`: it is a leaf.
  NodeNumber producer(ValueNumber value) const { return producers_[value]; }

  /// The value in whose memory another one's elements lie, and where they begin: itself, unless it is a view.
  struct Root {
    ValueNumber value;
    std::int64_t offset;  ///< in elements
  };
  const Root& root(ValueNumber value) const { return roots_[value]; }
  const Root& root(const Tensor& tensor) const { return root(number(tensor)); }
  /// The node that computes the tensor's elements; `none`: they are a leaf's.
  NodeNumber source(const Tensor& tensor) const { return producer(root(tensor).value); }

  /// An input of a node.
  struct Use {
    NodeNumber node;
    std::size_t input;
  };
  /// The inputs that are the value itself, in the nodes' order. Views are nodes, too.
  std::span<const Use> uses(ValueNumber value) const;
  bool is_wanted(ValueNumber value) const { return wants_[value]; }
  bool is_kept(ValueNumber value) const { return keeps_[value]; }

 private:
  friend class Rebuilding;
  Subgraph(std::vector<std::shared_ptr<Node>> nodes, std::vector<Tensor> leaves, std::vector<Tensor> wanted,
           std::vector<Kept> kept);
  void number();

  std::vector<std::shared_ptr<Node>> nodes_;
  std::vector<Tensor> leaves_, wanted_;
  std::vector<Kept> kept_;
  // By value:
  std::vector<NodeNumber> producers_;
  std::vector<Root> roots_;
  std::vector<bool> wants_, keeps_;
  std::vector<std::size_t> first_uses_;  ///< and where the last one's end
  std::vector<Use> uses_;
};

/// Another subgraph over the same leaves, made node by node from one that stays as it is.
class Rebuilding {
 public:
  explicit Rebuilding(const Subgraph& from);

  /// What stands for a value of the given subgraph; undefined: nothing yet.
  const Tensor& now(ValueNumber value) const { return now_[value]; }
  const Tensor& now(const Tensor& tensor) const { return now(Subgraph::number(tensor)); }
  void set(const Tensor& tensor, Tensor now) { now_[Subgraph::number(tensor)] = std::move(now); }
  /// Adds a node, which reads what is there.
  void add(std::shared_ptr<Node> node) { nodes_.push_back(std::move(node)); }
  /// Adds a node that stands for one of the given subgraph, with the same outputs.
  void put(NodeNumber instead, std::shared_ptr<Node> node);
  /// Adds a copy of a node of the given subgraph, over what stands for its inputs, and lets it stand for that.
  void copy(NodeNumber node);
  /// Wants what stands for what was wanted, and keeps what stands for what was kept, where anything does.
  Subgraph finish() &&;

 private:
  const Subgraph& from_;
  std::vector<std::shared_ptr<Node>> nodes_;
  std::vector<Tensor> now_;
};

}  // namespace clnet::exec
