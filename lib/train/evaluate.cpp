#include "lib/train/evaluate.h"

#include <fmt/format.h>

#include "clnet/error.h"
#include "clnet/ops.h"

namespace clnet::train {

namespace {

/// What one batch adds, on the device until it is read.
struct Part {
  Tensor loss, correct;
  std::int64_t samples;
};

/// Batches whose results wait on the device; more would only let the host run further ahead.
constexpr std::size_t most_waiting = 8;

Tensor count_correct(const Tensor& output, const Tensor& labels) {
  return sum(cast(equal(argmax(output, 1), cast(labels, Dtype::i64)), Dtype::f32));
}

}  // namespace

void require_classes(const Tensor& output, const Tensor& labels) {
  if (output.rank() != 2 || output.size(0) != labels.size(0))
    throw ShapeError(fmt::format("train: the model gives {} for {} samples, expected {{samples, classes}}",
                                 to_string(output.shape()), labels.size(0)));
}

std::optional<Evaluation> evaluate(nn::Module& model, const data::Dataset& dataset, std::int64_t batch_size, const Loss& loss,
                                   const std::function<bool()>& stop) {
  if (dataset.size() == 0) throw Error("train::evaluate: the dataset is empty");
  const nn::KeptModes kept(model);
  model.eval();
  double loss_sum = 0, correct = 0;
  std::vector<Part> waiting;
  const auto read = [&] {
    for (const auto& part : waiting) {
      loss_sum += part.loss.item<double>() * static_cast<double>(part.samples);
      correct += part.correct.item<double>();
    }
    waiting.clear();
  };
  for (const auto& [images, labels] : data::batches(dataset, {.batch_size = batch_size})) {
    if (stop()) return std::nullopt;
    const auto output = model(images);
    require_classes(output, labels);
    const Part part{loss(output, labels), count_correct(output, labels), labels.size(0)};
    eval({part.loss, part.correct});
    waiting.push_back({part.loss.detach(), part.correct.detach(), part.samples});
    if (waiting.size() == most_waiting) read();
  }
  read();
  const auto count = static_cast<double>(dataset.size());
  return Evaluation{loss_sum / count, correct / count};
}

Evaluation evaluate(nn::Module& model, const data::Dataset& dataset, std::int64_t batch_size) {
  const auto loss = [](const Tensor& output, const Tensor& labels) { return cross_entropy(output, labels); };
  return *evaluate(model, dataset, batch_size, loss, [] { return false; });
}

double accuracy(nn::Module& model, const data::Dataset& dataset, std::int64_t batch_size) {
  return evaluate(model, dataset, batch_size).accuracy;
}

}  // namespace clnet::train
