// What an optimizer does with one parameter: the part that users write.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "clnet/export.h"
#include "clnet/shape.h"
#include "clnet/tensor.h"

namespace clnet::optim {

/// An optimizer's formula: what it keeps per parameter, and what it makes of parameter, gradient and that. An Optimizer is made
/// of it and the parameters, and does the rest: gradients, evaluation, checkpoints.
///
///   struct Momentum : optim::Rule {
///     std::string name() const override { return "Momentum"; }
///     std::vector<State> states(const Shape&) const override { return {{"velocity"}}; }
///     Result update(const Tensor& p, const Tensor& g, const std::vector<Tensor>& states, const Step& step) const override {
///       const Tensor velocity = states[0] * 0.9 + g;
///       return {p - velocity * step.rate, {velocity}};
///     }
///   };
///   optim::Optimizer optimizer(model, std::make_shared<Momentum>(), 0.1);
///
/// A step is graph like any other: elementwise formulas become one kernel per parameter, small parameters share one. Numbers
/// beside tensors (`g * 0.9`) are passed by value, so that another rate makes no new plan; those of functions (clamp()'s bounds)
/// are part of it.
class CLNET_API Rule {
 public:
  virtual ~Rule();

  /// In errors.
  virtual std::string name() const = 0;

  /// The momentum that it was made with (Adam's beta1 is one, too), where Optimizer::set_momentum() may give another to steps:
  /// Step::momentum. By default none.
  virtual std::optional<double> momentum() const;

  struct State {
    std::string name;                           ///< without dots; in checkpoints "<parameter>.<name>"
    double initial = 0;                         ///< of all elements
    std::optional<Shape> shape = std::nullopt;  ///< the parameter's when not given
  };
  /// What it keeps of a parameter of that shape: f32 tensors. Throws Error for a parameter that it is not meant for.
  virtual std::vector<State> states(const Shape& parameter) const;

  /// What is known of a step.
  struct Step {
    std::int64_t number = 1;                        ///< from 1; under a loss scale it counts skipped steps, too
    double rate = 0;                                ///< the group's learning rate
    std::optional<double> momentum = std::nullopt;  ///< the group's, where one was set; else the rule's own counts
    /// Under a loss scale, and else undefined: the number of those steps that were made, from 1 (f32 scalar), and whether this
    /// one will be (bool scalar). What a rule makes of a step that is not made is dropped; corrections for the first steps count
    /// `made`.
    Tensor made = {}, finite = {};
  };
  struct Result {
    Tensor parameter;
    std::vector<Tensor> states;  ///< as many, of the same specs, as came
  };
  /// The new value of a parameter and its new states. All tensors are f32, whatever the parameter is stored as.
  virtual Result update(const Tensor& parameter, const Tensor& gradient, const std::vector<Tensor>& states,
                        const Step& step) const = 0;

  struct Item {
    Tensor parameter, gradient;  ///< as they are stored, f32, f16 or bf16
    std::vector<Tensor> states;
  };
  /// The same for all parameters that move in a step: for what they have in common. By default update() of each that has
  /// elements.
  virtual std::vector<Result> update_all(const std::vector<Item>& items, const Step& step) const;
};

}  // namespace clnet::optim
