// Metrics: sums and counts on the device that are computed along with a step, and numbers from them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "clnet/export.h"
#include "clnet/io.h"
#include "clnet/tensor.h"

namespace clnet::metrics {

/// The numbers of a metric.
struct Result {
  std::string name;
  double value = 0;                ///< NaN where nothing was counted
  std::vector<double> parts = {};  ///< of each class, where the metric has some; NaN for a class that did not occur
};

/// A metric's formula: its state, and numbers from it. Derive from it for a metric that Mean does not cover.
class CLNET_API Formula {
 public:
  virtual ~Formula();
  virtual std::string name() const = 0;
  /// The names of the states, and their values before the first batch.
  virtual io::StateDict states() const = 0;
  /// Builds the graph of the states after one more batch, as many as given and with the same specs. It must not evaluate.
  virtual std::vector<Tensor> update(const std::vector<Tensor>& states, std::span<const Tensor> outputs,
                                     std::span<const Tensor> labels) const = 0;
  /// The numbers of the states; it may read them.
  virtual Result result(const std::vector<Tensor>& states) const = 0;
};

/// A metric over batches, on the device. A handle; copies share the state. Sums and counts make it exact over any batches: a last
/// batch that is not full weighs what it holds.
///
///   metrics::Accuracy accuracy;
///   for (const auto& [x, labels] : batches) {
///     const Tensor output = model(x);
///     adam.step(cross_entropy(output, labels), accuracy.update(output, labels));
///   }
///   std::cout << accuracy.value();
///
/// The labels and outputs are those of evaluate(): {n, classes} for labels {n}, classes last or second for several labels. Labels
/// below 0, as -100, do not count. An output of the labels' shape, or with one class, has logits of class 1 against class 0.
/// Labels may be 0 and 1 in a floating dtype then.
class CLNET_API Metric {
 public:
  explicit Metric(std::shared_ptr<const Formula> formula);

  /// Builds the graph of the state after this batch, and returns it for the evaluation that computes the outputs: step(loss,
  /// metric.update(output, labels)), or eval(). So it costs no plan of its own. A state that nobody computed is computed by the
  /// next call. Throws ShapeError or DtypeError, with the metric's name, for outputs and labels that do not fit.
  std::vector<Tensor> update(const Tensor& output, const Tensor& labels);
  /// The same for models of several outputs; see on().
  std::vector<Tensor> update(std::span<const Tensor> outputs, std::span<const Tensor> labels);
  /// Frees the graph of the last update(); computes its state where nobody did.
  void detach();

  /// The number of all batches so far; waits for the device. NaN where nothing was counted. Throws Error for a label that is no
  /// class.
  double value() const;
  /// The number with its parts.
  Result result() const;
  /// Back to the state before the first batch.
  void reset();

  const std::string& name() const;
  /// The same formula under another name, with a state of its own.
  Metric named(std::string name) const;
  /// The same formula over output `output` and labels `labels` of several, with a state of its own.
  Metric on(std::size_t output, std::size_t labels) const;
  /// The same metric with a state of its own, before the first batch.
  Metric fresh() const;

  /// The sums and counts, for checkpoints.
  io::StateDict state_dict() const;
  /// Restores a state_dict(). Throws Error with the entries that are missing or do not fit; nothing is changed then.
  void load_state_dict(const io::StateDict& state);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

/// The share of labels with the largest output: "accuracy".
class CLNET_API Accuracy : public Metric {
 public:
  Accuracy();
};
/// The share of labels among the k largest outputs: "top5". Of equal outputs the first counts as larger.
class CLNET_API TopK : public Metric {
 public:
  explicit TopK(std::int64_t k);
};

/// How the numbers of classes become one.
enum class Average : std::uint8_t {
  macro,     ///< the mean over classes that occur in labels or predictions
  micro,     ///< of the counts of all classes together
  weighted,  ///< the mean over classes, weighted by their labels
};

// Of each class: t correct predictions, p predictions, n labels. A division by 0 gives 0 where the class occurs. All throw Error
// for fewer than 2 classes.

/// t / p: "precision".
class CLNET_API Precision : public Metric {
 public:
  explicit Precision(std::int64_t classes, Average average = Average::macro);
};
/// t / n: "recall".
class CLNET_API Recall : public Metric {
 public:
  explicit Recall(std::int64_t classes, Average average = Average::macro);
};
/// 2 t / (p + n): "f1".
class CLNET_API F1 : public Metric {
 public:
  explicit F1(std::int64_t classes, Average average = Average::macro);
};
/// t / (p + n - t), the mean over classes that occur: "miou", the intersection over union of segmentation.
class CLNET_API MeanIoU : public Metric {
 public:
  explicit MeanIoU(std::int64_t classes);
};
/// How often class `row` was taken for class `column`: "confusion". The parts are the matrix, row by row; the value is the share
/// of its diagonal.
class CLNET_API ConfusionMatrix : public Metric {
 public:
  explicit ConfusionMatrix(std::int64_t classes);
};

/// The area under the ROC curve: "auc". Scores are the sigmoid of one logit (`classes` 1), or the softmax over classes, each
/// against all others; then the value is the mean over classes with both kinds of labels.
///
/// Scores are counted in `bins` equal steps of 0..1, so that the memory is bounded: 16 bytes per bin and class. Two scores in one
/// bin count as equal. So the error is at most half of the share of pairs, one of each kind, that share a bin. Throws Error for
/// classes or bins out of range.
class CLNET_API AUC : public Metric {
 public:
  explicit AUC(std::int64_t classes = 1, std::int64_t bins = 1000);
};

/// exp of the mean cross-entropy over the labels that count: "perplexity".
class CLNET_API Perplexity : public Metric {
 public:
  Perplexity();
};

/// The mean of values of the caller's own: a value per sample, or any number of them. Sums are compensated: they lose no digits
/// over many batches.
///   metrics::Mean("mae", [](const Tensor& y, const Tensor& t) { return abs(y - t); })
class CLNET_API Mean : public Metric {
 public:
  using Function = std::function<Tensor(const Tensor& output, const Tensor& labels)>;
  using WeightedFunction = std::function<std::pair<Tensor, Tensor>(const Tensor& output, const Tensor& labels)>;
  Mean(std::string name, Function values);
  /// The mean of the first tensor's values, weighted by the second's of the same shape: 0 leaves a value out, whatever it is.
  static Mean weighted(std::string name, WeightedFunction values_and_weights);

 private:
  explicit Mean(Metric metric);
};

/// A metric by its name: "accuracy", "top5" (any k), "precision", "recall", "f1", "miou", "auc", "perplexity". Throws Error, with
/// all names, for another.
CLNET_API Metric make(std::string_view name, std::int64_t classes);

/// update() of several metrics, for one evaluation.
CLNET_API std::vector<Tensor> update(std::span<Metric> metrics, std::span<const Tensor> outputs, std::span<const Tensor> labels);
inline std::vector<Tensor> update(std::span<Metric> metrics, const Tensor& output, const Tensor& labels) {
  return update(metrics, std::span<const Tensor>(&output, 1), std::span<const Tensor>(&labels, 1));
}
/// The results of several metrics.
CLNET_API std::vector<Result> results(std::span<const Metric> metrics);

}  // namespace clnet::metrics
