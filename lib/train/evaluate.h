// Evaluation with any loss, which may be given up on the way.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "clnet/train.h"

namespace clnet::train {

using Loss = std::function<Tensor(const Tensor& output, const Tensor& labels)>;

/// Mean squared error over targets, mean cross-entropy over labels that count. Where no label of a batch counts it is 0: there is
/// nothing to be learned from it.
Loss default_loss(const data::Dataset& dataset);

/// Whether each label counts: a label that does not has neighbours, as pixels have.
bool all_labels_count(const data::Dataset& dataset);
/// Whether labels are probabilities of classes.
bool is_mixed(const data::Dataset& dataset);

/// How many labels of a batch count for the default loss; undefined where all do.
Tensor counted_labels(const data::Dataset& dataset, const Tensor& labels);

/// Throws ShapeError unless `output` has the targets' shape, or a dimension of classes more than the labels.
void require_fitting(const Tensor& output, const Tensor& labels);

/// Throws Error for two metrics of one name.
void require_names(std::span<const metrics::Metric> metrics);

/// Throws Error, naming label and sample, where a dataset in memory has a label of a class that the
/// model's output has no number for.
void require_classes(const Tensor& output, const Tensor& labels, const data::Dataset& dataset);

/// As evaluate(); nothing when `stop` said so between two batches. Without a loss labels have to be classes of the model.
/// `shares`: of each batch, by rank; empty: equal ones.
std::optional<Evaluation> evaluate(nn::Module& model, const data::Dataset& dataset, const EvaluateOptions& options,
                                   const std::function<bool()>& stop, std::vector<double> shares = {});

/// The loss, outputs and labels of a batch: by the step function, or the model's output and `loss`. With an `own_loss` samples
/// may do without labels. Otherwise all labels of the dataset `of`, unless it is null, have to be classes of the model.
Step step_of(nn::Module& model, const data::Batch& batch, const StepFunction& function, const Loss& loss, bool own_loss,
             const data::Dataset* of);

}  // namespace clnet::train
