// Changes a batch's samples, in each epoch otherwise.
#pragma once

#include <cstdint>
#include <vector>

#include "clnet/data.h"

namespace clnet::data {

/// Throws Error where the augmentation makes no sense for samples like these.
void validate(const Augmentation& augmentation, const ArrayDataset& dataset);

/// `dataset` must be valid and outlive it.
class Augmenter {
 public:
  Augmenter(const ArrayDataset& dataset, Augmentation augmentation, std::uint64_t seed, std::uint64_t epoch);
  /// Whether there is anything to do.
  explicit operator bool() const;
  /// The sample of this index: `sample.random` is set here.
  void operator()(std::int64_t index, Sample sample) const;

 private:
  const ArrayDataset& dataset_;
  const Augmentation augmentation_;
  const std::uint64_t seed_, epoch_;
  std::vector<float> black_;  ///< what a pixel of value 0 is, per channel
};

}  // namespace clnet::data
