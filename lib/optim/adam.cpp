#include "clnet/optim/adam.h"

#include <algorithm>
#include <cmath>

#include "clnet/ops.h"
#include "lib/optim/rules.h"

namespace clnet::optim {

namespace {

using Decay = ComposedRule::Decay;

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
  std::optional<double> momentum() const override { return o_.beta1; }
  std::vector<State> states(const Shape&) const override { return {{"exp_avg"}, {"exp_avg_sq"}, {"max_exp_avg_sq"}}; }
  Result update(const Tensor& p, const Tensor& g, const std::vector<Tensor>& states, const Step& step) const override {
    const double beta1 = step.momentum.value_or(o_.beta1);
    const Tensor downhill = slope(p, g);
    const Tensor mean = moving_average(states[0], downhill, beta1);
    const Tensor square = moving_average(states[1], downhill * downhill, o_.beta2);
    const Tensor largest = maximum(states[2], square);
    const Tensor scale = sqrt(largest) * (1 / root(seen(o_.beta2, step))) + o_.eps;
    return {shrunk(p, step) - mean * (step.rate / seen(beta1, step)) / scale, {mean, square, largest}};
  }

 private:
  AdamOptions o_;
};

std::shared_ptr<const Rule> adam(const char* name, const AdamOptions& o, bool decoupled) {
  require_adam(name, o);
  if (o.amsgrad) return std::make_shared<AmsgradRule>(name, o, decoupled ? Decay::shrinks : Decay::joins_gradient);
  return std::make_shared<NativeRule>(
      NativeRule::Settings{.name = name,
                           .rule = ops::UpdateRule::adam,
                           .constants = {.decay = decoupled ? 0 : o.weight_decay, .beta2 = o.beta2, .eps = o.eps},
                           .momentum = o.beta1,
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
  std::optional<double> momentum() const override { return o_.beta1; }
  std::vector<State> states(const Shape&) const override { return {{"exp_avg"}, {"exp_avg_sq"}, {"mu_product", 1, Shape{}}}; }
  Result update(const Tensor& p, const Tensor& g, const std::vector<Tensor>& states, const Step& step) const override {
    const double beta1 = step.momentum.value_or(o_.beta1);
    const Tensor downhill = slope(p, g);
    const Tensor mean = moving_average(states[0], downhill, beta1);
    const Tensor square = moving_average(states[1], downhill * downhill, o_.beta2);
    const Tensor scale = sqrt(square) * (1 / root(seen(o_.beta2, step))) + o_.eps;
    // The momentum grows with the steps; what the mean has seen depends on all that there were. Their product stays on the host
    // where the steps are counted there.
    const Number t = count_of(step), now = warmed(beta1, t), next = warmed(beta1, t + 1);
    const Number product = (t.on_host() ? Number(states[2].item<float>()) : Number(states[2])) * now;
    const Number of_gradient = step.rate * (1 - now) / (1 - product), of_mean = step.rate * next / (1 - product * next);
    return {shrunk(p, step) - downhill * of_gradient / scale - mean * of_mean / scale, {mean, square, product.tensor()}};
  }

 private:
  Number warmed(double beta1, const Number& t) const { return beta1 * (1 - 0.5 * power(0.96, t * o_.momentum_decay)); }

  NAdamOptions o_;
};

class RAdamRule : public ComposedRule {
 public:
  explicit RAdamRule(const RAdamOptions& o)
      : ComposedRule("RAdam", o.weight_decay, o.decoupled ? Decay::shrinks : Decay::joins_gradient, o.maximize), o_(o) {
    require_adam("RAdam", o);
  }
  std::optional<double> momentum() const override { return o_.beta1; }
  std::vector<State> states(const Shape&) const override { return {{"exp_avg"}, {"exp_avg_sq"}}; }
  Result update(const Tensor& p, const Tensor& g, const std::vector<Tensor>& states, const Step& step) const override {
    const double beta1 = step.momentum.value_or(o_.beta1);
    const Tensor downhill = slope(p, g);
    const Tensor mean = moving_average(states[0], downhill, beta1);
    const Tensor square = moving_average(states[1], downhill * downhill, o_.beta2);
    const double longest = 2 / (1 - o_.beta2) - 1;
    const Number t = count_of(step), rate = step.rate / seen(beta1, step), second = seen(o_.beta2, step);
    // The length of the average that exp_avg_sq stands for: too short, and its variance is not tractable.
    const Number length = t.on_host() ? longest - 2 * t * (1 - second) / second : Number(average_length(t.tensor(), longest));
    if (length.on_host() && !(length.value() > 5)) return {shrunk(p, step) - mean * rate, {mean, square}};
    const Number known = larger(length, 5);
    const Number rectification = root((known - 4) * (known - 2) * longest / ((longest - 4) * (longest - 2) * known));
    const Tensor rectified = mean * (rate * rectification * root(second)) / (sqrt(square) + o_.eps);
    if (length.on_host()) return {shrunk(p, step) - rectified, {mean, square}};
    return {shrunk(p, step) - where(greater(length.tensor(), 5.0), rectified, mean * rate), {mean, square}};
  }

 private:
  /// longest - 2 t beta^t / (1 - beta^t) in f32. While t is small both are nearly equal: then by the series of x / (e^x - 1) with
  /// beta^t = e^-x, in which what cancels was taken out.
  Tensor average_length(const Tensor& t, double longest) const {
    const double decay = -std::log(o_.beta2);
    const Tensor x = t * decay, squared = square(x);
    const Tensor early = t * (1.0 - x * (1.0 / 6 - squared * (1.0 / 360 - squared * (1.0 / 15120)))) + (longest - 2 / decay);
    return where(less(x, 0.5), early, longest - t * 2.0 / expm1(x));
  }

  RAdamOptions o_;
};

class AdamaxRule : public ComposedRule {
 public:
  explicit AdamaxRule(const AdamaxOptions& o) : ComposedRule("Adamax", o.weight_decay, Decay::joins_gradient, o.maximize), o_(o) {
    require_adam("Adamax", o);
  }
  std::optional<double> momentum() const override { return o_.beta1; }
  std::vector<State> states(const Shape&) const override { return {{"exp_avg"}, {"exp_inf"}}; }
  Result update(const Tensor& p, const Tensor& g, const std::vector<Tensor>& states, const Step& step) const override {
    const double beta1 = step.momentum.value_or(o_.beta1);
    const Tensor downhill = slope(p, g);
    const Tensor mean = moving_average(states[0], downhill, beta1);
    const Tensor largest = maximum(states[1] * o_.beta2, abs(downhill) + o_.eps);
    return {p - mean * (step.rate / seen(beta1, step)) / largest, {mean, largest}};
  }

 private:
  AdamaxOptions o_;
};

class LAMBRule : public ComposedRule {
 public:
  explicit LAMBRule(const LAMBOptions& o) : ComposedRule("LAMB", 0, Decay::joins_gradient, o.maximize), o_(o) {
    require_adam("LAMB", o);
  }
  std::optional<double> momentum() const override { return o_.beta1; }
  std::vector<State> states(const Shape&) const override { return {{"exp_avg"}, {"exp_avg_sq"}}; }
  Result update(const Tensor& p, const Tensor& g, const std::vector<Tensor>& states, const Step& step) const override {
    const double beta1 = step.momentum.value_or(o_.beta1);
    const Tensor downhill = slope(p, g);
    const Tensor mean = moving_average(states[0], downhill, beta1);
    const Tensor square = moving_average(states[1], downhill * downhill, o_.beta2);
    const Tensor scale = sqrt(square) * (1 / root(seen(o_.beta2, step))) + o_.eps;
    Tensor move = mean * (1 / seen(beta1, step)) / scale;
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
  std::optional<double> momentum() const override { return o_.beta1; }
  std::vector<State> states(const Shape&) const override { return {{"exp_avg"}}; }
  Result update(const Tensor& p, const Tensor& g, const std::vector<Tensor>& states, const Step& step) const override {
    const double beta1 = step.momentum.value_or(o_.beta1);
    const Tensor downhill = slope(p, g);
    return {shrunk(p, step) - sign(moving_average(states[0], downhill, beta1)) * step.rate,
            {moving_average(states[0], downhill, o_.beta2)}};
  }

 private:
  LionOptions o_;
};

}  // namespace

std::shared_ptr<const Rule> Adam::rule(const AdamOptions& o) { return adam("Adam", o, false); }
std::shared_ptr<const Rule> AdamW::rule(const AdamWOptions& o) {
  return adam("AdamW",
              {.learning_rate = o.learning_rate,
               .beta1 = o.beta1,
               .beta2 = o.beta2,
               .eps = o.eps,
               .weight_decay = o.weight_decay,
               .amsgrad = o.amsgrad,
               .maximize = o.maximize,
               .clip_norm = o.clip_norm,
               .clip_value = o.clip_value},
              true);
}
std::shared_ptr<const Rule> NAdam::rule(const NAdamOptions& o) { return std::make_shared<NAdamRule>(o); }
std::shared_ptr<const Rule> RAdam::rule(const RAdamOptions& o) { return std::make_shared<RAdamRule>(o); }
std::shared_ptr<const Rule> Adamax::rule(const AdamaxOptions& o) { return std::make_shared<AdamaxRule>(o); }
std::shared_ptr<const Rule> LAMB::rule(const LAMBOptions& o) { return std::make_shared<LAMBRule>(o); }
std::shared_ptr<const Rule> Lion::rule(const LionOptions& o) { return std::make_shared<LionRule>(o); }

}  // namespace clnet::optim
