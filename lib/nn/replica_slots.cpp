#include "lib/nn/replica_slots.h"

#include <utility>

#include "lib/cl/context.h"
#include "lib/exec/collect/value.h"
#include "lib/exec/evaluate.h"
#include "lib/exec/upload.h"
#include "lib/graph/node.h"
#include "lib/nn/parameter.h"

namespace clnet::nn {

Tensor value_on(const Tensor& value, const Device& device) {
  const auto placed = std::dynamic_pointer_cast<exec::DeviceValue>(exec::evaluated(value));
  // A value of the host goes where it is first used, and a count of batches stays there.
  return placed && placed->device != context_of(device) ? exec::copy_now(value, device) : value;
}

ReplicaSlots::ReplicaSlots(const Module& model, const Device& device) : device_(device) {
  for (const auto& [name, parameter] : model.parameters()) add(parameter, true);
  for (const auto& [name, buffer] : model.buffers()) add(buffer, false);
}

void ReplicaSlots::add(const Parameter& original, bool is_parameter) {
  if (map_.slots.contains(own_slot_of(original).get())) return;
  const Tensor now = original.value();
  copies_.push_back({original, Parameter(value_on(now, device_)), node_of(now), is_parameter});
  map_.slots.emplace(own_slot_of(original).get(), own_slot_of(copies_.back().own));
}

void ReplicaSlots::take(bool parameters) {
  for (auto& [original, own, taken, is_parameter] : copies_) {
    if (is_parameter != parameters) continue;
    const Tensor now = original.value();
    // Buffers change in the replica, too.
    if (is_parameter && taken.lock() == node_of(now)) continue;
    own.set(value_on(now, device_));
    taken = node_of(now);
  }
}

}  // namespace clnet::nn
