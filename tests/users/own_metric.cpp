// Metrics that are computed along with the training steps: those of the library and Cohen's kappa as a formula of my own. All
// are compared with plain loops over the outputs that the steps had. A tagger of three classes has padding at the end of lines.
#include <clnet/clnet.h>

#include <cmath>
#include <iomanip>
#include <iostream>
#include <random>
#include <string>
#include <vector>

using namespace clnet;

namespace {

constexpr int classes = 3, length = 6;

/// (agreement - chance) / (1 - chance), from a matrix of counts.
struct Kappa : metrics::Formula {
  std::string name() const override { return "kappa"; }
  io::StateDict states() const override { return {{"counts", zeros({classes, classes}, Dtype::i64)}}; }
  std::vector<Tensor> update(const std::vector<Tensor>& states, std::span<const Tensor> outputs,
                             std::span<const Tensor> labels) const override {
    const Tensor truth = labels[0].flatten(0), guess = outputs[0].flatten(0, 1).argmax(1);
    const Tensor counts = (truth >= 0).to(Dtype::f32).unsqueeze(1);
    const Tensor matrix = matmul((one_hot(truth, classes) * counts).transpose(0, 1), one_hot(guess, classes));
    return {states[0] + matrix.to(Dtype::i64)};
  }
  metrics::Result result(const std::vector<Tensor>& states) const override {
    const auto m = states[0].to_vector<double>();
    double all = 0, agreed = 0, chance = 0;
    for (double v : m) all += v;
    for (std::size_t c = 0; c < classes; ++c) {
      double row = 0, column = 0;
      for (std::size_t k = 0; k < classes; ++k) {
        row += m[c * classes + k];
        column += m[k * classes + c];
      }
      agreed += m[c * classes + c] / all;
      chance += row * column / (all * all);
    }
    return {name(), (agreed - chance) / (1 - chance)};
  }
};

data::ArrayDataset lines(int count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values;
  std::vector<std::int32_t> labels;
  for (int i = 0; i < count; ++i) {
    const int words = 3 + static_cast<int>(random() % 4);
    for (int k = 0; k < length; ++k) {
      const int label = static_cast<int>(random() % 4) % classes;  // class 0 is twice as frequent
      labels.push_back(k < words ? label : -100);
      for (int c = 0; c < classes; ++c) values.push_back(normal(random) + (c == label ? 1.5F : 0.0F));
    }
  }
  return data::from_arrays(values, {length, classes}, labels, Shape{length}, classes);
}

struct Seen {
  std::vector<std::vector<double>> outputs;
  std::vector<int> labels;
};

/// What plain loops make of all words that count, in the order of the metrics below.
std::vector<double> by_hand(const Seen& seen) {
  std::vector<std::vector<double>> m(classes, std::vector<double>(classes, 0));
  double n = 0, nats = 0;
  std::vector<std::vector<double>> softmax;
  for (std::size_t i = 0; i < seen.labels.size(); ++i) {
    const auto& x = seen.outputs[i];
    std::size_t best = 0;
    double sum = 0;
    for (std::size_t c = 0; c < classes; ++c) {
      if (x[c] > x[best]) best = c;
      sum += std::exp(x[c]);
    }
    softmax.emplace_back();
    for (double v : x) softmax.back().push_back(std::exp(v) / sum);
    m[static_cast<std::size_t>(seen.labels[i])][best] += 1;
    nats -= std::log(softmax.back()[static_cast<std::size_t>(seen.labels[i])]);
    n += 1;
  }
  double f1 = 0, iou = 0, auc = 0, agreed = 0, chance = 0;
  for (std::size_t c = 0; c < classes; ++c) {
    double row = 0, column = 0, pairs = 0, won = 0;
    for (std::size_t k = 0; k < classes; ++k) {
      row += m[c][k];
      column += m[k][c];
    }
    f1 += 2 * m[c][c] / (row + column) / classes;
    iou += m[c][c] / (row + column - m[c][c]) / classes;
    agreed += m[c][c] / n;
    chance += row * column / (n * n);
    for (std::size_t i = 0; i < softmax.size(); ++i)
      for (std::size_t j = 0; j < softmax.size(); ++j)
        if (seen.labels[i] == static_cast<int>(c) && seen.labels[j] != static_cast<int>(c)) {
          pairs += 1;
          won += softmax[i][c] > softmax[j][c] ? 1 : softmax[i][c] == softmax[j][c] ? 0.5 : 0;
        }
    auc += won / pairs / classes;
  }
  return {agreed, f1, iou, auc, std::exp(nats / n), (agreed - chance) / (1 - chance)};
}

}  // namespace

int main() {
  const auto training = lines(150, 1), test = lines(60, 2);
  manual_seed(2);
  nn::Sequential model{nn::Linear(classes, 16), relu, nn::Linear(16, classes)};
  optim::Adam adam(model, 1e-2);
  std::vector<metrics::Metric> all{metrics::Accuracy(),   metrics::F1(classes),  metrics::MeanIoU(classes),
                                   metrics::AUC(classes), metrics::Perplexity(), metrics::Metric(std::make_shared<Kappa>())};

  for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
    Seen seen;
    for (auto& metric : all) metric.reset();
    for (const auto& [x, labels] : data::batches(training, {.batch_size = 40, .shuffle = true, .epoch = epoch})) {
      const Tensor output = model(x);
      const Tensor loss = cross_entropy(output.transpose(1, 2), labels);
      auto more = metrics::update(all, output, labels);
      more.push_back(output);
      adam.step(loss, more);
      const auto values = output.to_vector<double>();
      const auto truth = labels.to_vector<std::int32_t>();
      for (std::size_t i = 0; i < truth.size(); ++i)
        if (truth[i] >= 0) {
          seen.labels.push_back(truth[i]);
          seen.outputs.emplace_back(values.begin() + static_cast<std::ptrdiff_t>(i * classes),
                                    values.begin() + static_cast<std::ptrdiff_t>((i + 1) * classes));
        }
    }
    const auto wanted = by_hand(seen);
    std::cout << "epoch " << epoch + 1 << ':';
    const auto results = metrics::results(all);
    for (std::size_t i = 0; i < results.size(); ++i)
      std::cout << ' ' << results[i].name
                << (std::abs(results[i].value - wanted[i]) < (results[i].name == "auc" ? 2e-3 : 1e-5) ? " right" : " WRONG");
    std::cout << '\n';
  }

  // The same in fit(), with the state of the metrics in records of training and validation.
  train::FitOptions options{.epochs = 2, .batch_size = 40, .optimizer = adam, .validation = test, .metrics = all};
  options.progress = false;
  const auto result = train::fit(model, training, options);
  const auto scores = train::evaluate(model, test, {.batch_size = 7, .metrics = all});
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double last = result.epochs.back().validation->metrics[i].value;
    const bool same = std::abs(scores.metrics[i].value - last) < 1e-6;
    std::cout << scores.metrics[i].name << (same ? " the same" : " ANOTHER") << " in evaluate()\n";
  }
}
