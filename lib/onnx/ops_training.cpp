// Losses, gradients and optimizers of ONNX's training operators.
#include <fmt/format.h>

#include <cmath>

#include "clnet/autograd.h"
#include "clnet/ops/elementwise.h"
#include "clnet/ops/index.h"
#include "clnet/ops/norm.h"
#include "clnet/ops/reduce.h"
#include "clnet/ops/shape.h"
#include "lib/onnx/operators.h"

namespace clnet::onnx {
namespace {

/// The negative of each target's log-probability {N, C, ...}, weighted by class; ignored targets weigh 0.
Outputs negative_log_likelihood(const Call& call, const Tensor& log_probabilities) {
  const auto& shape = log_probabilities.shape();
  if (shape.rank() < 2) call.fail(fmt::format("the input {} has no classes", to_string(shape)));
  const Tensor target = unsqueeze(cast(call.x(1), Dtype::i64), 1);
  const auto* ignored = call.attribute("ignore_index");
  Tensor counted = ignored ? not_equal(target, static_cast<double>(ignored->integer)) : full(target.shape(), 1, Dtype::boolean);
  const Tensor at = where(counted, target, zeros_like(target));
  Tensor weight = cast(counted, log_probabilities.dtype());
  if (call.has(2)) weight = weight * reshape(index_select(call.x(2), 0, reshape(at, {-1})), at.shape());
  const Tensor loss = squeeze(-gather(log_probabilities, 1, at) * weight, 1);
  const auto reduction = call.attribute("reduction", std::string_view("mean"));
  if (reduction == "none") return {call.give(loss)};
  if (reduction == "sum") return {call.give(sum(loss))};
  if (reduction == "mean") return {call.give(sum(loss) / sum(weight))};
  call.fail(fmt::format("the reduction is \"{}\"", reduction));
}

Outputs nll(const Call& call) { return negative_log_likelihood(call, call.x(0)); }

Outputs softmax_cross_entropy(const Call& call) {
  const Tensor log_probabilities = log_softmax(call.x(0), 1);
  auto out = negative_log_likelihood(call, log_probabilities);
  if (call.wants(1)) out.push_back(call.give(log_probabilities));
  return out;
}

/// Its inputs are `xs`, `zs` and, as the resolver adds it, `y`.
Outputs gradient(const Call& call) {
  const auto xs = call.texts("xs").size();
  if (call.count() < xs + 1) call.fail("has fewer inputs than xs");
  std::vector<Tensor> inputs;
  for (std::size_t i = 0; i < xs; ++i) inputs.push_back(call.x(i));
  const Tensor& y = call.x(call.count() - 1);
  Outputs out;
  for (auto& slope : gradients(sum(y), inputs)) {
    const auto i = out.size();
    out.push_back(call.give(slope.defined() ? slope : zeros_like(inputs[i]), i));
  }
  return out;
}

/// Inputs of an optimizer: the rate, the number of steps before, then groups of tensors of one size.
struct Optimized {
  const Call& call;
  std::size_t count;
  Tensor rate;
  double steps;

  Optimized(const Call& from, std::size_t groups)
      : call(from), count((from.count() - 2) / groups), rate(from.x(0)), steps(from.number(1)) {
    if (from.count() < 2 + groups || (from.count() - 2) % groups != 0) call.fail(fmt::format("{} inputs", from.count()));
  }
  Tensor of(std::size_t group, std::size_t i) const { return call.x(2 + group * count + i); }
  /// Results by group, for outputs that follow each other in the same way.
  Outputs given(const std::vector<std::vector<Tensor>>& results) const {
    Outputs out;
    for (const auto& group : results)
      for (std::size_t i = 0; i < group.size(); ++i) out.push_back(call.give(group[i], 2 + i));
    return out;
  }
};

Outputs momentum(const Call& call) {
  const Optimized of(call, 3);
  const double alpha = call.attribute("alpha", 0.0), norm = call.attribute("norm_coefficient", 0.0);
  const double beta = of.steps > 0 ? call.attribute("beta", 0.0) : 1.0;
  const bool nesterov = call.attribute("mode", std::string_view{}) == "nesterov";
  std::vector<Tensor> xs, velocities;
  for (std::size_t i = 0; i < of.count; ++i) {
    const Tensor x = of.of(0, i), slope = of.of(1, i) + x * norm, velocity = of.of(2, i) * alpha + slope * beta;
    xs.push_back(x - of.rate * (nesterov ? slope + velocity * alpha : velocity));
    velocities.push_back(velocity);
  }
  return of.given({xs, velocities});
}

Outputs adagrad(const Call& call) {
  const Optimized of(call, 3);
  const double decay = call.attribute("decay_factor", 0.0), eps = call.attribute("epsilon", 1e-6),
               norm = call.attribute("norm_coefficient", 0.0);
  const Tensor rate = of.rate / (1 + of.steps * decay);
  std::vector<Tensor> xs, squares;
  for (std::size_t i = 0; i < of.count; ++i) {
    const Tensor x = of.of(0, i), slope = of.of(1, i) + x * norm, total = of.of(2, i) + square(slope);
    xs.push_back(x - rate * slope / (sqrt(total) + eps));
    squares.push_back(total);
  }
  return of.given({xs, squares});
}

Outputs adam(const Call& call) {
  const Optimized of(call, 4);
  const double alpha = call.attribute("alpha", 0.9), beta = call.attribute("beta", 0.999), eps = call.attribute("epsilon", 1e-6);
  const double norm = call.attribute("norm_coefficient", 0.0), post = call.attribute("norm_coefficient_post", 0.0);
  const double corrected = of.steps > 0 ? std::sqrt(1 - std::pow(beta, of.steps)) / (1 - std::pow(alpha, of.steps)) : 1.0;
  std::vector<Tensor> xs, means, squares;
  for (std::size_t i = 0; i < of.count; ++i) {
    const Tensor x = of.of(0, i), slope = of.of(1, i) + x * norm;
    const Tensor mean = of.of(2, i) * alpha + slope * (1 - alpha), second = of.of(3, i) * beta + square(slope) * (1 - beta);
    xs.push_back((x - of.rate * corrected * mean / (sqrt(second) + eps)) * (1 - post));
    means.push_back(mean);
    squares.push_back(second);
  }
  return of.given({xs, means, squares});
}

}  // namespace

std::vector<Operator> training_operators() {
  constexpr std::string_view preview = "ai.onnx.preview.training";
  using enum Role;
  return {
      {"Adagrad", 1, adagrad, {data, structure, data}, preview},
      {"Adam", 1, adam, {data, structure, data}, preview},
      {"Gradient", 1, gradient, {}, preview},
      {"Momentum", 1, momentum, {data, structure, data}, preview},
      {"NegativeLogLikelihoodLoss", 12, nll},
      {"SoftmaxCrossEntropyLoss", 12, softmax_cross_entropy},
  };
}

}  // namespace clnet::onnx
