// Slots: places whose value changes over time (parameters, running statistics, an optimizer's state), and their changes by the
// evaluation of a node.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "clnet/tensor.h"
#include "lib/base/spin_guard.h"

namespace clnet {

struct Value;

/// Each value of a slot is a separate leaf that knows the slot (Node::slot). So two slots never share a value of the graph, and
/// gradients of older values still reach the parameter. A pending value is a node over its graph, but a leaf for all others:
/// gradients stop there. Evaluation makes it a real leaf.
struct Slot {
  Slot();
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;

  /// The present value. Any thread may ask while another changes it.
  Tensor now() const;
  /// Exchanges the present value. Under SlotsLock where others know the slot.
  void swap(Tensor& value);

  const std::uint64_t id;                ///< never 0, never used again
  std::atomic<bool> frozen{false};       ///< optimizers leave it as it is
  std::atomic<bool> held{false};         ///< a module or an optimizer has been given it
  std::atomic<std::int64_t> handles{0};  ///< parameters that refer to it
  std::atomic<std::int64_t> awaited{0};  ///< effects on it that are written down, and neither done nor dropped

 private:
  friend class SlotsLock;
  mutable std::atomic_flag busy_;
  std::atomic_flag locked_;  ///< by a SlotsLock
  Tensor value_;
};

/// Held while slots take other values, and while values are read that belong together: several change at once. It locks these
/// slots only, in the order of their numbers, so devices with slots of their own do not wait for one another. For a few
/// exchanges of pointers; a thread holds one at a time.
class SlotsLock {
 public:
  explicit SlotsLock(std::vector<Slot*> slots);
  ~SlotsLock();
  SlotsLock(const SlotsLock&) = delete;
  SlotsLock& operator=(const SlotsLock&) = delete;

 private:
  std::vector<Slot*> slots_;
};

/// A fresh leaf of the slot.
Tensor make_leaf(const Slot& slot, Spec spec, std::shared_ptr<Value> value);

/// The change of a slot by the evaluation of a node, once. The node and all its copies share it, and the first one evaluated
/// applies it. It refers to the node's output by number and to the slot weakly, so that neither keeps the other alive.
struct Effect {
  using Update = std::function<Tensor(const Tensor& now, const Tensor& value)>;

  Effect(const std::shared_ptr<Slot>& slot, int output, Update update);
  ~Effect() { finish(); }
  Effect(const Effect&) = delete;
  Effect& operator=(const Effect&) = delete;
  /// The slot's new value from its present one and the node's output; null: already applied. Threads that evaluate one node may
  /// all get it, and call it even after another has applied the effect.
  std::shared_ptr<const Update> update() const;
  /// Marks it as applied.
  void finish();

  const std::uint64_t order;  ///< grows from effect to effect, in the program's order
  const std::weak_ptr<Slot> slot;
  const int output;

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const Update> update_;
  std::atomic<bool> awaited_{true};  ///< still counted in Slot::awaited
};

}  // namespace clnet
