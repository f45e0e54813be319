// The order in which an epoch visits the samples, and the random numbers of each.
#pragma once

#include <cstdint>
#include <vector>

#include "clnet/data/batches.h"

namespace clnet::data {

/// 0..count-1, shuffled by a generator of our own: the same seed and epoch give the same order on every machine and compiler.
std::vector<std::int64_t> epoch_order(std::int64_t count, bool shuffle, std::uint64_t seed, std::uint64_t epoch);

/// Sorts pools of `pool` batches by the samples' lengths where the epoch is shuffled, and shuffles the batches of each; else all
/// samples. The last batch, if it is not full, stays the last.
void sort_by_length(std::vector<std::int64_t>& order, const BatchOptions& options, std::int64_t pool = 64);

/// The samples of each batch of an epoch, one batch after the other.
class EpochBatches {
 public:
  EpochBatches(std::int64_t samples, const BatchOptions& options)
      : samples_(samples), epoch_samples_(options.sampler ? options.sampler->size : samples), options_(options) {}
  /// Nothing at the end.
  std::vector<std::int64_t> next();

 private:
  /// Whether samples come as they are numbered, which needs no list of them.
  bool is_plain() const { return !options_.shuffle && !options_.length && !options_.sampler; }
  std::vector<std::int64_t> made_order() const;
  void begin();

  const std::int64_t samples_, epoch_samples_;  ///< of the dataset, and of an epoch
  const BatchOptions options_;
  bool begun_ = false;
  std::vector<std::int64_t> order_;  ///< where they do not come as they are numbered
  std::int64_t first_ = 0;           ///< of the next batch
};

/// By how many characters a text's samples are shifted in an epoch: 0..length-1, 0 where it is not shuffled.
std::int64_t epoch_shift(std::int64_t length, bool shuffle, std::uint64_t seed, std::uint64_t epoch);

/// Numbers for one sample of an epoch, whatever batch it is in.
class SampleRandom {
 public:
  SampleRandom(std::uint64_t seed, std::uint64_t epoch, std::int64_t index);
  std::uint64_t next();
  /// 0..count-1, each equally likely.
  std::uint64_t below(std::uint64_t count);
  /// From 0 on and below 1.
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  /// Above 0 and below 1.
  double inside_unit() { return (static_cast<double>(next() >> 12) + 0.5) * 0x1p-52; }

 private:
  std::uint64_t state_;
};

}  // namespace clnet::data
