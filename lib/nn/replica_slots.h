// A replica's slots: values of its own, on its device, for a model that several replicas share.
#pragma once

#include <memory>
#include <vector>

#include "clnet/device.h"
#include "clnet/nn/module.h"
#include "clnet/nn/parameter.h"
#include "lib/graph/slot_scope.h"

namespace clnet {
struct Node;
}

namespace clnet::nn {

/// The value, copied where it is on another device.
Tensor value_on(const Tensor& value, const Device& device);

/// The model object stays one, so that its class needs no copies. In a SlotScope of map() its parameters and buffers have the
/// replica's values: a call builds a graph over them, follow() and set() change them. Modes, frozen flags and names are shared.
/// gradients() of the model's parameters are those of the replica's in it.
///
/// The model must get no other parameters meanwhile. Several threads may build graphs of one model, each in a scope of its own,
/// as far as its forward() allows that.
class ReplicaSlots {
 public:
  /// Copies the model's parameters and buffers to the device, and waits.
  ReplicaSlots(const Module& model, const Device& device);
  const SlotMap& map() const { return map_; }
  const Device& device() const { return device_; }
  /// Copies the model's parameters that have changed since. Buffers stay the replica's own. Not in a scope. After an exception
  /// another call copies the rest.
  void take_parameters() { take(true); }
  /// The same with its buffers.
  void take_buffers() { take(false); }

 private:
  struct Copy {
    Parameter original, own;
    std::weak_ptr<const Node> taken;  ///< the original's value that `own` has
    bool is_parameter;
  };
  void take(bool parameters);
  void add(const Parameter& original, bool is_parameter);

  const Device device_;
  SlotMap map_;
  std::vector<Copy> copies_;
};

}  // namespace clnet::nn
