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

/// The value of an evaluated output. The executor derives the class for a device.
struct Value {
  virtual ~Value() = default;
  /// The bytes, where the host has them; null where only a device does.
  virtual const std::byte* on_host() const { return nullptr; }
  /// Changes the number of cells that hold it.
  virtual void count(int /*by*/) {}
};

/// A leaf's bytes in host memory, until a device needs them.
struct HostValue : Value {
  explicit HostValue(std::vector<std::byte> content) : bytes(std::move(content)) {}
  const std::byte* on_host() const override { return bytes.data(); }
  std::vector<std::byte> bytes;
};

struct Effect;

/// Counts the references to an output of a node that may read its value: tensors as handles, and inputs of nodes. A pointer to
/// the node and an uncounted() tensor only keep it alive and do not count. Only a counted reference can add another, so a sole
/// owner found by one thread stays the sole owner.
struct Holders {
  struct Counts {
    std::uint32_t handles = 0, inputs = 0;
  };
  /// Both counts at one moment.
  Counts now() const {
    const auto found = both.load(std::memory_order_acquire);
    return {static_cast<std::uint32_t>(found), static_cast<std::uint32_t>(found >> 32)};
  }
  detail::HolderCount both{0};  ///< changed by tensors
};

/// Holds a value once it is known. Several threads may evaluate a shared graph: each reads a cell at one moment and keeps the
/// result. Cells own values (Value::count): a value held by two cells is never overwritten.
///
/// A value is there because the program asked for it, or it is speculative: made along with others, as somebody held a handle. A
/// speculative value saves work, and may be dropped at any time. No answer to the program may depend on it.
class ValueCell {
 public:
  ValueCell() = default;
  ~ValueCell() {
    if (value_) value_->count(-1);
  }
  ValueCell(const ValueCell&) = delete;
  ValueCell& operator=(const ValueCell&) = delete;

  std::shared_ptr<Value> get() const {
    const SpinGuard guard(busy_);
    return value_;
  }
  /// The value if the program asked for it.
  std::shared_ptr<Value> asked() const {
    const SpinGuard guard(busy_);
    return state_.load(std::memory_order_relaxed) == State::asked ? value_ : nullptr;
  }
  /// Whether there is a value, or one of a kind; they do not access its pointer.
  explicit operator bool() const { return state_.load(std::memory_order_acquire) != State::none; }
  bool is_asked() const { return state_.load(std::memory_order_acquire) == State::asked; }
  bool is_speculative() const { return state_.load(std::memory_order_acquire) == State::speculative; }
  /// Sets a value that the program asked for, or removes any.
  void set(std::shared_ptr<Value> value) {
    if (value) value->count(1);
    {
      const SpinGuard guard(busy_);
      swap(value, State::asked);
    }
    // The old value is freed without the lock: freeing it may take others.
    if (value) value->count(-1);
  }
  /// Sets the value where it still is `expected`; returns the value that is there then. null for null: it is speculative.
  std::shared_ptr<Value> exchange(const Value* expected, std::shared_ptr<Value> value) {
    if (value) value->count(1);
    std::shared_ptr<Value> now;
    {
      const SpinGuard guard(busy_);
      if (value_.get() == expected) swap(value, expected ? state_.load(std::memory_order_relaxed) : State::speculative);
      now = value_;
    }
    if (value) value->count(-1);
    return now;
  }
  /// The program asks for the value: sets `value` where there is none. Returns whether there is one then.
  bool ask(std::shared_ptr<Value> value = nullptr) {
    if (value) value->count(1);
    bool is_there;
    {
      const SpinGuard guard(busy_);
      if (value && !value_) swap(value, State::asked);
      is_there = value_ != nullptr;
      if (is_there) state_.store(State::asked, std::memory_order_release);
    }
    if (value) value->count(-1);
    return is_there;
  }
  /// Removes `expected` where it is here and speculative; with `sole` only if nothing else keeps it alive, to free its memory.
  /// Returns null otherwise.
  std::shared_ptr<Value> take_speculative(const std::weak_ptr<Value>& expected, bool sole) {
    std::shared_ptr<Value> taken;
    {
      const SpinGuard guard(busy_);
      const bool is_here = !expected.owner_before(value_) && !value_.owner_before(expected);
      if (is_speculative() && is_here && (!sole || value_.use_count() == 1)) swap(taken, State::none);
    }
    // Where an evaluation still reads it, it counts on, so that nobody overwrites it.
    if (taken && taken.use_count() == 1) taken->count(-1);
    return taken;
  }

  Holders holders;  ///< of this value's output

 private:
  enum class State : std::uint8_t { none, speculative, asked };
  void swap(std::shared_ptr<Value>& value, State state) {
    state_.store(value ? state : State::none, std::memory_order_release);
    value_.swap(value);
  }

