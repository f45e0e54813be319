#include "lib/data/epoch_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "clnet/error.h"

namespace clnet::data {
namespace {

/// SplitMix64's output function (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014).
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

constexpr std::uint64_t step = 0x9e3779b97f4a7c15ULL;

/// 0..count-1, each equally likely: numbers from the last, incomplete run of `count` are thrown away.
template <class Next>
std::uint64_t number_below(std::uint64_t count, const Next& next) {
  const std::uint64_t surplus = (0 - count) % count;
  for (;;) {
    const auto x = next();
    if (x >= surplus) return x % count;
  }
}

class Random {
 public:
  Random(std::uint64_t seed, std::uint64_t epoch) : state_(mix(mix(seed + step) + epoch * step)) {}
  std::uint64_t next() { return mix(state_ += step); }
  std::uint64_t below(std::uint64_t count) {
    return number_below(count, [this] { return next(); });
  }

 private:
  std::uint64_t state_;
};

}  // namespace

std::vector<std::int64_t> epoch_order(std::int64_t count, bool shuffle, std::uint64_t seed, std::uint64_t epoch) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  if (!shuffle) return order;
  Random random(seed, epoch);
  for (std::size_t left = order.size(); left > 1; --left) std::swap(order[left - 1], order[random.below(left)]);
  return order;
}

void sort_by_length(std::vector<std::int64_t>& order, const BatchOptions& options, std::int64_t pool) {
  std::vector<std::pair<std::int64_t, std::int64_t>> keyed;
  keyed.reserve(order.size());
  for (const auto index : order) keyed.emplace_back(options.length(index), index);
  const auto batch = static_cast<std::size_t>(options.batch_size);
  const auto full = keyed.size() / batch;  // batches
  const auto shorter = [](const auto& a, const auto& b) { return a.first < b.first; };
  if (!options.shuffle) {
    std::stable_sort(keyed.begin(), keyed.end(), shorter);
    std::transform(keyed.begin(), keyed.end(), order.begin(), [](const auto& key) { return key.second; });
    return;
  }
  // Another seed than the order's.
  Random random(options.seed ^ step, options.epoch);
  const auto place = [](std::size_t at) { return static_cast<std::ptrdiff_t>(at); };
  auto out = order.begin();
  for (std::size_t first = 0; first <= full; first += static_cast<std::size_t>(pool)) {
    const auto last = std::min(first + static_cast<std::size_t>(pool), full);
    const auto begin = keyed.begin() + place(first * batch);
    std::stable_sort(begin, last == full ? keyed.end() : keyed.begin() + place(last * batch), shorter);
    std::vector<std::size_t> batches(last - first);
    std::iota(batches.begin(), batches.end(), std::size_t{0});
    for (std::size_t left = batches.size(); left > 1; --left) std::swap(batches[left - 1], batches[random.below(left)]);
    for (const auto chosen : batches)
      out = std::transform(begin + place(chosen * batch), begin + place((chosen + 1) * batch), out,
                           [](const auto& key) { return key.second; });
  }
  std::transform(keyed.begin() + place(full * batch), keyed.end(), out, [](const auto& key) { return key.second; });
}

std::vector<std::int64_t> EpochBatches::made_order() const {
  if (!options_.sampler) return epoch_order(samples_, options_.shuffle, options_.seed, options_.epoch);
  auto order = options_.sampler->order(options_.seed, options_.epoch);
  if (std::cmp_not_equal(order.size(), epoch_samples_))
    throw Error(fmt::format("batches: the sampler gave {} samples, expected {}", order.size(), epoch_samples_));
  for (const auto index : order)
    if (index < 0 || index >= samples_)
      throw Error(fmt::format("batches: the sampler gave sample {}, and the dataset has {}", index, samples_));
  return order;
}

void EpochBatches::begin() {
  first_ = options_.start * options_.batch_size;
  try {
    if (!is_plain()) order_ = made_order();
    if (options_.length) sort_by_length(order_, options_);
  } catch (const std::bad_alloc&) {
    throw Error(fmt::format("batches: there is no memory for an order of {} samples; a stream needs none", epoch_samples_));
  } catch (const std::length_error&) {
    throw Error(fmt::format("batches: {} samples are too many for an order of them; a stream needs none", epoch_samples_));
  }
  begun_ = true;
}

std::vector<std::int64_t> EpochBatches::next() {
  const auto end = options_.drop_last ? epoch_samples_ - epoch_samples_ % options_.batch_size : epoch_samples_;
  if (!begun_) {
    if (options_.start > end / options_.batch_size) return {};  // also keeps a product from overflowing
    begin();
  }
  if (first_ >= end) return {};
  const auto first = first_, count = std::min(options_.batch_size, end - first_);
  first_ += count;
  if (!is_plain()) return {order_.begin() + first, order_.begin() + first + count};
  std::vector<std::int64_t> indices(static_cast<std::size_t>(count));
  std::iota(indices.begin(), indices.end(), first);
  return indices;
}

std::int64_t epoch_shift(std::int64_t length, bool shuffle, std::uint64_t seed, std::uint64_t epoch) {
  // Another seed than the order's, so that they do not depend on each other.
  return shuffle ? static_cast<std::int64_t>(Random(~seed, epoch).below(static_cast<std::uint64_t>(length))) : 0;
}

// Another seed than the order's here, too.
SampleRandom::SampleRandom(std::uint64_t seed, std::uint64_t epoch, std::int64_t index)
    : state_(mix(mix(mix(~seed + step) + epoch * step) + static_cast<std::uint64_t>(index) * step)) {}
std::uint64_t SampleRandom::next() { return mix(state_ += step); }
std::uint64_t SampleRandom::below(std::uint64_t count) {
  return number_below(count, [this] { return next(); });
}

}  // namespace clnet::data
