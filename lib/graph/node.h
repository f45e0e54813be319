// A node of the graph: a leaf with a value, or an operation with its inputs.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "clnet/tensor.h"
#include "lib/base/access.h"
#include "lib/base/spin_guard.h"
#include "lib/graph/op.h"
#include "lib/graph/scope.h"

namespace clnet {

/// What an evaluated output holds; the executor defines what that is on a device.
struct Value {
  virtual ~Value() = default;
  /// The bytes, where the host has them; null: only a device does.
  virtual const std::byte* on_host() const { return nullptr; }
  /// One more slot holds it, or one fewer.
  virtual void count(int /*by*/) {}
};

/// A leaf's bytes in host memory, until a device needs them.
struct HostValue : Value {
  explicit HostValue(std::vector<std::byte> content) : bytes(std::move(content)) {}
  const std::byte* on_host() const override { return bytes.data(); }
  std::vector<std::byte> bytes;
};

struct Effect;

/// Who refers to an output of a node and may ask for its value: tensors as handles, and inputs of nodes. What merely keeps the
/// node alive (a pointer to it, an uncounted() tensor) is not among them. Only who is one of them can add another: what one
/// thread finds to be its own alone stays so.
struct Holders {
  struct Counts {
    std::uint32_t handles = 0, inputs = 0;
  };
  /// Both as they are at one moment.
  Counts now() const {
    const auto found = both.load(std::memory_order_acquire);
    return {static_cast<std::uint32_t>(found), static_cast<std::uint32_t>(found >> 32)};
  }
  detail::HolderCount both{0};  ///< tensors change it
};

/// Where a value is once it is known. Several threads may evaluate a graph that they share: each reads a slot as it is at that
/// moment, and keeps what it found. Slots are what owns values (Value::count): nothing is made in the place of what two hold.
class ValueSlot {
 public:
  ValueSlot() = default;
  ~ValueSlot() {
    if (value_) value_->count(-1);
  }
  ValueSlot(const ValueSlot&) = delete;
  ValueSlot& operator=(const ValueSlot&) = delete;

  std::shared_ptr<Value> get() const {
    const SpinGuard guard(busy_);
    return value_;
  }
  /// Whether there is a value; without touching its pointer.
  explicit operator bool() const { return known_.load(std::memory_order_acquire); }
  void set(std::shared_ptr<Value> value) {
    if (value) value->count(1);
    {
      const SpinGuard guard(busy_);
      swap(value);
    }
    // What was there goes without the lock: freeing it may take others.
    if (value) value->count(-1);
  }
  /// Sets it where it still is `expected`; returns what is there then.
  std::shared_ptr<Value> exchange(const Value* expected, std::shared_ptr<Value> value) {
    if (value) value->count(1);
    std::shared_ptr<Value> now;
    {
      const SpinGuard guard(busy_);
      if (value_.get() == expected) swap(value);
      now = value_;
    }
    if (value) value->count(-1);
    return now;
  }
  /// Takes `expected` away where it is here and nothing else keeps it alive, so that its memory comes free; else null.
  std::shared_ptr<Value> take_last(const std::weak_ptr<Value>& expected) {
    std::shared_ptr<Value> taken;
    {
      const SpinGuard guard(busy_);
      const bool is_here = !expected.owner_before(value_) && !value_.owner_before(expected);
      if (value_ && is_here && value_.use_count() == 1) swap(taken);
    }
    if (taken) taken->count(-1);
    return taken;
  }

  Holders holders;  ///< of the output whose value it is

 private:
  void swap(std::shared_ptr<Value>& value) {
    known_.store(value != nullptr, std::memory_order_release);
    value_.swap(value);
  }

  mutable std::atomic_flag busy_;
  std::atomic<bool> known_{false};
  std::shared_ptr<Value> value_;
};

/// A slot per output; the first is where the node is, as most nodes have no other.
class ValueSlots {
 public:
  explicit ValueSlots(std::size_t count) : more_(count > 1 ? std::make_unique<ValueSlot[]>(count - 1) : nullptr) {}
  ValueSlot& operator[](std::size_t output) { return output == 0 ? first_ : more_[output - 1]; }
  const ValueSlot& operator[](std::size_t output) const { return output == 0 ? first_ : more_[output - 1]; }

