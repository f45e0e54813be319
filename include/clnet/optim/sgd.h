// Optimizers that follow the gradient itself, its sign or its direction.
#pragma once

#include <memory>

#include "clnet/export.h"
#include "clnet/optim/optimizer.h"

namespace clnet::optim {

// Shared options: `weight_decay` is added to the gradient unless a comment says otherwise, `maximize` climbs, `clip_norm` and
// `clip_value` are Clipping's. A learning rate before the options overrides theirs. Constructors throw Error with optimizer,
// option and value where one is out of range.

/// Stochastic gradient descent, as torch.optim.SGD.
struct SGDOptions {
  double learning_rate = 1e-3, momentum = 0;
  double dampening = 0;  ///< the momentum takes 1 - dampening of the gradient; all of it in the optimizer's first step
  double weight_decay = 0;
  bool nesterov = false;
  bool maximize = false;
  double clip_norm = 0;  ///< limit of the gradients' joint norm; 0: none
  double clip_value = 0;
};
class CLNET_API SGD : public WithOptions<SGD, SGDOptions> {
 public:
  SGD(const Parameters& parameters, const SGDOptions& options) : WithOptions(parameters, options) {}
  SGD(const Parameters& parameters, detail::Arithmetic auto learning_rate, const SGDOptions& options = {})
      : WithOptions(parameters, with_rate(options, learning_rate)) {}
  static std::shared_ptr<const Rule> rule(const SGDOptions& options);
};

/// Averaged stochastic gradient descent (Polyak and Juditsky 1992). "ax" in state_dict() is the average. A new learning rate
/// counts from the next step on, as in all optimizers; torch.optim.ASGD uses it a step later.
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

/// Step sizes per element, which grow while the gradient keeps its sign (Riedmiller and Braun 1993). The learning rate is the
/// first step size; a later one has no effect.
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

/// Momentum with a rate per parameter, in proportion to its norm (You, Gitman and Ginsburg 2017). The gradient with weight decay
/// is scaled by trust |p| / (|g| + weight_decay |p| + eps). Where one of the norms is 0 it is not scaled.
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

/// Orthogonalized momentum (Jordan and others 2024, as torch.optim.Muon), for matrices; Error for any other rank. Give other
/// parameters a group with another rule: `muon.add_group(rest, AdamW::rule(o), o.learning_rate)`. The iteration is in f32.
/// PyTorch's is in bf16, which makes single elements of a step differ by some hundredths of the largest.
struct MuonOptions {
  double learning_rate = 1e-3;
  double weight_decay = 0.1;  ///< shrinks the parameter
  double momentum = 0.95;
  bool nesterov = true;
  double a = 3.4445, b = -4.7750, c = 2.0315;  ///< coefficients of the Newton-Schulz iteration
  double eps = 1e-7;
  int iterations = 5;
  bool match_adam = false;  ///< rate factor 0.2 sqrt(max(rows, columns)) instead of sqrt(max(1, rows / columns))
  bool unclamped = false;   ///< rate factor sqrt(rows / columns), also below 1
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
