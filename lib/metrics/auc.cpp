#include <fmt/format.h>

#include <limits>

#include "clnet/error.h"
#include "clnet/metrics.h"
#include "clnet/ops.h"
#include "lib/metrics/classes.h"
#include "lib/metrics/counting.h"

namespace clnet::metrics {

namespace {

/// Scores of both kinds of labels in bins: counts {classes, 2, bins}, first those of other classes. Behind them the scores of
/// labels that are no class, and scores that are no number.
class AucFormula : public Formula {
 public:
  AucFormula(std::int64_t classes, std::int64_t bins) : classes_(classes), bins_(bins) {
    constexpr std::int64_t most = 1 << 24;
    if (classes < 1) throw Error(fmt::format("auc: of {} classes, expected at least 1", classes));
    if (bins < 2) throw Error(fmt::format("auc: {} bins, expected at least 2", bins));
    if (bins > most || classes > most / bins)
      throw Error(fmt::format("auc: {} classes of {} bins, expected at most {} in all", classes, bins, most));
  }
  std::string name() const override { return "auc"; }
  io::StateDict states() const override { return {{"counts", zero_counts(2 * classes_ * bins_ + 2)}}; }

  std::vector<Tensor> update(const std::vector<Tensor>& states, std::span<const Tensor> outputs,
                             std::span<const Tensor> labels) const override {
    const auto found = rows(name(), first_of(name(), outputs), first_of(name(), labels));
    if (found.logits.size(1) != classes_)
      throw ShapeError(fmt::format("auc: is of {} classes, and the output has {}", classes_, found.logits.size(1)));
    const auto limit = static_cast<double>(label_classes()), bins = static_cast<double>(bins_);
    const Tensor scores = classes_ == 1 ? sigmoid(found.logits) : softmax(found.logits, 1);
    const Tensor wanted = unsqueeze(found.labels, 1);
    const Tensor counts = logical_and(greater_equal(wanted, 0.0), less(wanted, limit)), is_fault = greater_equal(wanted, limit);
    const Tensor is_nan = not_equal(scores, scores);
    const Tensor bin = cast(clamp(floor(where(is_nan, 0.0, scores) * bins), 0, bins - 1), Dtype::i64);
    const Tensor place = classes_ == 1
                             ? wanted * bins + bin
                             : bin + cast(eq(wanted, arange(classes_)), Dtype::i64) * bins + arange(classes_) * (2 * bins);
    const double fault = 2 * static_cast<double>(classes_) * bins, nan = fault + 1, nowhere = nan + 1;
    const Tensor unfit = where(is_fault, fault, where(logical_and(counts, is_nan), nan, nowhere));
    return {count_at(states[0],
                     reshape(where(logical_and(counts, logical_not(is_nan)), place, cast(unfit, Dtype::i64)), {place.numel()}))};
  }

  Result result(const std::vector<Tensor>& states) const override {
    Result result{name(), std::numeric_limits<double>::quiet_NaN()};
    const auto counts = states[0].to_vector<std::int64_t>();
    require_no_faults(name(), counts[counts.size() - 2] / classes_, label_classes());
    const bool has_nans = counts.back() > 0;
    double sum = 0;
    std::int64_t occurring = 0;
    for (std::int64_t c = 0; c < classes_; ++c) {
      result.parts.push_back(area(counts.data() + 2 * c * bins_));
      if (result.parts.back() != result.parts.back()) continue;
      sum += result.parts.back();
      ++occurring;
    }
    if (occurring > 0 && !has_nans) result.value = sum / static_cast<double>(occurring);
    if (classes_ == 1) result.parts.clear();
    return result;
  }

 private:
  std::int64_t label_classes() const { return classes_ == 1 ? 2 : classes_; }

  /// The share of pairs in which the score of the class is larger; equal ones count half.
  double area(const std::int64_t* counts) const {
    double larger = 0, below = 0, positive = 0;
    for (std::int64_t b = 0; b < bins_; ++b) {
      const auto others = static_cast<double>(counts[b]), own = static_cast<double>(counts[bins_ + b]);
      larger += own * (below + others / 2);
      below += others;
      positive += own;
    }
    return larger / (below * positive);
  }

  std::int64_t classes_, bins_;
};

}  // namespace

AUC::AUC(std::int64_t classes, std::int64_t bins) : Metric(std::make_shared<AucFormula>(classes, bins)) {}

}  // namespace clnet::metrics
