#include "clnet/optim/sgd.h"

#include <algorithm>
#include <cmath>

#include "clnet/ops.h"
#include "lib/optim/rules.h"

namespace clnet::optim {

namespace {

using Decay = ComposedRule::Decay;

/// SGD with dampening; without, it is a NativeRule.
class DampenedSGD : public ComposedRule {
 public:
  explicit DampenedSGD(const SGDOptions& o)
      : ComposedRule("SGD", o.weight_decay, Decay::joins_gradient, o.maximize), momentum_(o.momentum), dampening_(o.dampening) {}
  std::optional<double> momentum() const override { return momentum_; }
  std::vector<State> states(const Shape&) const override { return {{"momentum_buffer"}}; }
  Result update(const Tensor& p, const Tensor& g, const std::vector<Tensor>& states, const Step& step) const override {
    const Tensor downhill = slope(p, g);
    const double momentum = step.momentum.value_or(momentum_), later = momentum > 0 ? 1 - dampening_ : 1;
    // Not left out where it is 1: the first step has no plan of its own.
    const Number share = step.made.defined() ? Number(where(eq(step.made, 1.0), Tensor::scalar(1), Tensor::scalar(later)))
                                             : Number(step.number == 1 ? 1 : later);
    const Tensor buffer = states[0] * momentum + downhill * share;
    return {p - buffer * step.rate, {kept_buffer(states[0], buffer, momentum)}};
  }

 private:
  double momentum_, dampening_;
};

class ASGDRule : public ComposedRule {
 public:
  explicit ASGDRule(const ASGDOptions& o) : ComposedRule("ASGD", o.weight_decay, Decay::joins_gradient, o.maximize), o_(o) {
    require_positive_or_zero(name(), "lambda", o.lambda);
    require_finite(name(), "alpha", o.alpha);
    require(!std::isnan(o.t0), name(), "t0", o.t0);
  }
  std::vector<State> states(const Shape&) const override { return {{"ax"}}; }
  Result update(const Tensor& p, const Tensor& g, const std::vector<Tensor>& states, const Step& step) const override {
    const Number before = count_of(step) - 1;
    const Number eta = step.rate / power(1 + o_.lambda * step.rate * before, o_.alpha);
    const Number mu = 1 / larger(before - o_.t0, 1);
    const Tensor next = p * (1 - o_.lambda * eta) - slope(p, g) * eta;
    return {next, {states[0] * (1 - mu) + next * mu}};
  }

 private:
  ASGDOptions o_;
};

class RpropRule : public ComposedRule {
 public:
  explicit RpropRule(const RpropOptions& o) : ComposedRule("Rprop", 0, Decay::joins_gradient, o.maximize), o_(o) {
    require_positive_or_zero(name(), "learning_rate", o.learning_rate);
    require(o.shrink > 0 && o.shrink < 1, name(), "shrink", o.shrink);
    require(o.grow > 1 && std::isfinite(o.grow), name(), "grow", o.grow);
    require_positive_or_zero(name(), "min_step", o.min_step);
    require(o.max_step >= o.min_step, name(), "max_step", o.max_step);
  }
  std::vector<State> states(const Shape&) const override { return {{"prev"}, {"step_size", o_.learning_rate}}; }
  Result update(const Tensor& p, const Tensor& g, const std::vector<Tensor>& states, const Step&) const override {
    const Tensor downhill = slope(p, g);
    const Tensor agreement = sign(downhill) * sign(states[0]);
    const Tensor turned = less(agreement, 0.0);
    const Tensor scaled = where(greater(agreement, 0.0), states[1] * o_.grow, where(turned, states[1] * o_.shrink, states[1]));
    const Tensor size = clamp(scaled, o_.min_step, o_.max_step);
    const Tensor kept = masked_fill(downhill, turned, 0);
    return {p - sign(kept) * size, {kept, size}};
  }

 private:
  RpropOptions o_;
};

class LARSRule : public ComposedRule {
 public:
  explicit LARSRule(const LARSOptions& o) : ComposedRule("LARS", o.weight_decay, Decay::joins_gradient, o.maximize), o_(o) {
    require_positive_or_zero(name(), "momentum", o.momentum);
    require_positive_or_zero(name(), "trust", o.trust);
    require_positive_or_zero(name(), "eps", o.eps);
    if (o.nesterov) require(o.momentum > 0, name(), "nesterov's momentum", o.momentum);
  }
  std::optional<double> momentum() const override { return o_.momentum; }
  std::vector<State> states(const Shape&) const override { return {{"momentum_buffer"}}; }
  Result update(const Tensor& p, const Tensor& g, const std::vector<Tensor>& states, const Step& step) const override {
    const Tensor size = norm(p), steepness = norm(g);
    const Tensor trust = size * o_.trust / (steepness + size * o_.weight_decay + o_.eps);
    const Tensor scale = where(logical_and(greater(size, 0.0), greater(steepness, 0.0)), trust, ones_like(trust));
    const double momentum = step.momentum.value_or(o_.momentum);
    const Tensor downhill = slope(p, g) * scale, buffer = states[0] * momentum + downhill;
    return {p - (o_.nesterov ? downhill + buffer * momentum : buffer) * step.rate, {kept_buffer(states[0], buffer, momentum)}};
  }

