// Which samples an epoch has: weights, balanced classes, subsets, and splits that keep the classes' shares.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "clnet/data/arrays.h"
#include "clnet/data/batches.h"
#include "clnet/data/dataset.h"
#include "clnet/export.h"

namespace clnet::data {

/// The class of each sample. Datasets without Dataset::label_of() are read once from front to back. Throws Error for a stream,
/// and for a dataset whose samples have no single label.
CLNET_API std::vector<std::int32_t> labels_of(const Dataset& dataset);

/// Weights for cross_entropy(): samples / (classes * samples of the class), as scikit-learn's "balanced". A class without samples
/// gets 0. Throws Error for a label outside of 0..classes-1, and without labels.
CLNET_API std::vector<float> class_weights(std::span<const std::int32_t> labels, std::int64_t classes);

/// Options of weighted_sampler().
struct WeightedOptions {
  std::int64_t samples = 0;  ///< per epoch; 0: as many as there are weights
  bool replacement = true;   ///< a sample may come several times in an epoch
};
/// Draws samples with chances proportional to their weights, as torch.utils.data.WeightedRandomSampler. Throws Error for a weight
/// that is negative or no number, for weights without a positive one, and where fewer samples than wanted have a positive weight.
CLNET_API Sampler weighted_sampler(const std::vector<double>& weights, const WeightedOptions& options = {});
/// Draws all classes equally often on average, with replacement: `samples` per epoch, or as many as there are labels.
CLNET_API Sampler balanced_sampler(std::span<const std::int32_t> labels, std::int64_t samples = 0);

/// Some samples of a dataset, which must outlive it. Throws Error for a stream, and for an index out of range.
class CLNET_API Subset : public Dataset {
 public:
  Subset(const Dataset& dataset, std::vector<std::int64_t> indices);
  Subset(const Dataset&& dataset, std::vector<std::int64_t> indices) = delete;
  std::int64_t size() const override { return static_cast<std::int64_t>(indices_.size()); }
  Example get(std::int64_t index, std::uint64_t seed) const override;
  std::int32_t label_of(std::int64_t index) const override;
  std::string name_of(std::int64_t index) const override;
  std::string fingerprint() const override;

 private:
  std::int64_t at(std::int64_t index) const;

  const Dataset* dataset_;
  std::vector<std::int64_t> indices_;
};

/// Several datasets, one behind the other. They must outlive it. Throws Error for a stream.
class CLNET_API ConcatDataset : public Dataset {
 public:
  explicit ConcatDataset(std::vector<const Dataset*> parts);
  std::int64_t size() const override { return ends_.empty() ? 0 : ends_.back(); }
  Example get(std::int64_t index, std::uint64_t seed) const override;
  std::int32_t label_of(std::int64_t index) const override;
  std::string name_of(std::int64_t index) const override;
  std::string fingerprint() const override;

 private:
  std::pair<const Dataset*, std::int64_t> at(std::int64_t index) const;

  std::vector<const Dataset*> parts_;
  std::vector<std::int64_t> ends_;
};

/// Indices of two sets, of which the second has this share of each class, at least one sample where a class has two. Both are in
/// order, and the same seed gives the same. Throws Error for a share that is not between 0 and 1.
CLNET_API std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>> stratified_split(std::span<const std::int32_t> labels,
                                                                                           double share, std::uint64_t seed = 0);
/// Two parts of a dataset by stratified_split(). It must outlive them.
CLNET_API std::pair<Subset, Subset> split(const Dataset& dataset, double share, std::uint64_t seed = 0);
std::pair<Subset, Subset> split(const Dataset&& dataset, double share, std::uint64_t seed = 0) = delete;
/// The same as two datasets in memory, which may be augmented. Of targets or labels per pixel, samples are split as if they had
/// one class. Throws Error for a text.
CLNET_API std::pair<ArrayDataset, ArrayDataset> split(const ArrayDataset& dataset, double share, std::uint64_t seed = 0);

}  // namespace clnet::data
