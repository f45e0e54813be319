#include "lib/train/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "clnet/data/mixing.h"
#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/metrics/classes.h"
#include "lib/train/job.h"
#include "lib/train/scatter.h"

namespace clnet::train {

using metrics::class_dim;

namespace {

/// What one batch adds, on the device until it is read.
struct BatchSums {
  Tensor loss, correct;
  Tensor counted;       ///< labels that count; undefined: all
  std::int64_t labels;  ///< or targets
};

/// Batches whose results wait on the device; more would only let the host run further ahead.
constexpr std::size_t most_waiting = 8;

Tensor count_correct(const Tensor& output, const Tensor& labels) {
  return sum(cast(eq(argmax(output, *class_dim(output, labels)), cast(labels, Dtype::i64)), Dtype::f32));
}

Tensor loss_of_classes(const Tensor& output, const Tensor& labels, const CrossEntropyOptions& options) {
  const auto dim = class_dim(output, labels);
  if (labels.rank() == 1 || dim != output.rank() - 1) return cross_entropy(output, labels, options);
  return cross_entropy(flatten(output, 0, -2), flatten(labels, 0, -1), options);
}

}  // namespace

bool all_labels_count(const data::Dataset& dataset) {
  if (const auto* scattered = dynamic_cast<const Scattered*>(&dataset)) return scattered->facts().all_labels_count;
  const auto* arrays = dynamic_cast<const data::ArrayDataset*>(&dataset);
  return arrays && arrays->label_shape.rank() == 0;
}

bool is_mixed(const data::Dataset& dataset) {
  if (const auto* scattered = dynamic_cast<const Scattered*>(&dataset)) return scattered->facts().mixes;
  return dynamic_cast<const data::Mixed*>(&dataset) != nullptr;
}

void require_fitting(const Tensor& output, const Tensor& labels) {
  if (is_floating(labels.dtype())) {
    if (output.shape() == labels.shape()) return;
    throw ShapeError(fmt::format("train: the model gives {} for targets {}, expected their shape", to_string(output.shape()),
                                 to_string(labels.shape())));
  }
  if (class_dim(output, labels)) return;
  if (labels.rank() == 1)
    throw ShapeError(fmt::format("train: the model gives {} for {} samples, expected {{samples, classes}}",
                                 to_string(output.shape()), labels.size(0)));
  throw ShapeError(
      fmt::format("train: the model gives {} for labels {}, expected a dimension of classes behind theirs, or the second",
                  to_string(output.shape()), to_string(labels.shape())));
}

void require_names(std::span<const metrics::Metric> metrics) {
  for (std::size_t i = 0; i < metrics.size(); ++i)
    for (std::size_t k = 0; k < i; ++k)
      if (metrics[i].name() == metrics[k].name())
        throw Error(fmt::format("train: two metrics are called '{}'; named() gives another name", metrics[i].name()));
}

void require_classes(const Tensor& output, const Tensor& labels, const data::Dataset& dataset) {
  const auto* arrays = dynamic_cast<const data::ArrayDataset*>(held(dataset));
  if (!arrays || is_floating(labels.dtype())) return;
  const auto classes = output.size(*class_dim(output, labels));
  if (classes >= arrays->classes) return;
  const auto& all = arrays->is_text() ? arrays->text : arrays->labels;
  const auto found = std::find_if(all.begin(), all.end(), [&](std::int32_t label) { return label >= classes; });
  if (found == all.end()) return;
  const auto place = found - all.begin();
  throw Error(fmt::format("train: {}, and the model gives {} classes",
                          arrays->is_text() ? fmt::format("character {} of the text is number {}", place, *found)
                                            : fmt::format("label {} of sample {} is no class", *found,
                                                          place / std::max<std::int64_t>(1, labels.numel() / labels.size(0))),
                          classes));
}

Loss default_loss(const data::Dataset& dataset) {
  return [mixes = is_mixed(dataset), all = all_labels_count(dataset)](const Tensor& output, const Tensor& labels) {
    if (mixes && is_floating(labels.dtype())) return cross_entropy(cast(output, Dtype::f32), labels);
    if (is_floating(labels.dtype())) return mean(square(cast(output, Dtype::f32) - labels));
    const auto classes = labels.dtype() == Dtype::i64 ? labels : cast(labels, Dtype::i32);
    if (all) return loss_of_classes(output, classes, {});
    const auto total = loss_of_classes(cast(output, Dtype::f32), classes, {.reduction = Reduction::sum});
    return total / maximum(sum(cast(greater_equal(classes, 0), Dtype::f32)), 1.0);
  };
}

Tensor counted_labels(const data::Dataset& dataset, const Tensor& labels) {
  if (!labels.defined() || is_floating(labels.dtype()) || all_labels_count(dataset)) return {};
  return sum(cast(greater_equal(labels, 0), Dtype::f32));
}

Step step_of(nn::Module& model, const data::Batch& batch, const StepFunction& function, const Loss& loss, bool own_loss,
             const data::Dataset* of) {
  if (function) {
    auto step = function(model, batch);
    if (!step.loss.defined() || step.loss.numel() != 1)
      throw Error(fmt::format("train: the step function gave {}, expected a loss of one element",
                              step.loss.defined() ? to_string(step.loss.spec()) : "no loss"));
    return step;
  }
  const auto output = model(batch.images);
  const auto& labels = batch.labels;
  if (!labels.defined()) {
    if (!own_loss) throw Error("train: samples have one array and no labels, so a loss of your own is needed");
    return {loss(output, labels), {output}, {}};
  }
  require_fitting(output, labels);
  if (of && !own_loss) require_classes(output, labels, *of);
  return {loss(output, labels), {output}, {labels}};
}

std::optional<Evaluation> evaluate(nn::Module& model, const data::Dataset& dataset, const EvaluateOptions& options,
                                   const std::function<bool()>& stop, std::vector<double> shares) {
  if (dataset.size() == 0) throw Error("train::evaluate: the dataset is empty");
  if (options.loss && options.step_function) throw Error("train::evaluate: a loss beside a step function, which has its own");
  const auto loss = options.loss ? options.loss : default_loss(dataset);
  require_names(options.metrics);
  std::vector<metrics::Metric> measures;
  for (const auto& metric : options.metrics) measures.push_back(metric.fresh());
  const nn::KeptModes kept(model);
  model.inference();
  double loss_sum = 0, correct = 0, count = 0;
  bool has_accuracy = false, begun = false;
  std::vector<BatchSums> waiting;
  const auto read = [&] {
    for (const auto& sums : waiting) {
      const double labels = sums.counted.defined() ? sums.counted.item<double>() : static_cast<double>(sums.labels);
      if (labels == 0) continue;
      loss_sum += sums.loss.item<double>() * labels;
      count += labels;
      if (sums.correct.defined()) correct += sums.correct.item<double>();
    }
    waiting.clear();
  };
  const Job job(options.group, std::move(shares));
  BatchSource batches(dataset, {.batch_size = options.batch_size,
                                .workers = options.workers,
                                .prefetch = options.prefetch,
                                .collate = options.collate,
                                .share = job.share()});
  while (const auto next = batches.next()) {
    const auto& batch = *next;
    if (!job.several() && stop()) return std::nullopt;
    if (!batch.images.defined()) {
      begun = true;
      continue;  // a small batch has nothing for this rank
    }
    const auto step =
        step_of(model, batch, options.step_function, loss, static_cast<bool>(options.loss), begun ? nullptr : &dataset);
    begun = true;
    const auto& labels = batch.labels;
    const bool has_labels = !options.step_function && labels.defined();
    BatchSums sums{step.loss, {}, step.count, has_labels ? labels.numel() : batch.images.size(0)};
    if (has_labels && !is_floating(labels.dtype())) {
      has_accuracy = true;
      sums.correct = count_correct(step.outputs[0], labels);
      sums.counted = counted_labels(dataset, labels);
    }
    auto wanted = metrics::update(measures, step.outputs, step.labels);
    for (const auto* tensor : {&sums.loss, &sums.correct, &sums.counted})
      if (tensor->defined()) wanted.push_back(*tensor);
    eval(wanted);
    for (auto* tensor : {&sums.loss, &sums.correct, &sums.counted})
      if (tensor->defined()) *tensor = tensor->detach();
    for (auto& metric : measures) metric.detach();
    waiting.push_back(std::move(sums));
    if (waiting.size() == most_waiting) read();
  }
  read();
  if (!begun) throw Error("train::evaluate: the dataset is empty");
  // Ranks agree on whether they were asked to stop once all have computed their share.
  std::array<double, 5> sums{loss_sum, correct, count, has_accuracy ? 1.0 : 0.0, job.several() && stop() ? 1.0 : 0.0};
  job.add_up(sums);
  if (sums[4] > 0) return std::nullopt;
  return Evaluation{sums[0] / sums[2], sums[3] > 0 ? sums[1] / sums[2] : std::numeric_limits<double>::quiet_NaN(),
                    job.results(measures)};
}

Evaluation evaluate(nn::Module& model, const data::Dataset& dataset, const EvaluateOptions& options) {
  const auto never = [] { return false; };
  if (!options.scatter_data || !options.group || options.group->size() == 1) return *evaluate(model, dataset, options, never);
  return *evaluate(model, Scattered(dataset, *options.group, false), options, never);
}

Evaluation evaluate(nn::Module& model, const data::Dataset& dataset, std::int64_t batch_size) {
  return evaluate(model, dataset, EvaluateOptions{.batch_size = batch_size});
}

std::vector<std::vector<std::int64_t>> confusion_matrix(nn::Module& model, const data::Dataset& dataset,
                                                        const data::BatchOptions& options) {
  const nn::KeptModes kept(model);
  model.inference();
  std::vector<std::vector<std::int64_t>> counts;
  for (const data::Batch& batch : data::batches(dataset, options)) {
    const auto& labels = batch.labels;
    if (!labels.defined() || labels.rank() != 1 || is_floating(labels.dtype()))
      throw Error("train::confusion_matrix: samples need one class each");
    const auto output = model(batch.images);
    require_fitting(output, labels);
    const auto classes = static_cast<std::size_t>(output.size(1));
    counts.resize(classes, std::vector<std::int64_t>(classes));
    const auto found = cast(argmax(output, 1), Dtype::i64).to_vector<std::int64_t>();
    const auto wanted = cast(labels, Dtype::i64).to_vector<std::int64_t>();
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (wanted[i] < 0 || std::cmp_greater_equal(wanted[i], classes))
        throw Error(fmt::format("train::confusion_matrix: label {} is none of {} classes", wanted[i], classes));
      ++counts[static_cast<std::size_t>(wanted[i])][static_cast<std::size_t>(found[i])];
    }
  }
  if (counts.empty()) throw Error("train::confusion_matrix: the dataset is empty");
  return counts;
}

double accuracy(nn::Module& model, const data::Dataset& dataset, std::int64_t batch_size) {
  return evaluate(model, dataset, batch_size).accuracy;
}

}  // namespace clnet::train
