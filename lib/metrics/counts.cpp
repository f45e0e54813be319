// Metrics that count labels and predictions.
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "clnet/error.h"
#include "clnet/metrics.h"
#include "clnet/ops.h"
#include "lib/metrics/classes.h"
#include "lib/metrics/counting.h"

namespace clnet::metrics {

namespace {

constexpr double nothing = std::numeric_limits<double>::quiet_NaN();

double share(std::int64_t part, std::int64_t all) {
  return all == 0 ? nothing : static_cast<double>(part) / static_cast<double>(all);
}

Tensor count_of(const Tensor& condition) { return sum(cast(condition, Dtype::i64), {0}, true); }

class Hits : public Formula {
 public:
  io::StateDict states() const override { return {{"counts", zero_counts(2)}}; }
  std::vector<Tensor> update(const std::vector<Tensor>& states, std::span<const Tensor> outputs,
                             std::span<const Tensor> labels) const override {
    const auto [hits, wanted] = compare(first_of(name(), outputs), first_of(name(), labels));
    return {states[0] + concat({count_of(hits), count_of(greater_equal(wanted, 0.0))}, 0)};
  }
  Result result(const std::vector<Tensor>& states) const override {
    const auto counts = states[0].to_vector<std::int64_t>();
    return {name(), share(counts[0], counts[1])};
  }

 private:
  struct Compared {
    Tensor hits;  ///< false for labels that do not count
    Tensor labels;
  };
  virtual Compared compare(const Tensor& output, const Tensor& labels) const = 0;

 protected:
  using Comparison = Compared;
};

class AccuracyFormula : public Hits {
 public:
  std::string name() const override { return "accuracy"; }

 private:
  Comparison compare(const Tensor& output, const Tensor& labels) const override {
    const auto found = predictions(name(), output, labels);
    return {eq(found.predicted, found.labels), found.labels};
  }
};

class TopKFormula : public Hits {
 public:
  explicit TopKFormula(std::int64_t k) : k_(k) {}
  std::string name() const override { return fmt::format("top{}", k_); }

 private:
  Comparison compare(const Tensor& output, const Tensor& labels) const override {
    const auto found = rows(name(), output, labels);
    if (found.logits.size(1) < k_)
      throw ShapeError(fmt::format("{}: the output has {} classes, expected at least {}", name(), found.logits.size(1), k_));
    return {any(eq(topk(found.logits, k_, 1).indices, unsqueeze(found.labels, 1)), {1}), found.labels};
  }

  std::int64_t k_;
};

std::int64_t checked_classes(std::string_view who, std::int64_t classes) {
  if (classes < 2) throw Error(fmt::format("{}: of {} classes, expected at least 2", who, classes));
  return classes;
}

/// The predictions of a batch; where a label is a class, and where it is beyond them.
struct Checked {
  Tensor predicted, labels, is_class, is_fault;
};

Checked checked_predictions(std::string_view who, std::int64_t classes, std::span<const Tensor> outputs,
                            std::span<const Tensor> labels) {
  const auto found = predictions(who, first_of(who, outputs), first_of(who, labels));
  if (found.classes != classes)
    throw ShapeError(fmt::format("{}: is of {} classes, and the output has {}", who, classes, found.classes));
  const auto limit = static_cast<double>(classes);
  return {found.predicted, found.labels, logical_and(greater_equal(found.labels, 0.0), less(found.labels, limit)),
          greater_equal(found.labels, limit)};
}

/// Of each class the right predictions, the predictions and the labels.
struct PerClass {
  std::int64_t right, predicted, labels;
};
/// The measure of a class that occurs.
using Measure = double (*)(const PerClass&);

double or_zero(std::int64_t part, std::int64_t all) { return all == 0 ? 0 : share(part, all); }
double precision_of(const PerClass& c) { return or_zero(c.right, c.predicted); }
double recall_of(const PerClass& c) { return or_zero(c.right, c.labels); }
double f1_of(const PerClass& c) { return share(2 * c.right, c.predicted + c.labels); }
double iou_of(const PerClass& c) { return share(c.right, c.predicted + c.labels - c.right); }

class OfClasses : public Formula {
 public:
  OfClasses(std::string name, std::int64_t classes, Average average, Measure measure)
      : name_(std::move(name)), classes_(checked_classes(name_, classes)), average_(average), measure_(measure) {}

  std::string name() const override { return name_; }
  io::StateDict states() const override { return {{"counts", zero_counts(3 * classes_ + 1)}}; }

