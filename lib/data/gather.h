// Copies chosen samples of a dataset to a batch: images converted to f32 and normalised, pieces of a text.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "clnet/data.h"

namespace clnet::data {

/// Throws Error, naming the dataset, when its parts do not fit together: number of values, labels, channels, mean and std.
void validate(const ArrayDataset& dataset);
/// Extent 0 of the samples, 1 for scalars.
std::int64_t channels_of(const ArrayDataset& dataset);

/// `dataset` must be valid and outlive it.
class Gather {
 public:
  explicit Gather(const ArrayDataset& dataset);
  /// {indices.size(), ...sample_shape} floats.
  void images(std::span<const std::int64_t> indices, float* out) const;
  /// {indices.size(), ...label_shape}, and of a dataset of targets {indices.size(), ...target_shape}.
  void labels(std::span<const std::int64_t> indices, std::int32_t* out) const;
  void targets(std::span<const std::int64_t> indices, float* out) const;
  /// Of a text: {indices.size(), length} characters of samples that begin `shift` later, the last one no later than it can.
  void characters(std::span<const std::int64_t> indices, std::int64_t shift, std::int32_t* out) const;
  /// And those that follow each of them.
  void next_characters(std::span<const std::int64_t> indices, std::int64_t shift, std::int32_t* out) const;

  /// One sample with its labels, targets or following characters.
  Example example(std::int64_t index, std::int64_t shift) const;

 private:
  void pieces(std::span<const std::int64_t> indices, std::int64_t shift, std::int64_t ahead, std::int32_t* out) const;

  const ArrayDataset& dataset_;
  std::size_t planes_ = 1;    ///< a sample's channels that are converted differently
  std::size_t plane_ = 0;     ///< values of one
  std::vector<float> table_;  ///< u8 only: what each of 256 values becomes, per plane
};

}  // namespace clnet::data
