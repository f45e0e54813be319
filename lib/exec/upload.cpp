#include "lib/exec/upload.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "clnet/error.h"
#include "lib/exec/collect/copy.h"
#include "lib/exec/collect/value.h"
#include "lib/exec/collect/work.h"
#include "lib/graph/capture.h"

namespace clnet {

namespace exec {

Tensor upload(const Spec& spec, const Device& device, const std::function<void(void*)>& fill) {
  auto buffer =
      context_of(device)->upload(std::max<std::size_t>(1, static_cast<std::size_t>(spec.bytes())), to_string(spec), fill);
  return make_leaf(spec, std::make_shared<DeviceValue>(context_of(device), std::move(buffer), 0));
}

Tensor upload(const Spec& spec, const Device& device, std::vector<std::byte> bytes) {
  const auto host = std::make_shared<HostValue>(std::move(bytes));
  Tensor leaf = upload(spec, device, [&](void* out) { std::memcpy(out, host->bytes.data(), host->bytes.size()); });
  dynamic_cast<DeviceValue&>(*value_of(leaf)).keep(spec, host);
  return leaf;
}

Tensor copy_now(const Tensor& tensor, const Device& device) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.spec().bytes()));
  tensor.to_bytes(bytes.data(), bytes.size());
  return upload(tensor.spec(), device, [&](void* target) { std::memcpy(target, bytes.data(), bytes.size()); });
}

}  // namespace exec

Tensor copy_to(const Tensor& tensor, const Device& device) {
  if (!tensor.defined()) throw Error("copy_to: the tensor is undefined");
  // Whole numbers that the host knows have no gradient, and losses check labels before anything is computed.
  if (!is_floating(tensor.dtype()) && node_of(tensor)->slot == 0 && !capturing())
    if (const auto value = exec::asked_value_of(tensor))
      if (const auto* bytes = value->on_host())
        return exec::upload(tensor.spec(), device, std::vector<std::byte>(bytes, bytes + tensor.spec().bytes()));
  return apply(std::make_shared<exec::CopyTo>(context_of(device)), {tensor});
}

}  // namespace clnet
