// Steps of optimizers: gradients, groups of parameters, partial sums, checkpoints.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "clnet/export.h"
#include "clnet/io.h"
#include "clnet/nn/module.h"
#include "clnet/nn/parameter.h"
#include "clnet/optim/clip.h"
#include "clnet/optim/loss_scale.h"
#include "clnet/optim/rule.h"
#include "clnet/tensor.h"

namespace clnet::optim {

/// What is to be optimized: a module's parameters, those whose names are wanted, or any list.
class CLNET_API Parameters {
 public:
  Parameters(const nn::Module& module);  // NOLINT(google-explicit-constructor)
  template <std::derived_from<nn::Module> M>
  Parameters(const M& module) : Parameters(static_cast<const nn::Module&>(module)) {  // NOLINT(google-explicit-constructor)
    nn::detail::require_forward<M>();
  }
  Parameters(nn::NamedParameters parameters);  // NOLINT(google-explicit-constructor)
  Parameters(const nn::Module& module, const std::function<bool(const std::string& name)>& wanted);
  const nn::NamedParameters& list() const { return list_; }

 private:
  nn::NamedParameters list_;
};

/// A handle to an optimizer of one or several groups of parameters; copies share it. SGD, Adam and the others are made with
/// options; this one with anybody's rule.
class CLNET_API Optimizer {
 public:
  /// No optimizer; only assigning and testing are allowed.
  Optimizer() = default;
  Optimizer(const Parameters& parameters, std::shared_ptr<const Rule> rule, double learning_rate, const Clipping& clipping = {});
  explicit operator bool() const { return impl_ != nullptr; }

  /// More parameters, with a rule and rate of their own. Throws Error for one that is there already, under any name, and for a
  /// name that is taken.
  void add_group(const Parameters& parameters, std::shared_ptr<const Rule> rule, double learning_rate);

  /// One step down the gradient of `loss` (one element): the loss, the new parameters and what the loss does to running
  /// statistics are enqueued together with `more` results, without waiting. Returns the loss, computed along the way and free of
  /// its history.
  ///
  /// The gradient is taken at the values that the loss was built with and applied to the present ones, so several losses may be
  /// built first and stepped one after the other. Throws Error when the loss reaches none of the optimizer's parameters, or one
  /// of them at two values, a present and an older one or two older ones: detach() what was computed with the other value.
  /// Whatever it throws, nothing has changed, and the same step may be tried again.
  ///
  /// Parameters that the loss does not reach and frozen ones stay untouched, and so does what the optimizer keeps of them: no
  /// momentum, no weight decay. Corrections for the first steps, as Adam's, count the steps that a parameter has made.
  Tensor step(const Tensor& loss, std::span<const Tensor> more = {});
  Tensor step(const Tensor& loss, std::initializer_list<Tensor> more);

  /// Adds the gradient of `loss` to sums (f32) that the next step() takes, with or without another loss, and clears: a batch in
  /// several parts. As in PyTorch a sum, so divide the losses by their number for a mean. Clipping is of the sum. A checkpoint
  /// holds the sums. Returns the loss, and throws, as step(loss).
  Tensor accumulate(const Tensor& loss, std::span<const Tensor> more = {});
  Tensor accumulate(const Tensor& loss, std::initializer_list<Tensor> more);
  /// One step down what was accumulated; Error when that is nothing.
  void step();

  /// A step with given gradients, in the order of the groups and their parameters; those of frozen ones may be undefined. Sums of
  /// accumulate() stay for another step.
  void apply(const std::vector<Tensor>& gradients);

  /// From now on losses are scaled and steps with a gradient that is no finite number are skipped: parameters and what is kept of
  /// them stay as they are, and corrections for the first steps do not count it. All that is decided on the device, without
  /// waiting. Clipping and accumulate() see gradients of the loss itself, which step() returns unscaled, as apply() takes them.
  void set_loss_scale(const LossScale& options = {});
  /// From now on there is none, and every step is made. Waits for the device, to know how many were: corrections go on counting
  /// those, steps() what was tried. Nothing where there is none. After another set_loss_scale(), steps_made() begins with
  /// steps().
  void remove_loss_scale();
  /// The present scale (f32 scalar) and the number of steps made, without those that were skipped (i64 scalar), on the device;
  /// undefined without a loss scale.
  Tensor loss_scale() const;
  Tensor steps_made() const;

