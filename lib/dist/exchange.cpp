#include "lib/dist/exchange.h"

#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "clnet/error.h"
#include "lib/base/log.h"
#include "lib/base/narrow_floats.h"
#include "lib/cl/staging.h"
#include "lib/dist/engine.h"
#include "lib/dist/members.h"

namespace clnet::dist {

namespace {

/// How long an evaluation that failed waits for sums that use its memory. Ranks that failed, too, may never bring their parts.
constexpr std::chrono::seconds longest_unwanted{10};

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

/// A bucket while ranks add it. Nothing else uses the device's memory before its sums are there.
class SumOverRanks::OnTheWay {
 public:
  explicit OnTheWay(Transport& transport) : transport_(transport) {}
  ~OnTheWay() {
    try {
      if (sum && !comes()) transport_.abort("an evaluation failed, and other ranks have not brought what it adds");
      end();
    } catch (const Error& error) {
      logging::print(logging::Level::plan, "sums that nobody takes: {}", error.what());
    }
  }
  OnTheWay(const OnTheWay&) = delete;
  OnTheWay& operator=(const OnTheWay&) = delete;

  /// Waits for the sums, and gives the device its memory back.
  void end() {
    if (sum) std::exchange(sum, nullptr)->wait();
    if (mapping) mapping->end();
  }

  std::shared_ptr<std::byte[]> staged;
  std::shared_ptr<ocl::Mapping> mapping;
  std::shared_ptr<Posted> sum;

 private:
  bool comes() {
    const auto until = std::chrono::steady_clock::now() + longest_unwanted;
    while (!sum->done()) {
      if (std::chrono::steady_clock::now() > until) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }

  Transport& transport_;
};

SumOverRanks::SumOverRanks(std::vector<Exchanged> values, const Group& group, const Options& options)
    : values_(std::move(values)), transport_(mpi_transport(members_of(group))), options_(options) {
  std::vector<Spec> specs;
  for (const auto& value : values_) specs.push_back(value.from_spec);
  for (const auto& members : buckets_of(specs)) {
    auto& bucket = buckets_.emplace_back();
    for (const auto i : members) (bytes_of(specs[i]) < large_value ? bucket.packed : bucket.large).push_back(i);
  }
}

bool SumOverRanks::mapped(std::size_t value) const {
  const auto& [from, to, from_spec, to_spec, needed] = values_[value];
  return options_.shares_memory && needed && bytes_of(from_spec) >= large_value;
}

SumOverRanks::Uses SumOverRanks::of_begin(std::size_t bucket) const {
  const auto& [packed, large, on_the_way] = buckets_[bucket];
  Uses uses;
  for (const auto i : packed) uses.reads.push_back(values_[i].from);
  for (const auto i : large) uses.reads.push_back(values_[i].from);
  for (const auto i : large)
    if (mapped(i)) uses.writes.push_back(values_[i].to);
  return uses;
}

SumOverRanks::Uses SumOverRanks::of_end(std::size_t bucket) const {
  const auto& [packed, large, on_the_way] = buckets_[bucket];
  Uses uses;
  for (const auto i : packed) uses.writes.push_back(values_[i].to);
  for (const auto i : large) {
    if (mapped(i))
      uses.reads.insert(uses.reads.end(), {values_[i].from, values_[i].to});
    else
      uses.writes.push_back(values_[i].to);
  }
  return uses;
}

void SumOverRanks::begin(std::size_t bucket, exec::HostContext& context) {
  const auto& [packed, large, known] = buckets_[bucket];
  const auto on_the_way = std::make_shared<OnTheWay>(*transport_);
  buckets_[bucket].on_the_way = on_the_way;
  context.keep(on_the_way);
  std::size_t staged_bytes = 0;
  std::vector<exec::Ref> read, written;
  const auto is_staged = [&](std::size_t value) { return !mapped(value); };
  for (const auto* values : {&packed, &large})
    for (const auto i : *values) {
      if (is_staged(i)) {
        staged_bytes += bytes_of(values_[i].from_spec);
      } else {
        read.push_back(values_[i].from);
        written.push_back(values_[i].to);
      }
    }
  on_the_way->staged = context.device().extension<ocl::Staging>().take(staged_bytes);
  auto* at = on_the_way->staged.get();
  std::vector<exec::HostContext::Range> ranges;
  std::vector<Addend> addends;
  const auto stage = [&](std::size_t value) {
    ranges.push_back({values_[value].from, at, bytes_of(values_[value].from_spec)});
    at += ranges.back().bytes;
    return std::span(at - ranges.back().bytes, ranges.back().bytes);
  };
  for (const auto i : packed) stage(i);
  if (at != on_the_way->staged.get()) addends.push_back(in_place({on_the_way->staged.get(), at}));
  if (!read.empty()) on_the_way->mapping = context.map(read, written);
  std::size_t next = 0;
  for (const auto i : large) {
    if (is_staged(i)) {
      addends.push_back(in_place(stage(i)));
    } else {
      addends.push_back(
          {on_the_way->mapping->at(next), on_the_way->mapping->at(read.size() + next), bytes_of(values_[i].from_spec)});
      ++next;
    }
  }
  context.read(ranges);
  if (addends.empty()) return;
  // The transport may keep what it adds longer than this run is.
  const auto dtype = values_[packed.empty() ? large[0] : packed[0]].from_spec.dtype;
  auto memory = std::make_shared<std::pair<std::shared_ptr<std::byte[]>, std::shared_ptr<ocl::Mapping>>>(on_the_way->staged,
                                                                                                         on_the_way->mapping);
  on_the_way->sum = transport_->post({dtype, std::move(addends), std::move(memory), options_.beside});
}

void SumOverRanks::end(std::size_t bucket, exec::HostContext& context) {
  const auto& [packed, large, kept] = buckets_[bucket];
  const auto on_the_way = kept.lock();
  on_the_way->end();
  const std::shared_ptr<const std::byte[]> bytes = on_the_way->staged;
  const auto* at = bytes.get();
  for (const auto* values : {&packed, &large})
    for (const auto i : *values) {
      if (mapped(i)) continue;
      const auto size = bytes_of(values_[i].to_spec);
      if (values_[i].needed) context.write(values_[i].to, bytes, at, size);
      at += size;
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
    auto sum = transport->post({exchanged, {in_place({bytes.get(), size})}, bytes});
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