 private:
  LARSOptions o_;
};

class MuonRule : public ComposedRule {
 public:
  explicit MuonRule(const MuonOptions& o) : ComposedRule("Muon", o.weight_decay, Decay::shrinks, false), o_(o) {
    require_share(name(), "momentum", o.momentum);
    for (const auto& [what, value] : {std::pair{"a", o.a}, std::pair{"b", o.b}, std::pair{"c", o.c}})
      require_finite(name(), what, value);
    require(o.eps > 0 && std::isfinite(o.eps), name(), "eps", o.eps);
    require(o.iterations > 0 && o.iterations < 100, name(), "iterations", o.iterations);
    require(!(o.match_adam && o.unclamped), name(), "unclamped with match_adam", 1);
  }
  std::optional<double> momentum() const override { return o_.momentum; }
  std::vector<State> states(const Shape& parameter) const override {
    if (parameter.rank() != 2)
      throw ShapeError(fmt::format("{}: a parameter of shape {} is no matrix; give it a group with another rule", name(),
                                   to_string(parameter)));
    return {{"momentum_buffer"}};
  }
  Result update(const Tensor& p, const Tensor& g, const std::vector<Tensor>& states, const Step& step) const override {
    const double momentum = step.momentum.value_or(o_.momentum);
    const Tensor buffer = moving_average(states[0], g, momentum);
    const Tensor direction = orthogonal(o_.nesterov ? moving_average(g, buffer, 1 - momentum) : buffer);
    const auto rows = static_cast<double>(p.size(0)), columns = static_cast<double>(p.size(1));
    const double share =
        o_.match_adam ? 0.2 * std::sqrt(std::max(rows, columns)) : std::sqrt(std::max(o_.unclamped ? 0.0 : 1.0, rows / columns));
    return {shrunk(p, step) - direction * (step.rate * share), {buffer}};
  }

 private:
  /// Newton-Schulz: singular values move towards 1. Columns outnumber rows meanwhile, so that the squares are small.
  Tensor orthogonal(const Tensor& x) const {
    const bool turned = x.size(0) > x.size(1);
    Tensor y = turned ? transpose(x, 0, 1) : x;
    y = y / maximum(norm(x), o_.eps);
    for (int i = 0; i < o_.iterations; ++i) {
      const Tensor gram = matmul(y, y, {.transpose_b = true});
      y = y * o_.a + matmul(gram * o_.b + matmul(gram, gram) * o_.c, y);
    }
    return turned ? transpose(y, 0, 1) : y;
  }

  MuonOptions o_;
};

}  // namespace

std::shared_ptr<const Rule> SGD::rule(const SGDOptions& o) {
  require_positive_or_zero("SGD", "learning_rate", o.learning_rate);
  require_positive_or_zero("SGD", "momentum", o.momentum);
  require_positive_or_zero("SGD", "weight_decay", o.weight_decay);
  require_finite("SGD", "dampening", o.dampening);
  if (o.nesterov) {
    require(o.momentum > 0, "SGD", "nesterov's momentum", o.momentum);
    require(o.dampening == 0, "SGD", "nesterov's dampening", o.dampening);
  }
  if (o.momentum > 0 && o.dampening != 0) return std::make_shared<DampenedSGD>(o);
  const bool momentum = o.momentum > 0;
  return std::make_shared<NativeRule>(
      NativeRule::Settings{.name = "SGD",
                           .rule = momentum ? ops::UpdateRule::sgd_momentum : ops::UpdateRule::sgd,
                           .constants = {.decay = o.weight_decay, .nesterov = o.nesterov},
                           .momentum = momentum ? std::optional(o.momentum) : std::nullopt,
                           .states = momentum ? std::vector<std::string>{"momentum_buffer"} : std::vector<std::string>{},
                           .maximize = o.maximize});
}

std::shared_ptr<const Rule> ASGD::rule(const ASGDOptions& o) { return std::make_shared<ASGDRule>(o); }
std::shared_ptr<const Rule> Rprop::rule(const RpropOptions& o) { return std::make_shared<RpropRule>(o); }
std::shared_ptr<const Rule> LARS::rule(const LARSOptions& o) { return std::make_shared<LARSRule>(o); }
std::shared_ptr<const Rule> Muon::rule(const MuonOptions& o) { return std::make_shared<MuonRule>(o); }

}  // namespace clnet::optim
