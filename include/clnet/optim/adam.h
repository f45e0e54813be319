// Optimizers with moving averages of the gradient and its square: Adam and its relatives.
#pragma once

#include <memory>

#include "clnet/export.h"
#include "clnet/optim/optimizer.h"

namespace clnet::optim {

// `weight_decay` is added to the gradient, or shrinks the parameter where it is decoupled. sgd.h documents all other shared
// options.

/// Adam (Kingma and Ba 2014), as torch.optim.Adam.
struct AdamOptions {
  double learning_rate = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double weight_decay = 0;  ///< joins the gradient
  bool amsgrad = false;     ///< divides by the largest mean square so far (Reddi, Kale and Kumar 2018)
  bool maximize = false;
  double clip_norm = 0, clip_value = 0;
};
class CLNET_API Adam : public WithOptions<Adam, AdamOptions> {
 public:
  explicit Adam(const Parameters& parameters, const AdamOptions& options = {}) : WithOptions(parameters, options) {}
  Adam(const Parameters& parameters, detail::Arithmetic auto learning_rate, const AdamOptions& options = {})
      : WithOptions(parameters, with_rate(options, learning_rate)) {}
  static std::shared_ptr<const Rule> rule(const AdamOptions& options);
};
/// Adam with decoupled weight decay (Loshchilov and Hutter 2017), as torch.optim.AdamW.
struct AdamWOptions {
  double learning_rate = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double weight_decay = 0.01;  ///< shrinks the parameter
  bool amsgrad = false, maximize = false;
  double clip_norm = 0, clip_value = 0;
};
class CLNET_API AdamW : public WithOptions<AdamW, AdamWOptions> {
 public:
  explicit AdamW(const Parameters& parameters, const AdamWOptions& options = {}) : WithOptions(parameters, options) {}
  AdamW(const Parameters& parameters, detail::Arithmetic auto learning_rate, const AdamWOptions& options = {})
      : WithOptions(parameters, with_rate(options, learning_rate)) {}
  static std::shared_ptr<const Rule> rule(const AdamWOptions& options);
};

/// Adam with Nesterov's momentum (Dozat 2016).
struct NAdamOptions {
  double learning_rate = 2e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double weight_decay = 0;
  double momentum_decay = 4e-3;
  bool decoupled = false;
  bool maximize = false;
  double clip_norm = 0, clip_value = 0;
};
class CLNET_API NAdam : public WithOptions<NAdam, NAdamOptions> {
 public:
  explicit NAdam(const Parameters& parameters, const NAdamOptions& options = {}) : WithOptions(parameters, options) {}
  NAdam(const Parameters& parameters, detail::Arithmetic auto learning_rate, const NAdamOptions& options = {})
      : WithOptions(parameters, with_rate(options, learning_rate)) {}
  static std::shared_ptr<const Rule> rule(const NAdamOptions& options);
};

/// Adam that divides by the mean square only once enough steps make it reliable (Liu and others 2019).
struct RAdamOptions {
  double learning_rate = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double weight_decay = 0;
  bool decoupled = false;
  bool maximize = false;
  double clip_norm = 0, clip_value = 0;
};
class CLNET_API RAdam : public WithOptions<RAdam, RAdamOptions> {
 public:
  explicit RAdam(const Parameters& parameters, const RAdamOptions& options = {}) : WithOptions(parameters, options) {}
  RAdam(const Parameters& parameters, detail::Arithmetic auto learning_rate, const RAdamOptions& options = {})
      : WithOptions(parameters, with_rate(options, learning_rate)) {}
  static std::shared_ptr<const Rule> rule(const RAdamOptions& options);
};

/// Adam with the largest gradient instead of the mean square (Kingma and Ba 2014).
struct AdamaxOptions {
  double learning_rate = 2e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double weight_decay = 0;
  bool maximize = false;
  double clip_norm = 0, clip_value = 0;
};
class CLNET_API Adamax : public WithOptions<Adamax, AdamaxOptions> {
 public:
  explicit Adamax(const Parameters& parameters, const AdamaxOptions& options = {}) : WithOptions(parameters, options) {}
  Adamax(const Parameters& parameters, detail::Arithmetic auto learning_rate, const AdamaxOptions& options = {})
      : WithOptions(parameters, with_rate(options, learning_rate)) {}
  static std::shared_ptr<const Rule> rule(const AdamaxOptions& options);
};

/// AdamW with a rate per parameter, in proportion to its norm (You and others 2020). The step is scaled by |p| / |step|, or not
/// at all where one of the norms is 0.
struct LAMBOptions {
  double learning_rate = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-6;
  double weight_decay = 0;  ///< added to the step
  bool maximize = false;
  double clip_norm = 0, clip_value = 0;
};
class CLNET_API LAMB : public WithOptions<LAMB, LAMBOptions> {
 public:
  explicit LAMB(const Parameters& parameters, const LAMBOptions& options = {}) : WithOptions(parameters, options) {}
  LAMB(const Parameters& parameters, detail::Arithmetic auto learning_rate, const LAMBOptions& options = {})
      : WithOptions(parameters, with_rate(options, learning_rate)) {}
  static std::shared_ptr<const Rule> rule(const LAMBOptions& options);
};

/// Steps by the sign of a momentum (Chen and others 2023).
struct LionOptions {
  double learning_rate = 1e-4, beta1 = 0.9, beta2 = 0.99;
  double weight_decay = 0;  ///< shrinks the parameter
  bool maximize = false;
  double clip_norm = 0, clip_value = 0;
};
class CLNET_API Lion : public WithOptions<Lion, LionOptions> {
 public:
  explicit Lion(const Parameters& parameters, const LionOptions& options = {}) : WithOptions(parameters, options) {}
  Lion(const Parameters& parameters, detail::Arithmetic auto learning_rate, const LionOptions& options = {})
      : WithOptions(parameters, with_rate(options, learning_rate)) {}
  static std::shared_ptr<const Rule> rule(const LionOptions& options);
};

}  // namespace clnet::optim
