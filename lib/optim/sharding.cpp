#include "lib/optim/sharding.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "clnet/error.h"
#include "lib/dist/owners.h"

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

Tensor Sharding::take_others(std::string_view optimizer, const std::vector<Moved>& moved,
                             std::vector<std::pair<nn::Parameter, Tensor>>& values) const {
  std::vector<dist::Owned> shared;
  std::vector<const Moved*> of;
  const ocl::Context* device = nullptr;
  Tensor least;
  for (const auto& one : moved) {
    if (one.owner == everyone) continue;
    if (device && one.device && device != one.device)
      throw Error(fmt::format("{}: states that are sharded over ranks need all parameters on one device", optimizer));
    if (one.device) device = one.device;
    shared.push_back({one.owner, keeps(one.owner) ? one.computed : one.parameter.value()});
    of.push_back(&one);
    if (!least.defined() || one.gradient.numel() < least.numel()) least = one.gradient;
  }
  if (shared.empty()) return {};
  // Behind the gradients' collective, on a rank that computes nothing of its own, too.
  auto taken = dist::from_owners(shared, least, group_);
  for (std::size_t i = 0; i < of.size(); ++i)
    if (!keeps(of[i]->owner)) values.emplace_back(of[i]->parameter, std::move(taken.values[i]));
  return taken.sent;
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
