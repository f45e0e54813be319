// Optimizers with PyTorch's formulas, and learning-rate schedules.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "clnet/export.h"
#include "clnet/io.h"
#include "clnet/nn.h"
#include "clnet/tensor.h"

namespace clnet::optim {

/// A handle to an optimizer of one module's parameters; copies share it. Make one of the classes below.
class CLNET_API Optimizer {
 public:
  /// No optimizer; only assigning and testing are allowed.
  Optimizer() = default;
  explicit operator bool() const { return impl_ != nullptr; }

  /// One step down the gradient of `loss` (one element): the loss, the new parameters and what the loss does to running
  /// statistics are enqueued together, without waiting. Returns the loss, computed along the way and free of its history.
  ///
  /// The gradient is taken at the values that the loss was built with and applied to the present ones, so several losses may be
  /// built first and stepped one after the other. Throws Error when the loss reaches none of the optimizer's parameters, or one
  /// of them at two values, a present and an older one or two older ones: detach() what was computed with the other value.
  /// Whatever it throws, nothing has changed, and the same step may be tried again.
  ///
  /// Parameters that the loss does not reach stay untouched, and so does what the optimizer keeps of them: no momentum, no weight
  /// decay. Adam's correction for the first steps counts the optimizer's steps, those in which a parameter stayed among them.
  Tensor step(const Tensor& loss);
  /// The same with given gradients, in the order of Module::parameters().
  void apply(const std::vector<Tensor>& gradients);

  double learning_rate() const;
  void set_learning_rate(double rate);
  /// Steps made so far.
  std::int64_t steps() const;
  /// Whether it was made for this module (or a copy, which shares its parameters).
  bool made_for(const nn::Module& module) const;

  /// Momentum and the like under "<parameter>.<what>", and the step count as "step" (i64): for checkpoints.
  io::StateDict state() const;
  /// Throws Error naming what is missing or does not fit; nothing is changed then.
  void load_state(const io::StateDict& state);

  /// One algorithm; the library's own are made by the constructors below.
  struct Impl;

 protected:
  explicit Optimizer(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

 private:
  void require_made(std::string_view call) const;

  std::shared_ptr<Impl> impl_;
};

struct SGDOptions {
  double learning_rate = 1e-3, momentum = 0;
  bool nesterov = false;
  double weight_decay = 0;
  double clip_norm = 0;  ///< gradients are scaled down together to at most this norm; 0: never
};
class CLNET_API SGD : public Optimizer {
 public:
  SGD(const nn::Module& module, const SGDOptions& options);
};

struct AdamOptions {
  double learning_rate = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double weight_decay = 0;  ///< Adam adds it to the gradient, AdamW shrinks the parameter
  double clip_norm = 0;
};
class CLNET_API Adam : public Optimizer {
 public:
  explicit Adam(const nn::Module& module, const AdamOptions& options = {});
};
/// PyTorch's default weight decay of AdamW is 0.01; here it is what the options say.
class CLNET_API AdamW : public Optimizer {
 public:
  explicit AdamW(const nn::Module& module, const AdamOptions& options = {.weight_decay = 0.01});
};

struct RMSpropOptions {
  double learning_rate = 1e-2, alpha = 0.99, eps = 1e-8, momentum = 0;
  double weight_decay = 0;
  double clip_norm = 0;
};
class CLNET_API RMSprop : public Optimizer {
 public:
  explicit RMSprop(const nn::Module& module, const RMSpropOptions& options = {});
};

/// The learning rate of a step, counted from 0.
using Schedule = std::function<double(std::int64_t step)>;

CLNET_API Schedule constant(double rate);
/// Multiplied by gamma every `every` steps.
CLNET_API Schedule step_decay(double rate, std::int64_t every, double gamma = 0.1);
/// Half a cosine from `rate` to `final_rate` over `total` steps.
CLNET_API Schedule cosine(double rate, std::int64_t total, double final_rate = 0);
struct OneCycleOptions {
  double warmup_share = 0.3;         ///< of the steps, rising from max / div to max
  double div = 25, final_div = 1e4;  ///< the end is max / div / final_div
};
/// Smith and Topin 2018, with cosine annealing both ways, as PyTorch's OneCycleLR (learning rate only).
CLNET_API Schedule one_cycle(double max_rate, std::int64_t total, const OneCycleOptions& options = {});
/// Rises in equal parts over the first `steps` steps to what `after` says at their end, then is `after`, counted from the same 0.
CLNET_API Schedule warm_up(std::int64_t steps, Schedule after);

/// The gradients scaled down together so that their joint norm is at most `max_norm` (PyTorch's clip_grad_norm_).
CLNET_API std::vector<Tensor> clip_by_norm(const std::vector<Tensor>& gradients, double max_norm);

}  // namespace clnet::optim
