// A softmax over many classes of which few are frequent.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "clnet/export.h"
#include "clnet/nn/linear.h"
#include "clnet/nn/module.h"
#include "clnet/ops/reduce.h"

namespace clnet::nn {

struct AdaptiveLogSoftmaxOptions {
  double div_value = 4.0;  ///< how many times fewer features each cluster has than the one before
  bool head_bias = false;
};

struct AdaptiveLogSoftmaxResult {
  Tensor output;  ///< {batch}: the targets' log-probabilities
  Tensor loss;    ///< their mean, negative: one element
};

/// Classes in the order of their frequency, the most frequent first (Grave et al., "Efficient softmax approximation for GPUs",
/// 2017): the head scores the classes before the first cutoff and the clusters, and each cluster scores its classes from fewer
/// features. Parameters head.weight, tail.0.0.weight, tail.0.1.weight, tail.1.0.weight, ... Every cluster is computed for every
/// row, as rows cannot be chosen without a wait; one without a target among them gets gradients of zeros.
class CLNET_API AdaptiveLogSoftmaxWithLoss : public Module {
 public:
  /// `cutoffs`: the first class of each cluster, ascending, from 1 to n_classes - 1, one at least.
  AdaptiveLogSoftmaxWithLoss(std::int64_t in_features, std::int64_t n_classes, const std::vector<std::int64_t>& cutoffs,
                             const AdaptiveLogSoftmaxOptions& options = {});
  /// x {batch, in_features} and integer targets {batch}, or {in_features} and {}. A target that is no class is an Error or
  /// NaN, as of cross_entropy().
  AdaptiveLogSoftmaxResult operator()(const Tensor& x, const Tensor& target) const {
    return called(*this, [&](auto& self) { return self.of_targets(x, target); });
  }
  using Module::operator();
  /// The log-probabilities of all classes: {batch, n_classes}, or {n_classes}.
  Tensor forward(const Tensor& x) override;
  Tensor log_prob(const Tensor& x) const { return (*this)(x); }
  /// The most likely class of each row: {batch}, or {}.
  Tensor predict(const Tensor& x) const { return argmax(log_prob(x), -1); }
  std::string kind() const override;

 private:
  AdaptiveLogSoftmaxResult of_targets(const Tensor& x, const Tensor& target);
  void require_input(const Tensor& x) const;
  std::int64_t shortlist() const { return sizes_.cutoffs[0]; }
  std::int64_t begin_of(std::size_t cluster) const { return sizes_.cutoffs[cluster]; }
  std::int64_t end_of(std::size_t cluster) const {
    return cluster + 1 < sizes_.cutoffs.size() ? sizes_.cutoffs[cluster + 1] : sizes_.n_classes;
  }

  struct Sizes {
    std::int64_t in_features, n_classes;
    std::vector<std::int64_t> cutoffs;
  };
  static Sizes checked(Sizes sizes);

  Sizes sizes_;
  AdaptiveLogSoftmaxOptions options_;
  Linear head_;
  std::vector<Sequential> clusters_;
  Sequential tail_;  ///< the clusters, for their names
};

}  // namespace clnet::nn
