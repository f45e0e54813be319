#include "lib/train/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "clnet/error.h"
#include "clnet/ops.h"

namespace clnet::train {

namespace {

/// What one batch adds, on the device until it is read.
struct Part {
  Tensor loss, correct;
  Tensor counted;       ///< labels that count; undefined: all
  std::int64_t labels;  ///< or targets
};

/// Batches whose results wait on the device; more would only let the host run further ahead.
constexpr std::size_t most_waiting = 8;

/// The dimension of the output that classes are in: the last one, or as PyTorch has it the second one of what lies on pixels;
/// none where the shapes do not fit.
std::optional<int> class_dim(const Tensor& output, const Tensor& labels) {
  if (output.rank() != labels.rank() + 1) return std::nullopt;
  const auto fits = [&](int dim) {
    auto at = labels.shape().begin();
    for (int d = 0; d < output.rank(); ++d)
      if (d != dim && output.size(d) != *at++) return false;
    return true;
  };
  const int last = output.rank() - 1, first = labels.rank() > 2 ? 1 : last;
  for (int dim : {first, last, 1})
    if (fits(dim)) return dim;
  return std::nullopt;
}

Tensor count_correct(const Tensor& output, const Tensor& labels) {
  return sum(cast(eq(argmax(output, *class_dim(output, labels)), cast(labels, Dtype::i64)), Dtype::f32));
}

Tensor loss_of_classes(const Tensor& output, const Tensor& labels, const CrossEntropyOptions& options) {
  const auto dim = class_dim(output, labels);
  if (labels.rank() == 1 || dim != output.rank() - 1) return cross_entropy(output, labels, options);
  return cross_entropy(flatten(output, 0, -2), flatten(labels, 0, -1), options);
}

/// Whether each label counts: a label that does not has neighbours, as pixels have.
bool all_count(const data::Dataset& dataset) {
  const auto* arrays = dynamic_cast<const data::ArrayDataset*>(&dataset);
  return arrays && arrays->label_shape.rank() == 0;
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
  const auto* arrays = dynamic_cast<const data::ArrayDataset*>(&dataset);
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
  return [all = all_count(dataset)](const Tensor& output, const Tensor& labels) {
    if (is_floating(labels.dtype())) return mean(square(cast(output, Dtype::f32) - labels));
    const auto classes = labels.dtype() == Dtype::i64 ? labels : cast(labels, Dtype::i32);
    if (all || labels.rank() == 1) return loss_of_classes(output, classes, {});
    const auto total = loss_of_classes(cast(output, Dtype::f32), classes, {.reduction = Reduction::sum});
    return total / maximum(sum(cast(greater_equal(classes, 0), Dtype::f32)), 1.0);
  };
}

Tensor output_of_batch(nn::Module& model, const data::Batch& batch, const Forward& forward, bool own_loss) {
  const auto output = forward ? forward(batch) : model(batch.images);
  if (batch.labels.defined())
    require_fitting(output, batch.labels);
  else if (!own_loss)
    throw Error("train: samples have one array and no labels, so a loss of your own is needed");
  return output;
}

std::optional<Evaluation> evaluate(nn::Module& model, const data::Dataset& dataset, const EvaluateRun& run) {
  if (dataset.size() == 0) throw Error("train::evaluate: the dataset is empty");
  const auto loss = run.loss ? run.loss : default_loss(dataset);
  const bool all = all_count(dataset);
  const nn::KeptModes kept(model);
  model.inference();
  double loss_sum = 0, correct = 0, count = 0;
  bool has_accuracy = false, begun = false;
  std::vector<Part> waiting;
  const auto read = [&] {
    for (const auto& part : waiting) {
      const double labels = part.counted.defined() ? part.counted.item<double>() : static_cast<double>(part.labels);
      if (labels == 0) continue;
      loss_sum += part.loss.item<double>() * labels;
      count += labels;
      if (part.correct.defined()) correct += part.correct.item<double>();
    }
    waiting.clear();
  };
  for (const data::Batch& batch : data::batches(dataset, run.batches)) {
    if (run.stop && run.stop()) return std::nullopt;
    const auto output = output_of_batch(model, batch, run.forward, static_cast<bool>(run.loss));
    const auto& labels = batch.labels;
    const bool has_classes = labels.defined() && !is_floating(labels.dtype());
    if (!run.loss && !begun) require_classes(output, labels, dataset);
    begun = true;
    std::vector<Tensor> wanted{loss(output, labels)};
    if (has_classes) wanted.push_back(count_correct(output, labels));
    if (has_classes && !all && labels.rank() > 1) wanted.push_back(sum(cast(greater_equal(labels, 0), Dtype::f32)));
    eval(wanted);
    for (auto& tensor : wanted) tensor = tensor.detach();
    wanted.resize(3);
    waiting.push_back({wanted[0], wanted[1], wanted[2], labels.defined() ? labels.numel() : batch.images.size(0)});
    has_accuracy = has_accuracy || has_classes;
    if (waiting.size() == most_waiting) read();
  }
  read();
  if (!begun) throw Error("train::evaluate: the dataset is empty");
  return Evaluation{loss_sum / count, has_accuracy ? correct / count : std::numeric_limits<double>::quiet_NaN()};
}

Evaluation evaluate(nn::Module& model, const data::Dataset& dataset, std::int64_t batch_size) {
  return evaluate(model, dataset, data::BatchOptions{.batch_size = batch_size});
}

Evaluation evaluate(nn::Module& model, const data::Dataset& dataset, const data::BatchOptions& options) {
  return *evaluate(model, dataset, EvaluateRun{.batches = options});
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
    const auto output = output_of_batch(model, batch, nullptr, false);
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
