// Mixtures of samples: mixup and cut-mix.
#pragma once

#include <cstdint>
#include <string>

#include "clnet/data/dataset.h"
#include "clnet/export.h"

namespace clnet::data {

/// How samples are mixed. Where both are given, each sample takes one of them.
struct MixOptions {
  std::int64_t classes = 0;  ///< of the labels
  double mixup = 0;          ///< above 0: the alpha of mixup, as 0.2
  double cutmix = 0;         ///< above 0: the alpha of cut-mix, as 1
  double share = 1;          ///< of samples that are mixed
};

/// A dataset whose samples are mixed with others of the same dataset. The share of the sample itself is drawn from
/// Beta(alpha, alpha). mixup adds both inputs by their shares (Zhang et al., arXiv:1710.09412). cut-mix puts a rectangle of the
/// other image into the sample (Yun et al., arXiv:1905.04899). Labels, i32 {}, become probabilities, f32 {classes}, and the loss
/// of fit() is their cross-entropy. In masks, i32 {height, width}, cut-mix replaces the rectangle; mixup refuses them. The
/// partner and all numbers come from the sample's seed. A mixed sample reads two.
class CLNET_API Mixed : public Dataset {
 public:
  /// `dataset` must outlive it. Throws Error for a stream, an empty dataset and options out of range.
  Mixed(const Dataset& dataset, const MixOptions& options);
  Mixed(const Dataset&& dataset, const MixOptions& options) = delete;

  std::int64_t size() const override;
  /// Throws ShapeError and DtypeError where a sample is no input f32 with a label, or its partner's shapes differ, and Error for
  /// a label that is no class.
  Example get(std::int64_t index, std::uint64_t seed) const override;
  std::string name_of(std::int64_t index) const override;
  std::string fingerprint() const override;

 private:
  const Dataset* dataset_;
  MixOptions options_;
};

}  // namespace clnet::data
