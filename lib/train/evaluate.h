// Evaluation with any loss, which may be given up on the way.
#pragma once

#include <functional>
#include <optional>

#include "clnet/train.h"

namespace clnet::train {

using Loss = std::function<Tensor(const Tensor& output, const Tensor& labels)>;

/// Mean cross-entropy over all labels.
Tensor default_loss(const Tensor& output, const Tensor& labels);

/// Throws ShapeError unless `output` is {...labels' shape, classes}.
void require_fitting(const Tensor& output, const Tensor& labels);

/// Loss and accuracy of `model` in inference mode over the whole dataset; nothing when `stop` said so between two batches. `loss`
/// is the mean over a batch.
std::optional<Evaluation> evaluate(nn::Module& model, const data::Dataset& dataset, std::int64_t batch_size, const Loss& loss,
                                   const std::function<bool()>& stop);

}  // namespace clnet::train
