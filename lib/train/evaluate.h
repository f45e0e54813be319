// Evaluation with any loss, which may be given up on the way.
#pragma once

#include <functional>
#include <optional>

#include "clnet/train.h"

namespace clnet::train {

using Loss = std::function<Tensor(const Tensor& output, const Tensor& labels)>;

/// Computes the model's output for a batch.
using Forward = std::function<Tensor(const data::Batch& batch)>;

/// Mean squared error over targets, mean cross-entropy over labels that count. Where no label of a batch counts it is 0: there is
/// nothing to be learned from it.
Loss default_loss(const data::Dataset& dataset);

/// Throws ShapeError unless `output` has the targets' shape, or a dimension of classes more than the labels.
void require_fitting(const Tensor& output, const Tensor& labels);

/// Throws Error, naming label and sample, where a dataset in memory has a label of a class that the model's output has no number
/// for.
void require_classes(const Tensor& output, const Tensor& labels, const data::Dataset& dataset);

/// The output for a batch, which fits its labels. `own_loss`: the caller's loss, which may do without labels.
Tensor output_of_batch(nn::Module& model, const data::Batch& batch, const Forward& forward, bool own_loss);

/// How evaluate() goes.
struct EvaluateRun {
  data::BatchOptions batches;
  Loss loss = nullptr;        ///< the mean over a batch; none: default_loss(), for labels that are classes of the model
  Forward forward = nullptr;  ///< none: the model of the first tensor
  std::function<bool()> stop = nullptr;  ///< asked between two batches
};

/// Loss and accuracy of `model` in inference mode over the whole dataset; nothing when `stop` said so.
std::optional<Evaluation> evaluate(nn::Module& model, const data::Dataset& dataset, const EvaluateRun& run);

}  // namespace clnet::train
