#include "lib/optim/sharding.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>

#include "clnet/device.h"
#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/cl/context.h"
#include "lib/dist/owners.h"
#include "lib/exec/collect/copy.h"
#include "lib/exec/upload.h"

namespace clnet::optim {

std::vector<int> Sharding::deal(const std::vector<std::int64_t>& bytes) {
  std::vector<std::size_t> order(bytes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return bytes[a] > bytes[b]; });
  std::vector<int> owners(bytes.size(), everyone);
  for (const auto i : order) {
    if (bytes[i] == 0) continue;
    const auto least = std::min_element(loads_.begin(), loads_.end());
    *least += bytes[i];
    owners[i] = static_cast<int>(least - loads_.begin());
  }
  return owners;
}

std::vector<Tensor> Sharding::readers_of(const std::vector<Tensor>& others) {
  std::map<std::shared_ptr<ocl::Context>, std::vector<Tensor>> firsts;  // by device
  for (const auto& value : others)
    firsts[exec::device_of_graph(value)].push_back(cast(slice(flatten(value, 0), 0, 0, 1), Dtype::f32));
  std::vector<Tensor> readers;
  for (const auto& [device, together] : firsts) readers.push_back(concat(together, 0));
  return readers;
}

void Sharding::exchange(const std::vector<std::pair<int, nn::Parameter>>& moved) const {
  std::vector<dist::Owned> values;
  for (const auto& [owner, parameter] : moved) {
    if (owner == everyone) continue;
    const auto bytes = static_cast<std::size_t>(parameter.value().spec().bytes());
    const auto read = [source = nn::Parameter(parameter), bytes](std::byte* to) { source.value().to_bytes(to, bytes); };
    const auto write = [target = nn::Parameter(parameter), bytes](const std::byte* from) mutable {
      const auto spec = target.value().spec();
      const auto device = exec::device_of_graph(target.value());
      Tensor value;
      try {
        if (device) value = exec::upload(spec, device_with(device), [&](void* to) { std::memcpy(to, from, bytes); });
      } catch (const Error&) {
        value = {};  // from the host later, where that fails as any other upload
      }
      target.set(value.defined() ? value : Tensor::from_bytes(from, bytes, spec));
    };
    values.push_back({owner, bytes, read, write});
  }
  dist::from_owners(values, group_);
}

Tensor Sharding::to_first(int owner, const Spec& spec, const Tensor& value) const {
  constexpr int first = 0;
  const bool sends = owner == group_.rank(), receives = group_.rank() == first;
  if (owner == everyone || owner == first || spec.bytes() == 0 || (!sends && !receives)) return value;
  std::vector<std::byte> bytes(static_cast<std::size_t>(spec.bytes()));
  if (receives) {
    dist::recv({Dtype::u8, bytes.data(), bytes.size()}, owner, group_);
    return Tensor::from_bytes(bytes.data(), bytes.size(), spec);
  }
  value.to_bytes(bytes.data(), bytes.size());
  dist::send({Dtype::u8, bytes.data(), bytes.size()}, first, group_);
  return value;
}

}  // namespace clnet::optim
