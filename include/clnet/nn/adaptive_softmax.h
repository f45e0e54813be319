// Softmax over many classes, few of them frequent.
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
  double div_value = 4.0;  ///< each cluster has this many times fewer features than the one before
  bool head_bias = false;
};

struct AdaptiveLogSoftmaxResult {
  Tensor output;  ///< {batch}: the targets' log-probabilities
  Tensor loss;    ///< the negative mean of `output`: one element
};

/// torch.nn.AdaptiveLogSoftmaxWithLoss (Grave et al., "Efficient softmax approximation for GPUs", 2017), for classes in
/// descending order of frequency. The head scores the clusters and the classes before the first cutoff; each cluster scores its
/// classes from fewer features. Parameters head.weight, tail.0.0.weight, tail.0.1.weight, tail.1.0.weight, ...
///
/// Every cluster is computed for every row, as a choice of rows would need a wait. A cluster without a target gets zero
/// gradients.
class CLNET_API AdaptiveLogSoftmaxWithLoss : public Module {
 public:
  /// `cutoffs`: the first class of each cluster, ascending, from 1 to n_classes - 1, at least one. Throws Error for other
  /// cutoffs, a div_value not above 0, and a cluster without features.
  AdaptiveLogSoftmaxWithLoss(std::int64_t in_features, std::int64_t n_classes, const std::vector<std::int64_t>& cutoffs,
                             const AdaptiveLogSoftmaxOptions& options = {});
  /// x {batch, in_features} and targets {batch}, i32 or i64; or {in_features} and {}. Throws ShapeError or DtypeError otherwise.
  /// A target that is no class is an Error or NaN, as in cross_entropy().
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
