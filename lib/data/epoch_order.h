// The order in which an epoch visits the samples, and the random numbers of each.
#pragma once

#include <cstdint>
#include <vector>

namespace clnet::data {

/// 0..count-1, shuffled by a generator of our own: the same seed and epoch give the same order on every machine and compiler.
std::vector<std::int64_t> epoch_order(std::int64_t count, bool shuffle, std::uint64_t seed, std::uint64_t epoch);

/// By how many characters a text's samples are shifted in an epoch: 0..length-1, 0 where it is not shuffled.
std::int64_t epoch_shift(std::int64_t length, bool shuffle, std::uint64_t seed, std::uint64_t epoch);

/// Numbers for one sample of an epoch, whatever batch it is in.
class SampleRandom {
 public:
  SampleRandom(std::uint64_t seed, std::uint64_t epoch, std::int64_t index);
  std::uint64_t next();
  /// 0..count-1, each equally likely.
  std::uint64_t below(std::uint64_t count);

 private:
  std::uint64_t state_;
};

}  // namespace clnet::data
