// The update rule of an optimizer, for one parameter: the part that users write.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "clnet/export.h"
#include "clnet/shape.h"
#include "clnet/tensor.h"

namespace clnet::optim {

/// An optimizer's formula: its states per parameter, and the new parameter and states from the gradient. An Optimizer adds
/// gradients, evaluation and checkpoints.
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
/// A step is graph like any other: an elementwise formula becomes one kernel per parameter, and small parameters share one.
/// Numbers beside tensors (`g * 0.9`) are passed by value, so that a new rate compiles no new plan; arguments of functions
/// (clamp()'s bounds) are part of the plan.
class CLNET_API Rule {
 public:
  virtual ~Rule();

  /// The name for error texts.
  virtual std::string name() const = 0;

  /// The rule's momentum (for Adam: beta1), where Optimizer::set_momentum() may change it: see Step::momentum. std::nullopt by
  /// default.
  virtual std::optional<double> momentum() const;

  struct State {
    std::string name;                           ///< without dots; the checkpoint's name is "<parameter>.<name>"
    double initial = 0;                         ///< initial value of all elements
    std::optional<Shape> shape = std::nullopt;  ///< default: the parameter's
  };
  /// The f32 states for a parameter of this shape. Throws Error for a parameter that the rule does not support.
  virtual std::vector<State> states(const Shape& parameter) const;

  /// Facts about a step.
  struct Step {
    std::int64_t number = 1;                        ///< from 1; includes steps that a loss scale skips
    double rate = 0;                                ///< the group's learning rate
    std::optional<double> momentum = std::nullopt;  ///< the group's, where set; otherwise use the rule's own
    /// Defined with a loss scale only. `made`: the number of applied steps, from 1 (f32 scalar). `finite`: whether this step will
    /// be applied (bool scalar). The results of a skipped step are dropped. Bias corrections use `made`.
    Tensor made = {}, finite = {};
  };
  struct Result {
    Tensor parameter;
    std::vector<Tensor> states;  ///< as many as given, with the same specs
  };
  /// The new value of a parameter and its new states. All tensors are f32, for any dtype of the parameter.
  virtual Result update(const Tensor& parameter, const Tensor& gradient, const std::vector<Tensor>& states,
                        const Step& step) const = 0;

  struct Item {
    Tensor parameter, gradient;  ///< as stored: f32, f16 or bf16
    std::vector<Tensor> states;
  };
  /// update() for all parameters of a step, to share work between them. The default calls update() for each parameter with
  /// elements.
  virtual std::vector<Result> update_all(const std::vector<Item>& items, const Step& step) const;
};

}  // namespace clnet::optim
