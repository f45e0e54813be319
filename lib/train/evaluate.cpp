#include "lib/train/evaluate.h"

#include <fmt/format.h>

#include <algorithm>

#include "clnet/error.h"
#include "clnet/ops.h"

namespace clnet::train {

namespace {

/// What one batch adds, on the device until it is read.
struct Part {
  Tensor loss, correct;
  std::int64_t labels;
};

/// Batches whose results wait on the device; more would only let the host run further ahead.
constexpr std::size_t most_waiting = 8;

Tensor count_correct(const Tensor& output, const Tensor& labels) {
  return sum(cast(equal(argmax(output, -1), cast(labels, Dtype::i64)), Dtype::f32));
}

}  // namespace

void require_classes(const Tensor& output, const Tensor& labels) {
  const auto& shape = labels.shape();
  if (output.rank() == labels.rank() + 1 && std::equal(shape.begin(), shape.end(), output.shape().begin())) return;
  if (labels.rank() == 1)
    throw ShapeError(fmt::format("train: the model gives {} for {} samples, expected {{samples, classes}}",
                                 to_string(output.shape()), labels.size(0)));
  throw ShapeError(fmt::format("train: the model gives {} for labels {}, expected a dimension of classes behind theirs",
                               to_string(output.shape()), to_string(labels.shape())));
}

Tensor default_loss(const Tensor& output, const Tensor& labels) {
  return labels.rank() == 1 ? cross_entropy(output, labels) : cross_entropy(flatten(output, 0, -2), flatten(labels, 0, -1));
}

std::optional<Evaluation> evaluate(nn::Module& model, const data::Dataset& dataset, std::int64_t batch_size, const Loss& loss,
                                   const std::function<bool()>& stop) {
  if (dataset.size() == 0) throw Error("train::evaluate: the dataset is empty");
  const nn::KeptModes kept(model);
  model.eval();
  double loss_sum = 0, correct = 0, count = 0;
  std::vector<Part> waiting;
  const auto read = [&] {
    for (const auto& part : waiting) {
      loss_sum += part.loss.item<double>() * static_cast<double>(part.labels);
      correct += part.correct.item<double>();
    }
    waiting.clear();
  };
  for (const auto& [images, labels] : data::batches(dataset, {.batch_size = batch_size})) {
    if (stop()) return std::nullopt;
    const auto output = model(images);
    require_classes(output, labels);
    const Part part{loss(output, labels), count_correct(output, labels), labels.numel()};
    count += static_cast<double>(part.labels);
    eval({part.loss, part.correct});
    waiting.push_back({part.loss.detach(), part.correct.detach(), part.labels});
    if (waiting.size() == most_waiting) read();
  }
  read();
  return Evaluation{loss_sum / count, correct / count};
}

Evaluation evaluate(nn::Module& model, const data::Dataset& dataset, std::int64_t batch_size) {
  return *evaluate(model, dataset, batch_size, default_loss, [] { return false; });
}

double accuracy(nn::Module& model, const data::Dataset& dataset, std::int64_t batch_size) {
  return evaluate(model, dataset, batch_size).accuracy;
}

}  // namespace clnet::train
