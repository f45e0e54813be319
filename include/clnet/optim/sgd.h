// Optimizers that follow the gradient itself, its sign or its direction.
#pragma once

#include <memory>

#include "clnet/export.h"
#include "clnet/optim/optimizer.h"

namespace clnet::optim {

// All options: `weight_decay` joins the gradient unless said otherwise, `maximize` climbs instead of going down, `clip_norm` and
// `clip_value` are Clipping's. A learning rate that stands before the options counts. Bad ones are an Error naming optimizer,
// option and value.

struct SGDOptions {
  double learning_rate = 1e-3, momentum = 0;
  double dampening = 0;  ///< the momentum takes 1 - dampening of the gradient, all of it in the optimizer's first step
  double weight_decay = 0;
  bool nesterov = false;
  bool maximize = false;
  double clip_norm = 0;  ///< gradients are scaled down together to at most this norm; 0: never
  double clip_value = 0;
};
class CLNET_API SGD : public WithOptions<SGD, SGDOptions> {
 public:
  SGD(const Parameters& parameters, const SGDOptions& options) : WithOptions(parameters, options) {}
  SGD(const Parameters& parameters, detail::Arithmetic auto learning_rate, const SGDOptions& options = {})
      : WithOptions(parameters, with_rate(options, learning_rate)) {}
  static std::shared_ptr<const Rule> rule(const SGDOptions& options);
};

/// Averaged stochastic gradient descent (Polyak and Juditsky 1992); "ax" in state_dict() is the average. A learning rate that is
/// set counts from the next step on, as in all optimizers; torch.optim.ASGD takes it a step later.
struct ASGDOptions {
  double learning_rate = 1e-2, lambda = 1e-4, alpha = 0.75, t0 = 1e6;
  double weight_decay = 0;
  bool maximize = false;
  double clip_norm = 0, clip_value = 0;
};
class CLNET_API ASGD : public WithOptions<ASGD, ASGDOptions> {
 public:
  explicit ASGD(const Parameters& parameters, const ASGDOptions& options = {}) : WithOptions(parameters, options) {}
  ASGD(const Parameters& parameters, detail::Arithmetic auto learning_rate, const ASGDOptions& options = {})
      : WithOptions(parameters, with_rate(options, learning_rate)) {}
  static std::shared_ptr<const Rule> rule(const ASGDOptions& options);
};

/// Step sizes of each element that grow while its gradient keeps its sign (Riedmiller and Braun 1993). The learning rate is the
/// first step size, and setting it later changes nothing.
struct RpropOptions {
  double learning_rate = 1e-2;
  double shrink = 0.5, grow = 1.2;
  double min_step = 1e-6, max_step = 50;
  bool maximize = false;
  double clip_norm = 0, clip_value = 0;
};
class CLNET_API Rprop : public WithOptions<Rprop, RpropOptions> {
 public:
  explicit Rprop(const Parameters& parameters, const RpropOptions& options = {}) : WithOptions(parameters, options) {}
  Rprop(const Parameters& parameters, detail::Arithmetic auto learning_rate, const RpropOptions& options = {})
      : WithOptions(parameters, with_rate(options, learning_rate)) {}
  static std::shared_ptr<const Rule> rule(const RpropOptions& options);
};

/// Momentum with a rate per parameter in proportion to its norm (You, Gitman and Ginsburg 2017): the gradient with weight decay
/// is scaled by trust |p| / (|g| + weight_decay |p| + eps), and not where one of the norms is 0.
struct LARSOptions {
  double learning_rate = 0.1, momentum = 0.9, trust = 1e-3, eps = 1e-8;
  double weight_decay = 0;
  bool nesterov = false, maximize = false;
  double clip_norm = 0, clip_value = 0;
};
class CLNET_API LARS : public WithOptions<LARS, LARSOptions> {
 public:
  explicit LARS(const Parameters& parameters, const LARSOptions& options = {}) : WithOptions(parameters, options) {}
  LARS(const Parameters& parameters, detail::Arithmetic auto learning_rate, const LARSOptions& options = {})
      : WithOptions(parameters, with_rate(options, learning_rate)) {}
  static std::shared_ptr<const Rule> rule(const LARSOptions& options);
};

/// Momentum made orthogonal (Jordan and others 2024, as torch.optim.Muon): for matrices, Error for parameters of another rank,
/// which want a group with another rule: `muon.add_group(rest, AdamW::rule(o), o.learning_rate)`. The iteration is in f32;
/// PyTorch's is in bf16, which alone makes single elements of a step differ by some hundredths of the largest.
struct MuonOptions {
  double learning_rate = 1e-3;
  double weight_decay = 0.1;  ///< shrinks the parameter
  double momentum = 0.95;
  bool nesterov = true;
  double a = 3.4445, b = -4.7750, c = 2.0315;  ///< of the Newton-Schulz iteration
  double eps = 1e-7;
  int iterations = 5;
  bool match_adam = false;  ///< the rate times 0.2 sqrt(max(rows, columns)) instead of sqrt(max(1, rows / columns))
  bool unclamped = false;   ///< the rate times sqrt(rows / columns), below 1, too
  double clip_norm = 0, clip_value = 0;
};
class CLNET_API Muon : public WithOptions<Muon, MuonOptions> {
 public:
  explicit Muon(const Parameters& parameters, const MuonOptions& options = {}) : WithOptions(parameters, options) {}
  Muon(const Parameters& parameters, detail::Arithmetic auto learning_rate, const MuonOptions& options = {})
      : WithOptions(parameters, with_rate(options, learning_rate)) {}
  static std::shared_ptr<const Rule> rule(const MuonOptions& options);
};

}  // namespace clnet::optim
