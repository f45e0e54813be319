#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "clnet/autograd.h"
#include "clnet/debug.h"
#include "clnet/error.h"
#include "clnet/ops.h"

namespace clnet {

namespace {

using Function = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

/// Uneven weights for the elements of a result, the same at every call.
Tensor weights_of(const Tensor& result, std::size_t number) {
  std::vector<double> weights(static_cast<std::size_t>(result.numel()));
  for (std::size_t i = 0; i < weights.size(); ++i)
    weights[i] = 0.5 + std::sin(1.7 * static_cast<double>(i) + static_cast<double>(number));
  return Tensor::from(weights, result.shape(), result.dtype() == Dtype::f64 ? Dtype::f64 : Dtype::f32);
}

std::vector<Tensor> floating_results(const Function& f, const std::vector<Tensor>& inputs) {
  std::vector<Tensor> results;
  for (const auto& result : f(inputs)) {
    if (!result.defined()) throw Error(fmt::format("check_gradients: the function's result {} is undefined", results.size()));
    if (is_floating(result.dtype())) results.push_back(result);
  }
  if (results.empty()) throw Error("check_gradients: the function gives no floating result");
  return results;
}

/// The weighted sum of all results; on the host in double, so that differences keep their digits.
double value(const Function& f, const std::vector<Tensor>& inputs) {
  const auto results = floating_results(f, inputs);
  eval(results);
  double sum = 0;
  for (std::size_t k = 0; k < results.size(); ++k) {
    const auto values = results[k].to_vector<double>(), weights = weights_of(results[k], k).to_vector<double>();
    for (std::size_t i = 0; i < values.size(); ++i) sum += values[i] * weights[i];
  }
  return sum;
}

std::vector<Tensor> analytic(const Function& f, const std::vector<Tensor>& inputs, const std::vector<Tensor>& wanted) {
  const auto results = floating_results(f, inputs);
  std::vector<Tensor> arriving;
  for (std::size_t k = 0; k < results.size(); ++k) arriving.push_back(cast(weights_of(results[k], k), results[k].dtype()));
  auto found = gradients(results, arriving, wanted);
  eval(found);
  return found;
}

}  // namespace

GradientCheck check_gradients(const Function& f, const std::vector<Tensor>& inputs, const GradientCheckOptions& options) {
  std::vector<Tensor> leaves, wanted;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined()) throw Error(fmt::format("check_gradients: input {} is undefined", i));
    leaves.push_back(inputs[i].detach());
    if (!is_floating(inputs[i].dtype())) continue;
    wanted.push_back(leaves[i]);
    places.push_back(i);
  }
  const bool f64 = std::all_of(wanted.begin(), wanted.end(), [](const Tensor& x) { return x.dtype() == Dtype::f64; });
  const double usual = f64 && !wanted.empty() ? 1e-6 : 1e-2, step = options.step.value_or(usual);
  if (!(step > 0)) throw Error(fmt::format("check_gradients: the step must be above 0, not {}", step));
  const auto found = analytic(f, leaves, wanted);

  struct Compared {
    double analytic, numeric;
    std::size_t input, element;
  };
  std::vector<Compared> pairs;
  double largest = 1;
  for (std::size_t k = 0; k < wanted.size(); ++k) {
    const auto gradient = found[k].to_vector<double>();
    const auto start = wanted[k].to_vector<double>();
    const auto count = options.elements == 0 ? start.size() : std::min(options.elements, start.size());
    for (std::size_t n = 0; n < count; ++n) {
      const auto element = n * start.size() / count;
      const auto at = [&](double moved) {
        auto values = start;
        values[element] = moved;
        auto moved_inputs = leaves;
        moved_inputs[places[k]] = Tensor::from(values, wanted[k].shape(), wanted[k].dtype());
        // What the dtype made of it.
        return std::pair(value(f, moved_inputs), moved_inputs[places[k]].to_vector<double>()[element]);
      };
      const auto above = at(start[element] + step), below = at(start[element] - step);
      if (!(above.second > below.second))
        throw Error(
            fmt::format("check_gradients: a step of {:g} is lost in the digits of input {}, element {}, which is {:g}; scale the "
                        "input, or make the step larger",
                        step, places[k], element, start[element]));
      pairs.push_back({gradient[element], (above.first - below.first) / (above.second - below.second), places[k], element});
      largest = std::max({largest, std::abs(pairs.back().analytic), std::abs(pairs.back().numeric)});
    }
  }
  GradientCheck result;
  for (const auto& pair : pairs) {
    const auto error = std::abs(pair.analytic - pair.numeric) / largest;
    // NaN is the worst of all.
    if (result.worst.empty() || !(error <= result.largest_error)) {
      result.largest_error = error;
      result.worst = fmt::format("input {}, element {}: the gradient is {:g}, by differences {:g}", pair.input, pair.element,
                                 pair.analytic, pair.numeric);
      if (std::isnan(error)) break;
    }
  }
  result.passed = result.largest_error <= options.tolerance.value_or(usual);
  return result;
}

GradientCheck check_gradients(const std::function<Tensor(const std::vector<Tensor>&)>& f, const std::vector<Tensor>& inputs,
                              const GradientCheckOptions& options) {
  return check_gradients(Function([&](const std::vector<Tensor>& in) { return std::vector{f(in)}; }), inputs, options);
}

}  // namespace clnet