  std::vector<Tensor> update(const std::vector<Tensor>& states, std::span<const Tensor> outputs,
                             std::span<const Tensor> labels) const override {
    const auto found = checked_predictions(name_, classes_, outputs, labels);
    const auto width = static_cast<double>(classes_), fault = 3 * width, nowhere = fault + 1;
    const auto places =
        concat({where(logical_and(found.is_class, eq(found.predicted, found.labels)), found.labels, nowhere),
                where(found.is_class, found.predicted + width, nowhere),
                where(found.is_class, found.labels + 2 * width, cast(where(found.is_fault, fault, nowhere), Dtype::i64))},
               0);
    return {count_at(states[0], places)};
  }

  Result result(const std::vector<Tensor>& states) const override {
    const auto counts = states[0].to_vector<std::int64_t>();
    require_no_faults(name_, counts.back(), classes_);
    const auto classes = static_cast<std::size_t>(classes_);
    Result result{name_, nothing};
    PerClass all{0, 0, 0};
    double sum = 0, weighted = 0;
    std::int64_t occurring = 0;
    for (std::size_t i = 0; i < classes; ++i) {
      const PerClass one{counts[i], counts[classes + i], counts[2 * classes + i]};
      const bool occurs = one.predicted + one.labels > 0;
      result.parts.push_back(occurs ? measure_(one) : nothing);
      if (!occurs) continue;
      ++occurring;
      sum += result.parts.back();
      weighted += result.parts.back() * static_cast<double>(one.labels);
      all.right += one.right;
      all.predicted += one.predicted;
      all.labels += one.labels;
    }
    if (occurring == 0) return result;
    switch (average_) {
      case Average::macro: result.value = sum / static_cast<double>(occurring); break;
      case Average::micro: result.value = measure_(all); break;
      case Average::weighted: result.value = weighted / static_cast<double>(all.labels); break;
    }
    return result;
  }

 private:
  std::string name_;
  std::int64_t classes_;
  Average average_;
  Measure measure_;
};

class Confusion : public Formula {
 public:
  explicit Confusion(std::int64_t classes) : classes_(checked_classes("confusion", classes)) {
    constexpr std::int64_t most = 1 << 12;
    if (classes > most) throw Error(fmt::format("confusion: of {} classes, expected at most {}", classes, most));
  }
  std::string name() const override { return "confusion"; }
  io::StateDict states() const override { return {{"matrix", zero_counts(classes_ * classes_ + 1)}}; }

  std::vector<Tensor> update(const std::vector<Tensor>& states, std::span<const Tensor> outputs,
                             std::span<const Tensor> labels) const override {
    const auto found = checked_predictions(name(), classes_, outputs, labels);
    const auto width = static_cast<double>(classes_), fault = width * width;
    return {count_at(states[0], where(found.is_class, found.labels * width + found.predicted,
                                      cast(where(found.is_fault, fault, fault + 1), Dtype::i64)))};
  }

  Result result(const std::vector<Tensor>& states) const override {
    auto matrix = states[0].to_vector<std::int64_t>();
    require_no_faults(name(), matrix.back(), classes_);
    matrix.pop_back();
    std::int64_t diagonal = 0;
    for (std::size_t i = 0; i < matrix.size(); i += static_cast<std::size_t>(classes_) + 1) diagonal += matrix[i];
    return {name(), share(diagonal, std::accumulate(matrix.begin(), matrix.end(), std::int64_t{0})),
            std::vector<double>(matrix.begin(), matrix.end())};
  }

 private:
  std::int64_t classes_;
};

std::int64_t checked_k(std::int64_t k) {
  if (k < 1) throw Error(fmt::format("top-k: k is {}, expected at least 1", k));
  return k;
}

std::shared_ptr<Formula> of_classes(const char* name, std::int64_t classes, Average average, Measure measure) {
  return std::make_shared<OfClasses>(name, classes, average, measure);
}

}  // namespace

Accuracy::Accuracy() : Metric(std::make_shared<AccuracyFormula>()) {}
TopK::TopK(std::int64_t k) : Metric(std::make_shared<TopKFormula>(checked_k(k))) {}
Precision::Precision(std::int64_t classes, Average average) : Metric(of_classes("precision", classes, average, precision_of)) {}
Recall::Recall(std::int64_t classes, Average average) : Metric(of_classes("recall", classes, average, recall_of)) {}
F1::F1(std::int64_t classes, Average average) : Metric(of_classes("f1", classes, average, f1_of)) {}
MeanIoU::MeanIoU(std::int64_t classes) : Metric(of_classes("miou", classes, Average::macro, iou_of)) {}
ConfusionMatrix::ConfusionMatrix(std::int64_t classes) : Metric(std::make_shared<Confusion>(classes)) {}

}  // namespace clnet::metrics
