// Slots: places whose value changes over time (parameters, running statistics, an optimizer's state), and what is to become of
// one when a node is evaluated.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

#include "clnet/tensor.h"
#include "lib/base/spin_guard.h"

namespace clnet {

struct Value;

/// Each value that a slot takes is a leaf of its own that knows the slot (Node::slot), so that no two slots are ever one value of
/// the graph, and the gradient of an older value still finds its way. A value that is not computed yet is a node over the graph
/// that makes it, and a leaf for everybody else: gradients stop there, and once evaluated it is a leaf indeed.
struct Slot {
  Slot();
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;

  /// The present value. Any thread may ask while another changes it.
  Tensor now() const;
  /// Exchanges the present value. Under slots_mutex() where others know the slot.
  void swap(Tensor& value);

  const std::uint64_t id;                ///< never 0, never used again
  std::atomic<bool> frozen{false};       ///< optimizers leave it as it is
  std::atomic<bool> held{false};         ///< a module or an optimizer has been given it
  std::atomic<std::int64_t> handles{0};  ///< parameters that refer to it
  std::atomic<std::int64_t> awaited{0};  ///< effects on it that are written down, and neither done nor dropped

 private:
  mutable std::atomic_flag busy_;
  Tensor value_;
};

/// Held while slots take other values, and while values are read that belong together: several change at once.
std::mutex& slots_mutex();

/// A fresh leaf of the slot.
Tensor make_leaf(const Slot& slot, Spec spec, std::shared_ptr<Value> value);

/// What the evaluation of a node does to a slot, once: shared by the node and all its copies, of which the first to be evaluated
/// does it. It refers to the node's output by number and to the slot weakly, so that neither keeps the other alive.
struct Effect {
  using Update = std::function<Tensor(const Tensor& now, const Tensor& value)>;

  Effect(const std::shared_ptr<Slot>& slot, int output, Update update);
  ~Effect() { finish(); }
  Effect(const Effect&) = delete;
  Effect& operator=(const Effect&) = delete;
  /// The slot's new value from its present one and the node's output; null: it is done. Threads that evaluate the same node may
  /// ask at once, and call what they got, whatever becomes of the effect.
  std::shared_ptr<const Update> update() const;
  /// It is done, and will not be again.
  void finish();

  const std::uint64_t order;  ///< grows from effect to effect: that of the program
  const std::weak_ptr<Slot> slot;
  const int output;

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const Update> update_;
  std::atomic<bool> awaited_{true};  ///< counted by the slot
};

}  // namespace clnet