 private:
  ValueSlot first_;
  std::unique_ptr<ValueSlot[]> more_;
};

struct Node {
  std::shared_ptr<const Op> op;  ///< empty: a leaf
  Tensors inputs;                ///< each counts as such
  Specs outputs;
  std::vector<std::optional<Alias>> aliases;  ///< one per output, as Op::alias says; empty where the outputs are computed
  ValueSlots values;                          ///< one per output; empty until evaluated
  const std::uint64_t sequence;               ///< grows from node to node: the order in which the program asked for them
  std::uint64_t checkpoint = 0;               ///< the call of checkpoint() that made it; 0: none
  std::uint64_t slot = 0;  ///< the slot that it is a value of (lib/graph/slot.h): a leaf for gradients; 0: none
  const ScopePtr scope;    ///< in which it was made
  std::vector<std::shared_ptr<Effect>> effects;  ///< what its evaluation does to slots
  /// Whether an evaluation computed it, and whether its value was taken away since, for want of memory.
  enum class Past : std::uint8_t { none, computed, taken };
  std::atomic<Past> past{Past::none};
  /// Of its first output among the values of a subgraph (lib/exec/collect/subgraph.h), which sets it in nodes of its own.
  std::uint32_t number = 0;

  Node(std::shared_ptr<const Op> op, Tensors inputs, Specs outputs);
  /// The same where the inputs' specs are at hand.
  Node(std::shared_ptr<const Op> op, Tensors inputs, Specs outputs, const Specs& input_specs);
  /// The operation of another node over inputs of the same specs. It has no value, slot, checkpoint or effects.
  Node(const Node& other, Tensors inputs);
  /// Frees long chains of nodes in a loop, whether inputs or functions lead along them: recursion would overflow the stack.
  ~Node();
  /// Whether every output is a range of an input: nothing is computed.
  bool is_view() const;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  /// The sequence number of the next node.
  static std::uint64_t next_sequence();
  /// Nodes alive in the process, so that tests can show that a training loop does not leak.
  static std::int64_t alive();

 private:
  void count_inputs();
  void find_aliases(const Specs& input_specs);
};

/// The node that a tensor is an output of, and which one it is.
inline const std::shared_ptr<Node>& node_of(const Tensor& tensor) { return detail::access::node(tensor); }
inline int output_of(const Tensor& tensor) { return detail::access::output(tensor); }
inline Tensor tensor_of(std::shared_ptr<Node> node, int output) { return detail::access::make<Tensor>(std::move(node), output); }

/// The same, for what an evaluation or a cache within the library holds: no handle, whoever asks how many there are. Moved it
/// stays so, and its copies are handles.
inline Tensor uncounted(std::shared_ptr<Node> node, int output) {
  return detail::access::make<Tensor>(std::move(node), output, detail::Counted::not_at_all);
}
inline Tensor uncounted(const Tensor& tensor) { return uncounted(node_of(tensor), output_of(tensor)); }
std::vector<Tensor> uncounted(std::span<const Tensor> tensors);

Specs specs_of(const Tensors& tensors);

/// What gradients flow to from a node with an operation: its inputs, or Op::differentiated().
std::span<const Tensor> differentiated(const Node& node);

/// The list of solvers that compute a node with an operation: TuningHints::list, or the operation's name.
std::string_view solver_list(const Node& node);

/// A leaf that holds a value.
Tensor make_leaf(Spec spec, std::shared_ptr<Value> value);
/// A range of another tensor's elements: as many as it is asked for, from an element on.
struct Range {
  Tensor tensor;
  std::int64_t offset = 0;
};
/// The tensor in whose memory the elements of `tensor` lie, and where they begin: itself, unless it is a view without a value
/// yet.
Range root_of(const Tensor& tensor);
/// The same as long as every element is meant: what `tensor` is under other shapes.
Tensor source_of(const Tensor& tensor);

/// What the executor wants to know of each new node (CLNET_EAGER); null: nothing.
extern void (*node_made)(const Tensor& first_output);

}  // namespace clnet
