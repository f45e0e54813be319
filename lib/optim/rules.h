// Base classes of the library's own rules, and the numbers in their formulas.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "clnet/ops.h"
#include "clnet/optim/rule.h"
#include "lib/ops/optimize/optimizer_update.h"
#include "lib/optim/options.h"

namespace clnet::optim {

/// A number of the host, in double; or, with a loss scale, an f32 scalar of the device, which alone knows the number of applied
/// steps. So one formula serves both.
class Number {
 public:
  Number(double value) : value_(value) {}  // NOLINT(google-explicit-constructor)
  explicit Number(Tensor tensor) : tensor_(std::move(tensor)) {}
  bool on_host() const { return !tensor_.defined(); }
  double value() const { return value_; }
  /// As an operand of an operation.
  Tensor tensor() const { return on_host() ? Tensor::scalar(value_) : tensor_; }

 private:
  double value_ = 0;
  Tensor tensor_;
};

/// f of two numbers, for doubles and tensors in any combination.
template <class F>
Number joined(const Number& a, const Number& b, F f) {
  if (a.on_host()) return b.on_host() ? Number(f(a.value(), b.value())) : Number(f(a.value(), b.tensor()));
  return b.on_host() ? Number(f(a.tensor(), b.value())) : Number(f(a.tensor(), b.tensor()));
}
inline Number operator+(const Number& a, const Number& b) {
  return joined(a, b, [](const auto& x, const auto& y) { return x + y; });
}
inline Number operator-(const Number& a, const Number& b) {
  return joined(a, b, [](const auto& x, const auto& y) { return x - y; });
}
inline Number operator*(const Number& a, const Number& b) {
  return joined(a, b, [](const auto& x, const auto& y) { return x * y; });
}
inline Number operator/(const Number& a, const Number& b) {
  return joined(a, b, [](const auto& x, const auto& y) { return x / y; });
}
inline Number root(const Number& a) { return a.on_host() ? Number(std::sqrt(a.value())) : Number(sqrt(a.tensor())); }
inline Number power(const Number& a, double exponent) {
  return a.on_host() ? Number(std::pow(a.value(), exponent)) : Number(pow(a.tensor(), exponent));
}
inline Number power(double base, const Number& exponent) {
  return exponent.on_host() ? Number(std::pow(base, exponent.value())) : Number(pow(base, exponent.tensor()));
}
inline Number larger(const Number& a, double b) {
  return a.on_host() ? Number(std::max(a.value(), b)) : Number(maximum(a.tensor(), b));
}
inline Number smaller(const Number& a, double b) {
  return a.on_host() ? Number(std::min(a.value(), b)) : Number(minimum(a.tensor(), b));
}
inline Tensor operator+(const Tensor& x, const Number& n) { return n.on_host() ? x + n.value() : x + n.tensor(); }
inline Tensor operator*(const Tensor& x, const Number& n) { return n.on_host() ? x * n.value() : x * n.tensor(); }

/// The number of the step among the applied ones, from 1.
inline Number count_of(const Rule::Step& step) {
  return step.made.defined() ? Number(step.made) : Number(static_cast<double>(step.number));
}
/// 1 - beta^t: the total weight of a moving average that began at 0, after t steps.
inline Number seen(double beta, const Rule::Step& step) {
  const auto t = count_of(step);
  // expm1, as the difference from 1 would lose digits in f32.
  return t.on_host() ? Number(1 - std::pow(beta, t.value())) : Number(-expm1(t.tensor() * std::log(beta)));
}

/// A rule that is a row of ops::optimizer_update: several parameters per launch. It leaves everything as it is where a step is
/// not made.
class NativeRule : public Rule {
 public:
  struct Settings {
    std::string name;
    ops::UpdateRule rule;
    ops::UpdateConstants constants;
    std::optional<double> momentum;   ///< the formula's momentum, if any; Adam's beta1, too
    std::vector<std::string> states;  ///< PyTorch's names
    double shrink_decay = 0;          ///< AdamW's weight decay
    bool maximize = false;
  };
  explicit NativeRule(Settings settings) : settings_(std::move(settings)) {}
  std::string name() const override { return settings_.name; }
  std::optional<double> momentum() const override { return settings_.momentum; }
  std::vector<State> states(const Shape& parameter) const override;
  Result update(const Tensor& parameter, const Tensor& gradient, const std::vector<Tensor>& states,
                const Step& step) const override;
  std::vector<Result> update_all(const std::vector<Item>& items, const Step& step) const override;

 private:
  Settings settings_;
};

/// A rule with a weight decay and a direction, composed of operations.
class ComposedRule : public Rule {
 public:
  enum class Decay : std::uint8_t { joins_gradient, shrinks };
  ComposedRule(std::string name, double decay, Decay how, bool maximize)
      : name_(std::move(name)), decay_(decay), how_(how), maximize_(maximize) {
    require_positive_or_zero(name_, "weight_decay", decay);
  }
  std::string name() const override { return name_; }

 protected:
  /// The gradient to descend, with the weight decay added to it.
  Tensor slope(const Tensor& parameter, const Tensor& gradient) const;
  /// The parameter after the decoupled weight decay.
  Tensor shrunk(const Tensor& parameter, const Step& step) const;
  double decay() const { return decay_; }

 private:
  std::string name_;
  double decay_;
  Decay how_;
  bool maximize_;
};

/// share * before + (1 - share) * now.
Tensor moving_average(const Tensor& before, const Tensor& now, const Number& share);
/// The new buffer of a momentum. A step with the momentum 0 keeps the old one, as in PyTorch. A new momentum compiles no new
/// plan.
Tensor kept_buffer(const Tensor& before, const Tensor& now, double momentum);

}  // namespace clnet::optim
