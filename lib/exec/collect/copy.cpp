#include "lib/exec/collect/copy.h"

#include <fmt/format.h>

#include <typeinfo>
#include <unordered_set>
#include <vector>

#include "clnet/error.h"
#include "lib/exec/collect/value.h"
#include "lib/exec/collect/work.h"

namespace clnet::exec {

Fields CopyTo::fields() const { return {{"device", label(device_->info())}}; }

Tensors CopyTo::vjp(const Tensors& inputs, const Tensors&, const Tensors& gradients) const {
  if (!is_floating(inputs[0].dtype())) return {Tensor{}};
  const auto home = device_of_graph(inputs[0]);
  return {copy_to(gradients[0], home ? device_with(home) : Device::current())};
}

const CopyTo* copy_of(const Node& node) {
  const auto* op = node.op.get();
  return op && typeid(*op) == typeid(CopyTo) ? static_cast<const CopyTo*>(op) : nullptr;
}

std::shared_ptr<ocl::Context> device_of_graph(const Tensor& tensor) {
  if (const auto value = value_of(tensor)) {
    const auto* placed = dynamic_cast<const DeviceValue*>(value.get());
    return placed ? placed->device : nullptr;
  }
  std::vector<Tensor> open;
  open.push_back(uncounted(tensor));
  std::unordered_set<const Node*> seen;
  while (!open.empty()) {
    const auto next = std::move(open.back());
    open.pop_back();
    if (const auto value = value_of(next)) {
      if (const auto* placed = dynamic_cast<const DeviceValue*>(value.get())) return placed->device;
      continue;
    }
    const auto& node = *node_of(next);
    if (!seen.insert(&node).second) continue;
    if (const auto* copy = copy_of(node)) return copy->device();
    for (const auto& input : node.inputs) open.push_back(uncounted(input));
  }
  return nullptr;
}

Tensor beside(const Tensor& tensor, const Tensor& other, const std::shared_ptr<ocl::Context>& home) {
  auto from = device_of_graph(tensor);
  if (!from) from = home;
  const auto to = from ? device_of_graph(other) : nullptr;
  return to && from != to ? copy_to(tensor, device_with(to)) : tensor;
}

std::string label(const DeviceInfo& info) { return fmt::format("{} ({}:{})", info.name, info.platform_index, info.device_index); }

void refuse_two_devices(const ocl::Context& here, const ocl::Context& there) {
  const auto where = label(here.info()), other = label(there.info());
  throw DeviceError(fmt::format("eval: a value lives on {}, another (or the evaluation) on {}; copy_to() copies values", where,
                                where == other ? "the same device in another context" : other));
}

}  // namespace clnet::exec

namespace clnet {

Tensor copy_to(const Tensor& tensor, const Device& device) {
  if (!tensor.defined()) throw Error("copy_to: the tensor is undefined");
  return apply(std::make_shared<exec::CopyTo>(context_of(device)), {tensor});
}

}  // namespace clnet
