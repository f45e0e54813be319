#include "lib/dist/exchange.h"

#include <memory>
#include <utility>

#include "lib/dist/engine.h"
#include "lib/dist/members.h"

namespace clnet::dist {

namespace {

std::size_t bytes_of(const Spec& spec) { return static_cast<std::size_t>(spec.bytes()); }

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

void sum_over_ranks(exec::HostContext& context, const std::vector<Exchanged>& values, const Group& group) {
  struct Sent {
    std::vector<std::size_t> values;
    std::shared_ptr<std::byte[]> bytes;
    std::shared_ptr<Posted> sum;
  };
  const auto transport = mpi_transport(members_of(group));
  std::vector<Spec> specs;
  for (const auto& value : values) specs.push_back(value.from_spec);
  std::vector<Sent> sent;
  for (auto& bucket : buckets_of(specs)) {
    std::size_t size = 0;
    for (auto i : bucket) size += bytes_of(specs[i]);
    const auto bytes = std::make_shared_for_overwrite<std::byte[]>(size);
    std::size_t at = 0;
    for (auto i : bucket) {
      context.read(values[i].from, bytes.get() + at, bytes_of(specs[i]));
      at += bytes_of(specs[i]);
    }
    const auto dtype = specs[bucket[0]].dtype;
    auto sum = size == 0 ? nullptr : transport->post({dtype, {bytes.get(), size}});
    sent.push_back({std::move(bucket), bytes, std::move(sum)});
  }
  for (auto& bucket : sent) {
    if (bucket.sum) bucket.sum->wait();
    std::size_t at = 0;
    for (auto i : bucket.values) {
      if (values[i].needed) context.write(values[i].to, bucket.bytes, bucket.bytes.get() + at, bytes_of(specs[i]));
      at += bytes_of(specs[i]);
    }
  }
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