  mutable std::atomic_flag busy_;
  std::atomic<State> state_{State::none};
  std::shared_ptr<Value> value_;
};

/// One cell per output. The first lies in the node, as most nodes have one output.
class ValueCells {
 public:
  explicit ValueCells(std::size_t count) : more_(count > 1 ? std::make_unique<ValueCell[]>(count - 1) : nullptr) {}
  ValueCell& operator[](std::size_t output) { return output == 0 ? first_ : more_[output - 1]; }
  const ValueCell& operator[](std::size_t output) const { return output == 0 ? first_ : more_[output - 1]; }

 private:
  ValueCell first_;
  std::unique_ptr<ValueCell[]> more_;
};

struct Node {
  std::shared_ptr<const Op> op;  ///< null: a leaf
  Tensors inputs;                ///< each counts as an input
  Specs outputs;
  std::vector<std::optional<Alias>> aliases;     ///< one per output, from Op::alias; empty where the outputs are computed
  ValueCells values;                             ///< one per output; empty until evaluated
  const std::uint64_t order;                     ///< grows from node to node, in the program's order
  std::uint64_t checkpoint = 0;                  ///< the call of checkpoint() that made it; 0: none
  std::uint64_t slot = 0;                        ///< the slot of its value (lib/graph/slot.h): a leaf for gradients; 0: none
  const ScopePtr scope;                          ///< the scope of its construction
  std::vector<std::shared_ptr<Effect>> effects;  ///< changes of slots by its evaluation
  /// Whether an evaluation computed it, and whether its value was dropped since, for lack of memory.
  enum class Past : std::uint8_t { none, computed, taken };
  std::atomic<Past> past{Past::none};
  /// The number of its first output in a subgraph (lib/exec/collect/subgraph.h), which sets it in its own nodes.
  std::uint32_t number = 0;

  Node(std::shared_ptr<const Op> op, Tensors inputs, Specs outputs);
  /// The same with known specs of the inputs.
  Node(std::shared_ptr<const Op> op, Tensors inputs, Specs outputs, const Specs& input_specs);
  /// A node with another node's operation and inputs of the same specs. It has no value, slot, checkpoint or effects.
  Node(const Node& other, Tensors inputs);
  /// Frees long chains of nodes in a loop, whether inputs or functions lead along them: recursion would overflow the stack.
  ~Node();
  /// Whether every output is a range of an input, so that nothing is computed.
  bool is_view() const;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  /// The order of the next node.
  static std::uint64_t next_sequence();
  /// The number of nodes alive in the process: tests show that a training loop does not leak.
  static std::int64_t alive();

 private:
  void count_inputs();
  void find_aliases(const Specs& input_specs);
};

/// The node of a tensor, and the index of its output.
inline const std::shared_ptr<Node>& node_of(const Tensor& tensor) { return detail::access::node(tensor); }
inline int output_of(const Tensor& tensor) { return detail::access::output(tensor); }
inline Tensor tensor_of(std::shared_ptr<Node> node, int output) { return detail::access::make<Tensor>(std::move(node), output); }

/// An uncounted tensor, for evaluations and caches within the library: it is no handle. A moved one stays uncounted; copies are
/// handles.
inline Tensor uncounted(std::shared_ptr<Node> node, int output) {
  return detail::access::make<Tensor>(std::move(node), output, detail::Counted::not_at_all);
}
inline Tensor uncounted(const Tensor& tensor) { return uncounted(node_of(tensor), output_of(tensor)); }
std::vector<Tensor> uncounted(std::span<const Tensor> tensors);

Specs specs_of(const Tensors& tensors);

/// The tensors that gradients flow to from a node with an operation: its inputs, or Op::differentiated().
std::span<const Tensor> differentiated(const Node& node);

/// The name of the solver list of a node with an operation: TuningHints::list, or the operation's name.
std::string_view solver_list(const Node& node);

/// A leaf that holds a value.
Tensor make_leaf(Spec spec, std::shared_ptr<Value> value);
/// A range of another tensor's elements: the reader's number of elements, from an offset on.
struct Range {
  Tensor tensor;
  std::int64_t offset = 0;
};
/// The tensor whose memory contains the elements of `tensor`, and their offset. It is `tensor` itself, unless that is a view
/// without a value yet.
Range root_of(const Tensor& tensor);
/// The same while views keep all elements: the tensor behind reshapes of `tensor`.
Tensor source_of(const Tensor& tensor);

/// The executor's hook for new nodes (CLNET_EAGER); null: none.
extern void (*node_made)(const Tensor& first_output);

}  // namespace clnet
