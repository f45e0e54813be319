// Losses as layers, with the options of their functions (clnet/ops/loss.h).
#pragma once

#include <concepts>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "clnet/export.h"
#include "clnet/nn/module.h"
#include "clnet/ops/loss.h"

namespace clnet::nn {

/// A loss as a layer: nn::Loss{"Hinge", [](const Tensor& x, const Tensor& t) { return mean(relu(1.0 - t * x)); }}. It is called
/// with several tensors, mostly input and target, and can be FitOptions::loss.
template <std::same_as<Tensor>... Inputs>
class CLNET_API LossOf : public Module {
 public:
  using Function = std::function<Tensor(const Inputs&...)>;
  /// A function of weights, too; they may be undefined.
  using Weighted = std::function<Tensor(const std::vector<Tensor>& weights, const Inputs&...)>;

  LossOf(std::string name, Function function)
      : name_(std::move(name)),
        function_([f = std::move(function)](const std::vector<Tensor>&, const Inputs&... inputs) { return f(inputs...); }) {}
  /// Defined weights become buffers of these names, as in PyTorch: they move with the model and are in its state_dict().
  LossOf(std::string name, const std::vector<std::pair<std::string, Tensor>>& weights, Weighted function)
      : name_(std::move(name)), function_(std::move(function)) {
    for (const auto& [weight, value] : weights)
      weights_.push_back(value.defined() ? std::optional(add_buffer(weight, value)) : std::nullopt);
  }

  Tensor operator()(const Inputs&... inputs) const {
    return called(*this, [&](auto& self) {
      std::vector<Tensor> weights;
      for (const auto& weight : self.weights_) weights.push_back(weight ? weight->value() : Tensor{});
      return self.function_(weights, inputs...);
    });
  }
  std::string kind() const override { return name_; }

 private:
  std::string name_;
  std::vector<std::optional<Parameter>> weights_;
  Weighted function_;
};
using Loss = LossOf<Tensor, Tensor>;
using Loss3 = LossOf<Tensor, Tensor, Tensor>;
using Loss4 = LossOf<Tensor, Tensor, Tensor, Tensor>;

// Layers of the functions of clnet/ops/loss.h, which has formulas, shapes and errors. Inputs are input and target unless a
// comment says otherwise.
CLNET_API Loss CrossEntropyLoss(const CrossEntropyOptions& options = {});
CLNET_API Loss NLLLoss(const NllLossOptions& options = {});

CLNET_API Loss MSELoss(Reduction reduction = Reduction::mean);
CLNET_API Loss L1Loss(Reduction reduction = Reduction::mean);
CLNET_API Loss SmoothL1Loss(Reduction reduction = Reduction::mean, double beta = 1);
CLNET_API Loss HuberLoss(Reduction reduction = Reduction::mean, double delta = 1);
CLNET_API Loss BCELoss(Reduction reduction = Reduction::mean, const Tensor& weight = {});
CLNET_API Loss BCEWithLogitsLoss(Reduction reduction = Reduction::mean, const Tensor& weight = {}, const Tensor& pos_weight = {});
CLNET_API Loss FocalLoss(Reduction reduction = Reduction::mean, double alpha = 0.25, double gamma = 2);
CLNET_API Loss KLDivLoss(const KlDivOptions& options = {});
CLNET_API Loss PoissonNLLLoss(const PoissonNllOptions& options = {});
/// Inputs: input, target, variance.
CLNET_API Loss3 GaussianNLLLoss(const GaussianNllOptions& options = {});
/// Inputs: log-probabilities, targets, input lengths, target lengths.
CLNET_API Loss4 CTCLoss(const CtcOptions& options = {});

CLNET_API Loss SoftMarginLoss(Reduction reduction = Reduction::mean);
CLNET_API Loss MultiLabelSoftMarginLoss(Reduction reduction = Reduction::mean, const Tensor& weight = {});
CLNET_API Loss MultiMarginLoss(const MultiMarginOptions& options = {});
CLNET_API Loss MultiLabelMarginLoss(Reduction reduction = Reduction::mean);
CLNET_API Loss HingeEmbeddingLoss(double margin = 1, Reduction reduction = Reduction::mean);
/// Inputs: two inputs, target.
CLNET_API Loss3 MarginRankingLoss(double margin = 0, Reduction reduction = Reduction::mean);
CLNET_API Loss3 CosineEmbeddingLoss(double margin = 0, Reduction reduction = Reduction::mean);
/// Inputs: anchor, positive, negative.
CLNET_API Loss3 TripletMarginLoss(const TripletMarginOptions& options = {});

}  // namespace clnet::nn
