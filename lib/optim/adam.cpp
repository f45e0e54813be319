#include "clnet/optim/adam.h"

#include <algorithm>
#include <cmath>
#include <mutex>

#include "clnet/ops.h"
#include "lib/optim/rules.h"

namespace clnet::optim {

namespace {

using Decay = ComposedRule::Decay;

/// 1 - beta^t: what a moving average that began at 0 has seen after t steps.
double seen(double beta, std::int64_t t) { return 1 - std::pow(beta, static_cast<double>(t)); }

template <class Options>
void require_averages(const char* name, const Options& o) {
  require_positive_or_zero(name, "learning_rate", o.learning_rate);
  require_share(name, "beta1", o.beta1);
  require_share(name, "beta2", o.beta2);
}
template <class Options>
void require_adam(const char* name, const Options& o) {
  require_averages(name, o);
  require_positive_or_zero(name, "eps", o.eps);
  require_positive_or_zero(name, "weight_decay", o.weight_decay);
}

/// Adam and AdamW that remember the largest mean square; without, they are NativeRules.
class AmsgradRule : public ComposedRule {
 public:
  AmsgradRule(const char* name, const AdamOptions& o, Decay how) : ComposedRule(name, o.weight_decay, how, o.maximize), o_(o) {}
  std::vector<State> states(const Shape&) const override { return {{"exp_avg"}, {"exp_avg_sq"}, {"max_exp_avg_sq"}}; }
  Result update(const Tensor& p, const Tensor& g, const std::vector<Tensor>& states, const Step& step) const override {
    const Tensor downhill = slope(p, g);
    const Tensor mean = moving_average(states[0], downhill, o_.beta1);
    const Tensor square = moving_average(states[1], downhill * downhill, o_.beta2);
    const Tensor largest = maximum(states[2], square);
    const Tensor scale = sqrt(largest) * (1 / std::sqrt(seen(o_.beta2, step.number))) + o_.eps;
    return {shrunk(p, step) - mean * (step.rate / seen(o_.beta1, step.number)) / scale, {mean, square, largest}};
  }

 private:
  AdamOptions o_;
};

std::shared_ptr<const Rule> adam(const char* name, const AdamOptions& o, bool decoupled) {
  require_adam(name, o);
  if (o.amsgrad) return std::make_shared<AmsgradRule>(name, o, decoupled ? Decay::shrinks : Decay::joins_gradient);
  return std::make_shared<NativeRule>(NativeRule::Settings{
      .name = name,
      .rule = ops::UpdateRule::adam,
      .constants = {.decay = decoupled ? 0 : o.weight_decay, .beta1 = o.beta1, .beta2 = o.beta2, .eps = o.eps},
      .states = {"exp_avg", "exp_avg_sq"},
      .shrink_decay = decoupled ? o.weight_decay : 0,
      .maximize = o.maximize});
}

class NAdamRule : public ComposedRule {
 public:
  explicit NAdamRule(const NAdamOptions& o)
      : ComposedRule("NAdam", o.weight_decay, o.decoupled ? Decay::shrinks : Decay::joins_gradient, o.maximize), o_(o) {
    require_adam("NAdam", o);
    require_positive_or_zero(name(), "momentum_decay", o.momentum_decay);
  }
  std::vector<State> states(const Shape&) const override { return {{"exp_avg"}, {"exp_avg_sq"}}; }
  Result update(const Tensor& p, const Tensor& g, const std::vector<Tensor>& states, const Step& step) const override {
    const Tensor downhill = slope(p, g);
    const Tensor mean = moving_average(states[0], downhill, o_.beta1);
    const Tensor square = moving_average(states[1], downhill * downhill, o_.beta2);
    const Tensor scale = sqrt(square) * (1 / std::sqrt(seen(o_.beta2, step.number))) + o_.eps;
    const double product = momenta(step.number), next = momentum(step.number + 1);
    const double of_gradient = step.rate * (1 - momentum(step.number)) / (1 - product);
    const double of_mean = step.rate * next / (1 - product * next);
    return {shrunk(p, step) - downhill * of_gradient / scale - mean * of_mean / scale, {mean, square}};
  }

 private:
  double momentum(std::int64_t t) const {
    return o_.beta1 * (1 - 0.5 * std::pow(0.96, static_cast<double>(t) * o_.momentum_decay));
  }
  /// The product of all momenta up to step t. The one before is kept: a long training would multiply ever longer.
  double momenta(std::int64_t t) const {
    const std::lock_guard guard(mutex_);
    if (t < last_) last_ = 0, product_ = 1;
    // Below this it is 0 beside 1.
    while (last_ < t && product_ > 1e-30) product_ *= momentum(++last_);
    return product_;
  }

