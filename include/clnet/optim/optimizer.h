// Optimizer steps: gradients, groups of parameters, accumulation, checkpoints.
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

namespace clnet::dist {
class Group;
}

namespace clnet::optim {

/// The parameters to optimize: all of a module, those with wanted names, or any list.
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

/// A handle to an optimizer of one or several groups of parameters; copies share it. SGD, Adam and the others derive from it;
/// with a Rule it runs a user's formula. Constructors throw Error without parameters or for a parameter given twice, DtypeError
/// for one that is not floating.
class CLNET_API Optimizer {
 public:
  /// No optimizer: only assignment and the test for it are allowed.
  Optimizer() = default;
  Optimizer(const Parameters& parameters, std::shared_ptr<const Rule> rule, double learning_rate, const Clipping& clipping = {});
  explicit operator bool() const { return impl_ != nullptr; }

  /// Adds a group with its own rule and rate. Throws Error for a parameter that is in the optimizer already, under any name, for
  /// a name that is taken, and within a step of this optimizer.
  void add_group(const Parameters& parameters, std::shared_ptr<const Rule> rule, double learning_rate);

  /// One step down the gradient of `loss` (one element). It enqueues the loss, the new parameters, updates of running statistics
  /// and `more` results together, and returns at once. Returns the loss as a leaf.
  ///
  /// The gradient is taken at the values that the loss was built with and applied to the present ones. So several losses may be
  /// built first and stepped one after the other. Throws Error where the loss reaches none of the optimizer's parameters, or one
  /// of them at two values: detach() the part with the other value. After any exception nothing has changed, and the same step
  /// may be tried again.
  ///
  /// Frozen parameters and those that the loss does not reach stay unchanged, with their states: no momentum, no weight decay.
  /// Bias corrections, as Adam's, count the steps that a parameter has made.
  Tensor step(const Tensor& loss, std::span<const Tensor> more = {});
  Tensor step(const Tensor& loss, std::initializer_list<Tensor> more);

  /// Adds the gradient of `loss` to f32 sums, for a batch in several parts. The next step(), with or without another loss, uses
  /// and clears them. As in PyTorch these are sums: divide the losses by their number for a mean. Clipping applies to the sum. A
  /// checkpoint contains the sums. Returns the loss, and throws, as step(loss).
  Tensor accumulate(const Tensor& loss, std::span<const Tensor> more = {});
  Tensor accumulate(const Tensor& loss, std::initializer_list<Tensor> more);
  /// One step with the accumulated gradients. Throws Error where there are none.
  void step();

  /// One step with given gradients, in the order of groups and parameters; those of frozen ones may be undefined. Sums of
  /// accumulate() remain. Throws Error for another number of gradients, ShapeError or DtypeError where one does not fit.
  void apply(const std::vector<Tensor>& gradients);
  /// step(loss) for gradients that were computed elsewhere: with the sums of accumulate(), which it clears. Undefined ones are of
  /// parameters that the loss did not reach.
  void apply_with_sums(const std::vector<Tensor>& gradients);
  /// accumulate(loss), likewise. Both throw as apply() for gradients that do not fit.
  void add_to_sums(const std::vector<Tensor>& gradients);

  /// Replaces the gradients of later steps, of all groups in the order of parameters, before they are clipped: their sums over
  /// ranks, or gradients with noise. Undefined ones, of parameters that a step leaves alone, stay so. What the function adds to
  /// `more` is computed along. It sees the sums of accumulate() once, at the step that uses them, and nothing of apply(). An
  /// empty function ends it. Throws Error within a step of this optimizer.
  using GradientFunction = std::function<void(std::vector<Tensor>& gradients, std::vector<Tensor>& more)>;
  void set_gradient_function(GradientFunction function);

  /// Turns loss scaling on. Steps with a gradient that is not finite are skipped: parameters and states stay, and bias
  /// corrections do not count the step. The device decides, without a wait. Clipping and accumulate() see unscaled gradients;
  /// step() returns the unscaled loss; apply() takes unscaled gradients.
  void set_loss_scale(const LossScale& options = {});
  /// Turns loss scaling off, if it is on. Waits for the device, to learn the number of applied steps: bias corrections continue
  /// from it, while steps() counts skipped ones, too. After another set_loss_scale(), steps_made() begins with steps().
  void remove_loss_scale();
  /// The present scale (f32 scalar) and the number of applied steps (i64 scalar), on the device. Undefined without a loss scale.
  Tensor loss_scale() const;
  Tensor steps_made() const;

