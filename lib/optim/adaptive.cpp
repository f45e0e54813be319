#include "clnet/optim/adaptive.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "clnet/ops.h"
#include "lib/optim/rules.h"

namespace clnet::optim {

namespace {

using Decay = ComposedRule::Decay;

/// RMSprop by the standard deviation; otherwise it is a NativeRule.
class CenteredRMSprop : public ComposedRule {
 public:
  explicit CenteredRMSprop(const RMSpropOptions& o)
      : ComposedRule("RMSprop", o.weight_decay, Decay::joins_gradient, o.maximize), o_(o) {}
  std::optional<double> momentum() const override { return o_.momentum > 0 ? std::optional(o_.momentum) : std::nullopt; }
  std::vector<State> states(const Shape&) const override {
    if (o_.momentum > 0) return {{"square_avg"}, {"momentum_buffer"}, {"grad_avg"}};
    return {{"square_avg"}, {"grad_avg"}};
  }
  Result update(const Tensor& p, const Tensor& g, const std::vector<Tensor>& states, const Step& step) const override {
    const Tensor downhill = slope(p, g);
    const Tensor square = moving_average(states[0], downhill * downhill, o_.alpha);
    const Tensor mean = moving_average(states.back(), downhill, o_.alpha);
    // Of gradients that are nearly the same in every step nothing is left of the difference, or less.
    const Tensor scaled = downhill / (sqrt(maximum(square - mean * mean, 0.0)) + o_.eps);
    if (o_.momentum == 0) return {p - scaled * step.rate, {square, mean}};
    const double momentum = step.momentum.value_or(o_.momentum);
    const Tensor buffer = states[1] * momentum + scaled;
    return {p - buffer * step.rate, {square, kept_buffer(states[1], buffer, momentum), mean}};
  }

 private:
  RMSpropOptions o_;
};

class AdagradRule : public ComposedRule {
 public:
  explicit AdagradRule(const AdagradOptions& o)
      : ComposedRule("Adagrad", o.weight_decay, Decay::joins_gradient, o.maximize), o_(o) {
    require_positive_or_zero(name(), "lr_decay", o.lr_decay);
    require_positive_or_zero(name(), "initial_accumulator_value", o.initial_accumulator_value);
    require_positive_or_zero(name(), "eps", o.eps);
  }
  std::vector<State> states(const Shape&) const override { return {{"sum", o_.initial_accumulator_value}}; }
  Result update(const Tensor& p, const Tensor& g, const std::vector<Tensor>& states, const Step& step) const override {
    const Tensor downhill = slope(p, g), sum = states[0] + downhill * downhill;
    const Number rate = step.rate / (1 + (count_of(step) - 1) * o_.lr_decay);
    return {p - downhill * rate / (sqrt(sum) + o_.eps), {sum}};
  }

 private:
  AdagradOptions o_;
};

class AdadeltaRule : public ComposedRule {
 public:
  explicit AdadeltaRule(const AdadeltaOptions& o)
      : ComposedRule("Adadelta", o.weight_decay, Decay::joins_gradient, o.maximize), o_(o) {
    require(o.rho >= 0 && o.rho <= 1, name(), "rho", o.rho);
    require_positive_or_zero(name(), "eps", o.eps);
  }
  std::vector<State> states(const Shape&) const override { return {{"square_avg"}, {"acc_delta"}}; }
  Result update(const Tensor& p, const Tensor& g, const std::vector<Tensor>& states, const Step& step) const override {
    const Tensor downhill = slope(p, g);
    const Tensor square = moving_average(states[0], downhill * downhill, o_.rho);
    const Tensor move = sqrt(states[1] + o_.eps) / sqrt(square + o_.eps) * downhill;
    return {p - move * step.rate, {square, moving_average(states[1], move * move, o_.rho)}};
  }

 private:
  AdadeltaOptions o_;
};

class AdafactorRule : public ComposedRule {
 public:
  explicit AdafactorRule(const AdafactorOptions& o)
      : ComposedRule("Adafactor", o.weight_decay, Decay::shrinks, o.maximize),
        o_(o),
        eps1_(o.eps1.value_or(std::numeric_limits<float>::epsilon())) {
    require(o.beta2_decay <= 0, name(), "beta2_decay", o.beta2_decay);
    require_positive_or_zero(name(), "eps1", eps1_);
    require_positive_or_zero(name(), "eps2", o.eps2);
    require(o.d >= 1, name(), "d", o.d);
  }
  std::vector<State> states(const Shape& parameter) const override {
    if (parameter.rank() < 2) return {{"variance"}};
    return {{"row_var", 0, parameter.with(-1, 1)}, {"col_var", 0, parameter.with(-2, 1)}};
  }
  Result update(const Tensor& p, const Tensor& g, const std::vector<Tensor>& states, const Step& step) const override {
    const auto count = static_cast<double>(p.numel());
    const Number t = count_of(step), past = 1 - power(t, o_.beta2_decay);
    const Tensor downhill = slope(p, g), square = downhill * downhill;
    std::vector<Tensor> next;
    Tensor variance;
    if (states.size() == 1) {
      next = {moving_average(states[0], square, past)};
      variance = next[0];
    } else {
      next = {moving_average(states[0], mean(square, {-1}, true), past),
              moving_average(states[1], mean(square, {-2}, true), past)};
      variance = next[0] / maximum(mean(next[0], {-2}, true), eps1_) * next[1];
    }
    const Tensor move = rsqrt(maximum(variance, eps1_ * eps1_)) * downhill;
    const Tensor rms = norm(move) * (1 / (std::sqrt(count) * o_.d));
    const Tensor scale = maximum(norm(p) * (1 / std::sqrt(count)), o_.eps2);
    const Number rate = smaller(1 / root(t), step.rate);
    return {shrunk(p, step) - move * (scale * rate / maximum(rms, 1.0)), std::move(next)};
  }

 private:
  AdafactorOptions o_;
  double eps1_;
};

}  // namespace

std::shared_ptr<const Rule> RMSprop::rule(const RMSpropOptions& o) {
  require_positive_or_zero("RMSprop", "learning_rate", o.learning_rate);
  require_positive_or_zero("RMSprop", "alpha", o.alpha);
  require_positive_or_zero("RMSprop", "eps", o.eps);
  require_positive_or_zero("RMSprop", "momentum", o.momentum);
  require_positive_or_zero("RMSprop", "weight_decay", o.weight_decay);
  if (o.centered) return std::make_shared<CenteredRMSprop>(o);
  const bool momentum = o.momentum > 0;
  return std::make_shared<NativeRule>(NativeRule::Settings{
      .name = "RMSprop",
      .rule = momentum ? ops::UpdateRule::rmsprop_momentum : ops::UpdateRule::rmsprop,
      .constants = {.decay = o.weight_decay, .beta2 = o.alpha, .eps = o.eps},
      .momentum = momentum ? std::optional(o.momentum) : std::nullopt,
      .states = momentum ? std::vector<std::string>{"square_avg", "momentum_buffer"} : std::vector<std::string>{"square_avg"},
      .maximize = o.maximize});
}
std::shared_ptr<const Rule> Adagrad::rule(const AdagradOptions& o) { return std::make_shared<AdagradRule>(o); }
std::shared_ptr<const Rule> Adadelta::rule(const AdadeltaOptions& o) { return std::make_shared<AdadeltaRule>(o); }
std::shared_ptr<const Rule> Adafactor::rule(const AdafactorOptions& o) { return std::make_shared<AdafactorRule>(o); }

}  // namespace clnet::optim
