#include "clnet/nn/loss.h"

#include <utility>

namespace clnet::nn {

namespace {

using Weights = std::vector<Tensor>;

Loss reduced(const char* name, Reduction reduction, Tensor (*loss)(const Tensor&, const Tensor&, Reduction)) {
  return {name, [=](const Tensor& x, const Tensor& t) { return loss(x, t, reduction); }};
}

template <class Options>
Loss with_options(const char* name, const Options& options, Tensor (*loss)(const Tensor&, const Tensor&, const Options&)) {
  return {name, [=](const Tensor& x, const Tensor& t) { return loss(x, t, options); }};
}

/// The weight of the options is a buffer instead.
template <class Options>
Loss weighted(const char* name, Options options, Tensor (*loss)(const Tensor&, const Tensor&, const Options&)) {
  const Tensor weight = std::exchange(options.weight, {});
  return {name, {{"weight", weight}}, [=](const Weights& weights, const Tensor& x, const Tensor& t) {
            Options its = options;
            its.weight = weights[0];
            return loss(x, t, its);
          }};
}

/// Two inputs and a target.
Loss3 pairwise(const char* name, double margin, Reduction reduction,
               Tensor (*loss)(const Tensor&, const Tensor&, const Tensor&, double, Reduction)) {
  return {name, [=](const Tensor& a, const Tensor& b, const Tensor& t) { return loss(a, b, t, margin, reduction); }};
}

}  // namespace

Loss CrossEntropyLoss(const CrossEntropyOptions& options) { return weighted("CrossEntropyLoss", options, cross_entropy); }
Loss NLLLoss(const NllLossOptions& options) { return weighted("NLLLoss", options, nll_loss); }

Loss MSELoss(Reduction reduction) { return reduced("MSELoss", reduction, mse_loss); }
Loss L1Loss(Reduction reduction) { return reduced("L1Loss", reduction, l1_loss); }
Loss SmoothL1Loss(Reduction reduction, double beta) {
  return {"SmoothL1Loss", [=](const Tensor& x, const Tensor& t) { return smooth_l1_loss(x, t, reduction, beta); }};
}
Loss HuberLoss(Reduction reduction, double delta) {
  return {"HuberLoss", [=](const Tensor& x, const Tensor& t) { return huber_loss(x, t, reduction, delta); }};
}
Loss BCELoss(Reduction reduction, const Tensor& weight) {
  return {"BCELoss", {{"weight", weight}}, [=](const Weights& weights, const Tensor& x, const Tensor& t) {
            return binary_cross_entropy(x, t, reduction, weights[0]);
          }};
}
Loss BCEWithLogitsLoss(Reduction reduction, const Tensor& weight, const Tensor& pos_weight) {
  return {"BCEWithLogitsLoss",
          {{"weight", weight}, {"pos_weight", pos_weight}},
          [=](const Weights& weights, const Tensor& x, const Tensor& t) {
            return binary_cross_entropy_with_logits(x, t, reduction, weights[0], weights[1]);
          }};
}
Loss FocalLoss(Reduction reduction, double alpha, double gamma) {
  return {"FocalLoss", [=](const Tensor& x, const Tensor& t) { return sigmoid_focal_loss(x, t, reduction, alpha, gamma); }};
}
Loss KLDivLoss(const KlDivOptions& options) { return with_options("KLDivLoss", options, kl_div); }
Loss PoissonNLLLoss(const PoissonNllOptions& options) { return with_options("PoissonNLLLoss", options, poisson_nll_loss); }
Loss3 GaussianNLLLoss(const GaussianNllOptions& options) {
  return {"GaussianNLLLoss",
          [=](const Tensor& x, const Tensor& t, const Tensor& var) { return gaussian_nll_loss(x, t, var, options); }};
}
Loss4 CTCLoss(const CtcOptions& options) {
  return {"CTCLoss",
          [=](const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths, const Tensor& target_lengths) {
            return ctc_loss(log_probs, targets, input_lengths, target_lengths, options);
          }};
}

Loss SoftMarginLoss(Reduction reduction) { return reduced("SoftMarginLoss", reduction, soft_margin_loss); }
Loss MultiLabelSoftMarginLoss(Reduction reduction, const Tensor& weight) {
  return {"MultiLabelSoftMarginLoss", {{"weight", weight}}, [=](const Weights& weights, const Tensor& x, const Tensor& t) {
            return multilabel_soft_margin_loss(x, t, reduction, weights[0]);
          }};
}
Loss MultiMarginLoss(const MultiMarginOptions& options) { return weighted("MultiMarginLoss", options, multi_margin_loss); }
Loss MultiLabelMarginLoss(Reduction reduction) { return reduced("MultiLabelMarginLoss", reduction, multilabel_margin_loss); }
Loss HingeEmbeddingLoss(double margin, Reduction reduction) {
  return {"HingeEmbeddingLoss", [=](const Tensor& x, const Tensor& t) { return hinge_embedding_loss(x, t, margin, reduction); }};
}
Loss3 MarginRankingLoss(double margin, Reduction reduction) {
  return pairwise("MarginRankingLoss", margin, reduction, margin_ranking_loss);
}
Loss3 CosineEmbeddingLoss(double margin, Reduction reduction) {
  return pairwise("CosineEmbeddingLoss", margin, reduction, cosine_embedding_loss);
}
Loss3 TripletMarginLoss(const TripletMarginOptions& options) {
  return {"TripletMarginLoss", [=](const Tensor& anchor, const Tensor& positive, const Tensor& negative) {
            return triplet_margin_loss(anchor, positive, negative, options);
          }};
}

}  // namespace clnet::nn
