// Optimizers that divide by a statistic of the gradient's squares.
#pragma once

#include <memory>
#include <optional>

#include "clnet/export.h"
#include "clnet/optim/optimizer.h"

namespace clnet::optim {

// sgd.h documents the shared options.

/// RMSprop (Hinton 2012), as torch.optim.RMSprop.
struct RMSpropOptions {
  double learning_rate = 1e-2, alpha = 0.99, eps = 1e-8;
  double weight_decay = 0, momentum = 0;
  bool centered = false;  ///< divides by the standard deviation instead of the root mean square
  bool maximize = false;
  double clip_norm = 0, clip_value = 0;
};
class CLNET_API RMSprop : public WithOptions<RMSprop, RMSpropOptions> {
 public:
  explicit RMSprop(const Parameters& parameters, const RMSpropOptions& options = {}) : WithOptions(parameters, options) {}
  RMSprop(const Parameters& parameters, detail::Arithmetic auto learning_rate, const RMSpropOptions& options = {})
      : WithOptions(parameters, with_rate(options, learning_rate)) {}
  static std::shared_ptr<const Rule> rule(const RMSpropOptions& options);
};

/// Adagrad (Duchi, Hazan and Singer 2011), as torch.optim.Adagrad.
struct AdagradOptions {
  double learning_rate = 1e-2, lr_decay = 0, weight_decay = 0, initial_accumulator_value = 0, eps = 1e-10;
  bool maximize = false;
  double clip_norm = 0, clip_value = 0;
};
class CLNET_API Adagrad : public WithOptions<Adagrad, AdagradOptions> {
 public:
  explicit Adagrad(const Parameters& parameters, const AdagradOptions& options = {}) : WithOptions(parameters, options) {}
  Adagrad(const Parameters& parameters, detail::Arithmetic auto learning_rate, const AdagradOptions& options = {})
      : WithOptions(parameters, with_rate(options, learning_rate)) {}
  static std::shared_ptr<const Rule> rule(const AdagradOptions& options);
};

/// Adadelta (Zeiler 2012), as torch.optim.Adadelta.
struct AdadeltaOptions {
  double learning_rate = 1, rho = 0.9, eps = 1e-6;
  double weight_decay = 0;
  bool maximize = false;
  double clip_norm = 0, clip_value = 0;
};
class CLNET_API Adadelta : public WithOptions<Adadelta, AdadeltaOptions> {
 public:
  explicit Adadelta(const Parameters& parameters, const AdadeltaOptions& options = {}) : WithOptions(parameters, options) {}
  Adadelta(const Parameters& parameters, detail::Arithmetic auto learning_rate, const AdadeltaOptions& options = {})
      : WithOptions(parameters, with_rate(options, learning_rate)) {}
  static std::shared_ptr<const Rule> rule(const AdadeltaOptions& options);
};

/// Adafactor (Shazeer and Stern 2018), as torch.optim.Adafactor. A parameter of two or more dimensions keeps its mean squares as
/// row and column statistics.
struct AdafactorOptions {
  double learning_rate = 1e-2, beta2_decay = -0.8;
  std::optional<double> eps1 = std::nullopt;  ///< the least root mean square; std::nullopt: f32's epsilon
  double eps2 = 1e-3;                         ///< the least scale of a parameter
  double d = 1;                               ///< the largest root mean square of a step
  double weight_decay = 0;                    ///< shrinks the parameter
  bool maximize = false;
  double clip_norm = 0, clip_value = 0;
};
class CLNET_API Adafactor : public WithOptions<Adafactor, AdafactorOptions> {
 public:
  explicit Adafactor(const Parameters& parameters, const AdafactorOptions& options = {}) : WithOptions(parameters, options) {}
  Adafactor(const Parameters& parameters, detail::Arithmetic auto learning_rate, const AdafactorOptions& options = {})
      : WithOptions(parameters, with_rate(options, learning_rate)) {}
  static std::shared_ptr<const Rule> rule(const AdafactorOptions& options);
};

}  // namespace clnet::optim
