// Metrics that are means of values.
#include <fmt/format.h>

#include <cmath>

#include "clnet/error.h"
#include "clnet/metrics.h"
#include "clnet/ops.h"
#include "lib/metrics/classes.h"
#include "lib/metrics/counting.h"

namespace clnet::metrics {

namespace {

class PerplexityFormula : public Formula {
 public:
  std::string name() const override { return "perplexity"; }
  io::StateDict states() const override { return mean_states(); }

  std::vector<Tensor> update(const std::vector<Tensor>& states, std::span<const Tensor> outputs,
                             std::span<const Tensor> labels) const override {
    const auto& output = first_of(name(), outputs);
    const auto& wanted = first_of(name(), labels);
    const auto dim = class_dim(output, wanted);
    if (!dim || output.size(*dim) < 2)
      throw ShapeError(fmt::format("perplexity: the output is {} for labels {}, expected a dimension of classes more",
                                   to_string(output.spec()), to_string(wanted.spec())));
    const auto found = rows(name(), output, wanted);
    const auto counts = greater_equal(found.labels, 0.0);
    return add_to_mean(states, cross_entropy(found.logits, where(counts, found.labels, -100.0), {.reduction = Reduction::sum}),
                       sum(cast(counts, Dtype::f32)));
  }

  Result result(const std::vector<Tensor>& states) const override { return {name(), std::exp(mean_of(states))}; }
};

class MeanFormula : public Formula {
 public:
  MeanFormula(std::string name, Mean::Function values) : name_(std::move(name)), values_(std::move(values)) {
    if (!values_) throw Error(fmt::format("{}: made without a function", name_));
  }
  std::string name() const override { return name_; }
  io::StateDict states() const override { return mean_states(); }

  std::vector<Tensor> update(const std::vector<Tensor>& states, std::span<const Tensor> outputs,
                             std::span<const Tensor> labels) const override {
    const auto values = values_(first_of(name_, outputs), first_of(name_, labels));
    if (!values.defined()) throw Error(fmt::format("{}: its function gave an undefined tensor", name_));
    return add_to_mean(states, sum(cast(values, Dtype::f32)), full({1}, static_cast<double>(values.numel())));
  }

  Result result(const std::vector<Tensor>& states) const override { return {name_, mean_of(states)}; }

 private:
  std::string name_;
  Mean::Function values_;
};

class WeightedMean : public Formula {
 public:
  WeightedMean(std::string name, Mean::WeightedFunction function) : name_(std::move(name)), function_(std::move(function)) {
    if (!function_) throw Error(fmt::format("{}: made without a function", name_));
  }
  std::string name() const override { return name_; }
  io::StateDict states() const override { return mean_states(); }

  std::vector<Tensor> update(const std::vector<Tensor>& states, std::span<const Tensor> outputs,
                             std::span<const Tensor> labels) const override {
    const auto [values, weights] = function_(first_of(name_, outputs), first_of(name_, labels));
    if (!values.defined() || !weights.defined()) throw Error(fmt::format("{}: its function gave an undefined tensor", name_));
    if (values.shape() != weights.shape())
      throw ShapeError(fmt::format("{}: its function gave values {} and weights {}, expected one shape", name_,
                                   to_string(values.spec()), to_string(weights.spec())));
    const auto wide = cast(weights, Dtype::f32);
    // NaN times 0 would be NaN.
    const auto counted = where(eq(wide, 0.0), 0.0, cast(values, Dtype::f32) * wide);
    return add_to_mean(states, sum(counted), sum(wide));
  }

  Result result(const std::vector<Tensor>& states) const override { return {name_, mean_of(states)}; }

 private:
  std::string name_;
  Mean::WeightedFunction function_;
};

}  // namespace

Perplexity::Perplexity() : Metric(std::make_shared<PerplexityFormula>()) {}
Mean::Mean(std::string name, Function values) : Metric(std::make_shared<MeanFormula>(std::move(name), std::move(values))) {}
Mean::Mean(Metric metric) : Metric(std::move(metric)) {}
Mean Mean::weighted(std::string name, WeightedFunction values_and_weights) {
  return Mean(Metric(std::make_shared<WeightedMean>(std::move(name), std::move(values_and_weights))));
}

}  // namespace clnet::metrics