  /// What is done to the gradients of later steps, of all groups together: fit()'s, too. Throws Error for bounds without sense.
  void set_clipping(const Clipping& clipping);
  const Clipping& clipping() const;

  double learning_rate() const { return learning_rate(0); }
  double learning_rate(std::size_t group) const;
  /// The first group's; those of the others keep the proportions of the rates with which they were made (the same rate where the
  /// first one was made with 0), so that one schedule serves all.
  void set_learning_rate(double rate);
  /// One group's alone, and with it its proportion to the first, where that can be told: not from a first rate of 0.
  void set_group_learning_rate(std::size_t group, double rate);
  /// The momentum of the next step: what was set, else the rule's own (Rule::momentum()); none where it has no such number.
  std::optional<double> momentum(std::size_t group = 0) const;
  /// From now on that of all groups that have one, as a schedule says: the momentum of SGD, RMSprop, LARS and Muon (of SGD and
  /// RMSprop where they were made with one) and beta1 of Adam and its kin. Passed by value: another one makes no new plan.
  /// As in PyTorch, corrections for the first steps take it as if it had been so from the start (NAdam's know better), and one of
  /// 0 leaves the sums of SGD, RMSprop and LARS as they are. Throws Error for one outside of [0, 1), and where no group has any.
  void set_momentum(double momentum);
  /// One group's alone, until the next set_momentum(). Throws Error where it has none.
  void set_group_momentum(std::size_t group, double momentum);
  std::size_t groups() const;
  /// Steps so far, for schedules; under a loss scale the host does not know which were skipped, and counts them.
  std::int64_t steps() const;
  /// All that it optimizes, groups one after the other.
  nn::NamedParameters parameters() const;
  /// Copies what it keeps of parameters to a device: after the module's own to(device).
  void to(const Device& device);
  /// Whether all its parameters are this module's (or a copy's, which shares them), under whatever names.
  bool made_for(const nn::Module& module) const;

  /// Momentum and the like under "<parameter>.<what>" with PyTorch's names, sums of accumulate() under "<parameter>.grad", the
  /// step count as "step" (i64) and that of parameters that made fewer as "<parameter>.step", the groups' rates as
  /// "learning_rate.<group>" and "initial_rate.<group>", momenta that were set as "momentum.<group>", and a loss scale as
  /// "loss_scale", "loss_scale_good" and "loss_scale_made": for checkpoints.
  io::StateDict state_dict() const;
  /// Throws Error naming what is missing or does not fit; nothing is changed then. Rates come from the state where it has them,
  /// momenta that it does not have are the rules' own.
  void load_state_dict(const io::StateDict& state);

 protected:
  void require_same_clipping(const Clipping& clipping) const;

 private:
  struct Impl;
  void require_made(std::string_view call) const;

  std::shared_ptr<Impl> impl_;
};

namespace detail {
/// A number, and no {}: those are options.
template <class T>
concept Arithmetic = std::is_arithmetic_v<T>;
}  // namespace detail

/// An optimizer of the library's own, with options for each group. A group's clipping must be the first one's or none: it is of
/// all gradients together.
template <class Self, class Options>
class WithOptions : public Optimizer {
 public:
  using Optimizer::add_group;
  void add_group(const Parameters& parameters, const Options& options) {
    require_same_clipping({options.clip_norm, options.clip_value});
    Optimizer::add_group(parameters, Self::rule(options), options.learning_rate);
  }

 protected:
  static Options with_rate(Options options, detail::Arithmetic auto learning_rate) {
    options.learning_rate = static_cast<double>(learning_rate);
    return options;
  }
  WithOptions(const Parameters& parameters, const Options& options)
      : Optimizer(parameters, Self::rule(options), options.learning_rate, {options.clip_norm, options.clip_value}) {}
};

}  // namespace clnet::optim
