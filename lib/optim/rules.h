// What the library's own rules share.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "clnet/optim/rule.h"
#include "lib/ops/optimize/optimizer_update.h"
#include "lib/optim/number.h"
#include "lib/optim/options.h"

namespace clnet::optim {

/// A rule that is a row of ops::optimizer_update: several parameters per launch. It leaves everything as it is where a step is
/// not made.
class NativeRule : public Rule {
 public:
  struct Settings {
    std::string name;
    ops::UpdateRule rule;
    ops::UpdateConstants constants;
    std::optional<double> momentum;   ///< where the formula has one: Adam's beta1, too
    std::vector<std::string> states;  ///< PyTorch's names
    double shrink_decay = 0;          ///< AdamW's
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

/// A rule with a weight decay and a direction, made of tensors.
class ComposedRule : public Rule {
 public:
  enum class Decay : std::uint8_t { joins_gradient, shrinks };
  ComposedRule(std::string name, double decay, Decay how, bool maximize)
      : name_(std::move(name)), decay_(decay), how_(how), maximize_(maximize) {
    require_positive_or_zero(name_, "weight_decay", decay);
  }
  std::string name() const override { return name_; }

 protected:
  /// The gradient downhill, with the weight decay that joins it.
  Tensor slope(const Tensor& parameter, const Tensor& gradient) const;
  /// The parameter after the weight decay that shrinks it.
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
/// What is kept of a momentum's sum: in a step whose momentum is 0 the one before, as in PyTorch. Another momentum makes no new
/// plan.
Tensor kept_buffer(const Tensor& before, const Tensor& now, double momentum);

}  // namespace clnet::optim
