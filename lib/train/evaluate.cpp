#include "lib/train/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/metrics/classes.h"

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

void require_classes(const Tensor& output, const Tensor& labels, const data::Dataset& dataset) {
  if (is_floating(labels.dtype())) return;
  const auto classes = output.size(*class_dim(output, labels));
  if (classes >= dataset.classes) return;
  const auto& all = dataset.is_text() ? dataset.text : dataset.labels;
  const auto found = std::find_if(all.begin(), all.end(), [&](std::int32_t label) { return label >= classes; });
  if (found == all.end()) return;
  const auto place = found - all.begin();
  throw Error(fmt::format("train: {}, and the model gives {} classes",
                          dataset.is_text() ? fmt::format("character {} of the text is number {}", place, *found)
                                            : fmt::format("label {} of sample {} is no class", *found,
                                                          place / std::max<std::int64_t>(1, labels.numel() / labels.size(0))),
                          classes));
}

Loss default_loss(const data::Dataset& dataset) {
  if (!dataset.targets.empty())
    return [](const Tensor& output, const Tensor& targets) { return mean(square(cast(output, Dtype::f32) - targets)); };
  if (dataset.label_shape.rank() == 0)
    return [](const Tensor& output, const Tensor& labels) { return loss_of_classes(output, labels, {}); };
  return [](const Tensor& output, const Tensor& labels) {
    const auto total = loss_of_classes(cast(output, Dtype::f32), labels, {.reduction = Reduction::sum});
    return total / maximum(sum(cast(greater_equal(labels, 0), Dtype::f32)), 1.0);
  };
}

std::optional<Evaluation> evaluate(nn::Module& model, const data::Dataset& dataset, std::int64_t batch_size, const Loss& own_loss,
                                   const std::function<bool()>& stop) {
  if (dataset.size() == 0) throw Error("train::evaluate: the dataset is empty");
  const auto loss = own_loss ? own_loss : default_loss(dataset);
  const nn::KeptModes kept(model);
  model.inference();
  double loss_sum = 0, correct = 0, count = 0;
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
  for (const auto& [images, labels] : data::batches(dataset, {.batch_size = batch_size})) {
    if (stop()) return std::nullopt;
    const auto output = model(images);
    require_fitting(output, labels);
    if (!own_loss && count == 0 && waiting.empty()) require_classes(output, labels, dataset);
    std::vector<Tensor> wanted{loss(output, labels)};
    if (!is_floating(labels.dtype())) wanted.push_back(count_correct(output, labels));
    if (dataset.label_shape.rank() > 0) wanted.push_back(sum(cast(greater_equal(labels, 0), Dtype::f32)));
    eval(wanted);
    for (auto& tensor : wanted) tensor = tensor.detach();
    wanted.resize(3);
    waiting.push_back({wanted[0], wanted[1], wanted[2], labels.numel()});
    if (waiting.size() == most_waiting) read();
  }
  read();
  return Evaluation{loss_sum / count, dataset.targets.empty() ? correct / count : std::numeric_limits<double>::quiet_NaN()};
}

Evaluation evaluate(nn::Module& model, const data::Dataset& dataset, std::int64_t batch_size) {
  return *evaluate(model, dataset, batch_size, Loss{}, [] { return false; });
}

double accuracy(nn::Module& model, const data::Dataset& dataset, std::int64_t batch_size) {
  return evaluate(model, dataset, batch_size).accuracy;
}

}  // namespace clnet::train
