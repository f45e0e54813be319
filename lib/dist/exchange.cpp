#include "lib/dist/exchange.h"

#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "lib/base/narrow_floats.h"
#include "lib/cl/staging.h"
#include "lib/dist/engine.h"
#include "lib/dist/members.h"

namespace clnet::dist {

namespace {

std::size_t bytes_of(const Spec& spec) { return static_cast<std::size_t>(spec.bytes()); }

/// Elements as they travel.
std::byte* pack(const std::vector<float>& values, Dtype exchanged, std::byte* to) {
  if (exchanged == Dtype::f32) {
    if (!values.empty()) std::memcpy(to, values.data(), values.size() * sizeof(float));
    return to + values.size() * sizeof(float);
  }
  for (const float value : values) {
    const auto bits = bfloat16_bits(value);
    std::memcpy(to, &bits, sizeof bits);
    to += sizeof bits;
  }
  return to;
}
const std::byte* unpack(const std::byte* from, Dtype exchanged, std::vector<float>& values) {
  if (exchanged == Dtype::f32) {
    if (!values.empty()) std::memcpy(values.data(), from, values.size() * sizeof(float));
    return from + values.size() * sizeof(float);
  }
  for (float& value : values) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, from, sizeof bits);
    value = float_of_bfloat16(bits);
    from += sizeof bits;
  }
  return from;
}

}  // namespace

std::vector<std::vector<std::size_t>> buckets_of(const std::vector<Spec>& values) {
  std::vector<std::vector<std::size_t>> buckets;
  std::size_t filled = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto limit = buckets.size() <= 1 ? first_bucket : next_bucket;
    if (buckets.empty() || filled >= limit || values[buckets.back().back()].dtype != values[i].dtype) {
      buckets.emplace_back();
      filled = 0;
    }
    buckets.back().push_back(i);
    filled += bytes_of(values[i]);
  }
  return buckets;
}

SumOverRanks::SumOverRanks(std::vector<Exchanged> values, const Group& group, bool beside)
    : values_(std::move(values)), transport_(mpi_transport(members_of(group))), beside_(beside) {
  std::vector<Spec> specs;
  for (const auto& value : values_) specs.push_back(value.from_spec);
  for (auto& bucket : buckets_of(specs)) buckets_.push_back({std::move(bucket), nullptr, nullptr});
}

std::vector<exec::Ref> SumOverRanks::from(std::size_t bucket) const {
  std::vector<exec::Ref> refs;
  for (auto i : buckets_[bucket].values) refs.push_back(values_[i].from);
  return refs;
}

std::vector<exec::Ref> SumOverRanks::to(std::size_t bucket) const {
  std::vector<exec::Ref> refs;
  for (auto i : buckets_[bucket].values) refs.push_back(values_[i].to);
  return refs;
}

void SumOverRanks::begin(std::size_t bucket, exec::HostContext& context) {
  auto& [values, bytes, sum] = buckets_[bucket];
  std::size_t size = 0;
  for (auto i : values) size += bytes_of(values_[i].from_spec);
  bytes = context.device().extension<ocl::Staging>().take(size);
  std::vector<exec::HostContext::Range> ranges;
  auto* at = bytes.get();
  for (auto i : values) {
    ranges.push_back({values_[i].from, at, bytes_of(values_[i].from_spec)});
    at += ranges.back().bytes;
  }
  context.read(ranges);
  if (size > 0) sum = transport_->post({values_[values[0]].from_spec.dtype, {bytes.get(), size}, bytes, beside_});
}

void SumOverRanks::end(std::size_t bucket, exec::HostContext& context) {
  auto& [values, kept, sum] = buckets_[bucket];
  if (sum) std::exchange(sum, nullptr)->wait();
  const std::shared_ptr<const std::byte[]> bytes = std::move(kept);
  std::size_t at = 0;
  for (auto i : values) {
    if (values_[i].needed) context.write(values_[i].to, bytes, bytes.get() + at, bytes_of(values_[i].to_spec));
    at += bytes_of(values_[i].to_spec);
  }
}

void sum_over_ranks(std::span<std::vector<float>> arrays, Dtype exchanged, const Group& group) {
  if (group.size() == 1) return;
  const auto transport = mpi_transport(members_of(group));
  std::vector<Spec> specs;
  for (const auto& array : arrays) specs.push_back({Shape{static_cast<std::int64_t>(array.size())}, exchanged});
  struct OnTheWay {
    std::vector<std::size_t> arrays;
    std::shared_ptr<std::byte[]> bytes;
    std::shared_ptr<Posted> sum;
  };
  std::optional<OnTheWay> before;
  const auto end = [&] {
    if (!before) return;
    before->sum->wait();
    const std::byte* from = before->bytes.get();
    for (const auto i : before->arrays) from = unpack(from, exchanged, arrays[i]);
    before.reset();
  };
  for (auto& bucket : buckets_of(specs)) {
    std::size_t size = 0;
    for (const auto i : bucket) size += bytes_of(specs[i]);
    if (size == 0) continue;
    auto bytes = std::make_shared_for_overwrite<std::byte[]>(size);
    std::byte* to = bytes.get();
    for (const auto i : bucket) to = pack(arrays[i], exchanged, to);
    auto sum = transport->post({exchanged, {bytes.get(), size}, bytes});
    end();
    before = {std::move(bucket), std::move(bytes), std::move(sum)};
  }
  end();
}

void through_host(exec::HostContext& context, const Exchanged& value,
                  const std::function<void(const std::byte* from, std::byte* to)>& exchange) {
  const auto from = std::make_shared_for_overwrite<std::byte[]>(bytes_of(value.from_spec)),
             to = std::make_shared_for_overwrite<std::byte[]>(bytes_of(value.to_spec));
  context.read(value.from, from.get(), bytes_of(value.from_spec));
  exchange(from.get(), to.get());
  if (value.needed) context.write(value.to, to, to.get(), bytes_of(value.to_spec));
}

}  // namespace clnet::dist
