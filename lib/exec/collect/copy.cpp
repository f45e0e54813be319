#include "lib/exec/collect/copy.h"

#include <fmt/format.h>

#include <typeinfo>
#include <unordered_set>
#include <vector>

#include "clnet/error.h"
#include "lib/exec/collect/value.h"
#include "lib/exec/collect/walk.h"
#include "lib/exec/collect/work.h"

namespace clnet::exec {

Fields CopyTo::fields() const { return {{"device", device_ ? label(device_->info()) : "of the second input"}}; }

Tensors CopyTo::vjp(const Tensors& inputs, const Tensors&, const Tensors& gradients) const {
  Tensors result(inputs.size());
  if (is_floating(inputs[0].dtype())) result[0] = apply(std::make_shared<CopyTo>(nullptr), {gradients[0], inputs[0]});
  return result;
}

const CopyTo* copy_of(const Node& node) {
  const auto* op = node.op.get();
  return op && typeid(*op) == typeid(CopyTo) ? static_cast<const CopyTo*>(op) : nullptr;
}

std::shared_ptr<ocl::Context> DeviceFinder::find(const Tensor& tensor) {
  // Parameters are asked for in each step, and have values: no list is made for them.
  if (const auto value = std::dynamic_pointer_cast<DeviceValue>(asked_value_of(tensor))) return value->device;
  Walk walk;
  std::vector<Tensor> open;
  open.push_back(uncounted(tensor));
  std::unordered_set<const Node*> seen;
  while (!open.empty()) {
    const auto next = std::move(open.back());
    open.pop_back();
    if (const auto value = asked_value_of(next)) {
      if (const auto* placed = dynamic_cast<const DeviceValue*>(value.get())) return placed->device;
      if (device_ && leaf_.same(next)) return device_;
      continue;
    }
    const auto& node = *node_of(next);
    if (nowhere_.contains(&node) || seen.contains(&node)) continue;
    if (!walk.enter(node_of(next))) {
      open.push_back(uncounted(next));
      continue;
    }
    seen.insert(&node);
    if (const auto* copy = copy_of(node)) {
      if (copy->device()) return copy->device();
      if (node.inputs.size() > 1) open.push_back(uncounted(node.inputs[1]));
      continue;
    }
    for (const auto& input : node.inputs) open.push_back(uncounted(input));
  }
  nowhere_.merge(seen);
  return nullptr;
}

Tensor moved(const Tensor& tensor, const std::shared_ptr<ocl::Context>& from, const std::shared_ptr<ocl::Context>& to) {
  return from && to && from != to ? copy_to(tensor, device_with(to)) : tensor;
}

std::string label(const DeviceInfo& info) { return fmt::format("{} ({}:{})", info.name, info.platform_index, info.device_index); }

void refuse_two_devices(const ocl::Context& here, const ocl::Context& there) {
  const auto where = label(here.info()), other = label(there.info());
  throw TwoDevices(fmt::format("eval: a value lives on {}, another (or the evaluation) on {}; copy_to() copies values", where,
                               where == other ? "the same device in another context" : other));
}

}  // namespace clnet::exec