  /// From now on each rank keeps the states of its part of the parameters alone: whole parameters, dealt out by the bytes of
  /// their states. A rank computes the new values of its own part, and sends them to the others. All ranks call it, with
  /// optimizers of equal parameters, options, states and gradients, then make each step together, and call state_dict() together.
  /// Values are those without it, to the bit, unless update_all() of a Rule of the caller's own lets parameters change one
  /// another. A group of one rank changes nothing, nor does a second call with the same group. Throws Error for another group,
  /// and within a step.
  void shard(const dist::Group& group);
  /// The ranks that states are dealt out to; 1: it is not sharded.
  int shards() const;
  /// The bytes of the states that this rank keeps, without sums of accumulate().
  std::int64_t state_bytes() const;

  /// Clips the gradients of later steps, of all groups together, also in fit(). Throws Error for bounds out of range.
  void set_clipping(const Clipping& clipping);
  const Clipping& clipping() const;

  double learning_rate() const { return learning_rate(0); }
  double learning_rate(std::size_t group) const;
  /// Sets the first group's rate. The other groups' rates keep their original proportion to it, so that one schedule serves all;
  /// a first rate of 0 at construction means equal rates.
  void set_learning_rate(double rate);
  /// Sets one group's rate, and so its proportion to the first group. A first rate of 0 leaves the proportion unchanged.
  void set_group_learning_rate(std::size_t group, double rate);
  /// The momentum of the next step: the last one set, else the rule's (Rule::momentum()); std::nullopt where the rule has none.
  std::optional<double> momentum(std::size_t group = 0) const;
  /// Sets the momentum of all groups that have one, for schedules. SGD, RMSprop, LARS and Muon have a momentum (SGD and RMSprop
  /// only if made with one); Adam and its relatives have beta1. It is passed by value: a new one compiles no new plan.
  ///
  /// As in PyTorch, bias corrections treat it as if it had been constant, except NAdam's. 0 leaves the sums of SGD, RMSprop and
  /// LARS unchanged, also as in PyTorch. Throws Error for a momentum outside of [0, 1), and where no group has one.
  void set_momentum(double momentum);
  /// Sets one group's momentum, until the next set_momentum(). Throws Error where it has none.
  void set_group_momentum(std::size_t group, double momentum);
  std::size_t groups() const;
  /// The number of steps so far, for schedules. With a loss scale it includes skipped steps, as only the device knows them.
  std::int64_t steps() const;
  /// All parameters, group by group.
  nn::NamedParameters parameters() const;
  /// Copies the states of all parameters to a device; call the module's own to(device) first. An exception changes none.
  void to(const Device& device);
  /// Whether all parameters belong to this module or a copy that shares them, under any names.
  bool made_for(const nn::Module& module) const;

  /// The state for checkpoints. "<parameter>.<what>" has momentum and the like, with PyTorch's names; "<parameter>.grad" has sums
  /// of accumulate(). "step" (i64) is the step count, "<parameter>.step" that of a parameter with fewer steps. Groups have
  /// "learning_rate.<group>", "initial_rate.<group>" and, where set, "momentum.<group>". A loss scale has "loss_scale",
  /// "loss_scale_good" and "loss_scale_made". Sharded: rank 0 gets all states, in host memory, and the others those that they
  /// keep.
  io::StateDict state_dict() const;
  /// Restores a state_dict(). Rates come from the state where it has them; a missing momentum is the rule's own. Sharded: each
  /// rank takes what it keeps of a whole state. Throws Error with the entries that are missing or do not fit; nothing is changed
  /// then.
  void load_state_dict(const io::StateDict& state);

 protected:
  void require_same_clipping(const Clipping& clipping) const;

 private:
  struct Impl;
  void require_made(std::string_view call) const;

  std::shared_ptr<Impl> impl_;
};

namespace detail {
/// A number. {} is excluded: it means options.
template <class T>
concept Arithmetic = std::is_arithmetic_v<T>;
}  // namespace detail

/// A built-in optimizer, with options for each group. A group's clipping must be the first group's or none: clipping applies to
/// all gradients together (Error otherwise).
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
