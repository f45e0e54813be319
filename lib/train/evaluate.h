// Evaluation with any loss, which may be given up on the way.
#pragma once

#include <functional>
#include <optional>

#include "clnet/train.h"

namespace clnet::train {

using Loss = std::function<Tensor(const Tensor& output, const Tensor& labels)>;

/// What belongs to a dataset: mean cross-entropy over the labels that count, or mean squared error over targets. Where no label
/// of a batch counts it is 0: there is nothing to be learned from it.
Loss default_loss(const data::Dataset& dataset);

/// Throws ShapeError unless `output` has the targets' shape, or a dimension of classes more than the labels.
void require_fitting(const Tensor& output, const Tensor& labels);

/// Throws Error, naming label and sample, where the dataset has a label of a class that the model's output has no number for.
void require_classes(const Tensor& output, const Tensor& labels, const data::Dataset& dataset);

/// Loss and accuracy of `model` in inference mode over the whole dataset; nothing when `stop` said so between two batches.
/// `own_loss` is the mean over a batch; none: default_loss(), for which labels have to be classes of the model.
std::optional<Evaluation> evaluate(nn::Module& model, const data::Dataset& dataset, std::int64_t batch_size, const Loss& own_loss,
                                   const std::function<bool()>& stop);

}  // namespace clnet::train