  NAdamOptions o_;
  mutable std::mutex mutex_;
  mutable std::int64_t last_ = 0;
  mutable double product_ = 1;
};

class RAdamRule : public ComposedRule {
 public:
  explicit RAdamRule(const RAdamOptions& o)
      : ComposedRule("RAdam", o.weight_decay, o.decoupled ? Decay::shrinks : Decay::joins_gradient, o.maximize), o_(o) {
    require_adam("RAdam", o);
  }
  std::vector<State> states(const Shape&) const override { return {{"exp_avg"}, {"exp_avg_sq"}}; }
  Result update(const Tensor& p, const Tensor& g, const std::vector<Tensor>& states, const Step& step) const override {
    const Tensor downhill = slope(p, g);
    const Tensor mean = moving_average(states[0], downhill, o_.beta1);
    const Tensor square = moving_average(states[1], downhill * downhill, o_.beta2);
    const double rate = step.rate / seen(o_.beta1, step.number), second = seen(o_.beta2, step.number);
    const double longest = 2 / (1 - o_.beta2) - 1;
    const double length = longest - 2 * static_cast<double>(step.number) * (1 - second) / second;
    // The length of the average that exp_avg_sq stands for: too short, and its variance is not tractable.
    if (!(length > 5)) return {shrunk(p, step) - mean * rate, {mean, square}};
    const double rectification = std::sqrt((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length));
    return {shrunk(p, step) - mean * (rate * rectification * std::sqrt(second)) / (sqrt(square) + o_.eps), {mean, square}};
  }

 private:
  RAdamOptions o_;
};

class AdamaxRule : public ComposedRule {
 public:
  explicit AdamaxRule(const AdamaxOptions& o) : ComposedRule("Adamax", o.weight_decay, Decay::joins_gradient, o.maximize), o_(o) {
    require_adam("Adamax", o);
  }
  std::vector<State> states(const Shape&) const override { return {{"exp_avg"}, {"exp_inf"}}; }
  Result update(const Tensor& p, const Tensor& g, const std::vector<Tensor>& states, const Step& step) const override {
    const Tensor downhill = slope(p, g);
    const Tensor mean = moving_average(states[0], downhill, o_.beta1);
    const Tensor largest = maximum(states[1] * o_.beta2, abs(downhill) + o_.eps);
    return {p - mean * (step.rate / seen(o_.beta1, step.number)) / largest, {mean, largest}};
  }

 private:
  AdamaxOptions o_;
};

class LAMBRule : public ComposedRule {
 public:
  explicit LAMBRule(const LAMBOptions& o) : ComposedRule("LAMB", 0, Decay::joins_gradient, o.maximize), o_(o) {
    require_adam("LAMB", o);
  }
  std::vector<State> states(const Shape&) const override { return {{"exp_avg"}, {"exp_avg_sq"}}; }
  Result update(const Tensor& p, const Tensor& g, const std::vector<Tensor>& states, const Step& step) const override {
    const Tensor downhill = slope(p, g);
    const Tensor mean = moving_average(states[0], downhill, o_.beta1);
    const Tensor square = moving_average(states[1], downhill * downhill, o_.beta2);
    const Tensor scale = sqrt(square) * (1 / std::sqrt(seen(o_.beta2, step.number))) + o_.eps;
    Tensor move = mean * (1 / seen(o_.beta1, step.number)) / scale;
    if (o_.weight_decay > 0) move = move + p * o_.weight_decay;
    const Tensor size = norm(p), length = norm(move);
    const Tensor trust = where(logical_and(greater(size, 0.0), greater(length, 0.0)), size / length, ones_like(size));
    return {p - move * (trust * step.rate), {mean, square}};
  }

 private:
  LAMBOptions o_;
};

class LionRule : public ComposedRule {
 public:
  explicit LionRule(const LionOptions& o) : ComposedRule("Lion", o.weight_decay, Decay::shrinks, o.maximize), o_(o) {
    require_averages("Lion", o);
  }
  std::vector<State> states(const Shape&) const override { return {{"exp_avg"}}; }
  Result update(const Tensor& p, const Tensor& g, const std::vector<Tensor>& states, const Step& step) const override {
    const Tensor downhill = slope(p, g);
    return {shrunk(p, step) - sign(moving_average(states[0], downhill, o_.beta1)) * step.rate,
            {moving_average(states[0], downhill, o_.beta2)}};
  }

 private:
  LionOptions o_;
};

}  // namespace

std::shared_ptr<const Rule> Adam::rule(const AdamOptions& o) { return adam("Adam", o, false); }
std::shared_ptr<const Rule> AdamW::rule(const AdamOptions& o) { return adam("AdamW", o, true); }
std::shared_ptr<const Rule> NAdam::rule(const NAdamOptions& o) { return std::make_shared<NAdamRule>(o); }
std::shared_ptr<const Rule> RAdam::rule(const RAdamOptions& o) { return std::make_shared<RAdamRule>(o); }
std::shared_ptr<const Rule> Adamax::rule(const AdamaxOptions& o) { return std::make_shared<AdamaxRule>(o); }
std::shared_ptr<const Rule> LAMB::rule(const LAMBOptions& o) { return std::make_shared<LAMBRule>(o); }
std::shared_ptr<const Rule> Lion::rule(const LionOptions& o) { return std::make_shared<LionRule>(o); }

}  // namespace clnet::optim
