// Optimizers by name.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "clnet/export.h"
#include "clnet/optim/optimizer.h"

namespace clnet::optim {

/// The names that rule() and make() take: sgd, asgd, rprop, lars, muon, adam, adamw, nadam, radam, adamax, lamb, lion, rmsprop,
/// adagrad, adadelta, adafactor. (LBFGS is not one of them: it asks for losses while it steps.)
CLNET_API std::vector<std::string> names();

/// What is not given is as in the optimizer's own options.
struct NamedOptions {
  std::optional<double> learning_rate = std::nullopt;
  std::optional<double> momentum = std::nullopt;  ///< of sgd, lars, muon and rmsprop
  bool nesterov = false;                          ///< of sgd and lars; muon's momentum is Nesterov's
  std::optional<double> weight_decay = std::nullopt;
  double clip_norm = 0, clip_value = 0;
  std::optional<double> beta1 = std::nullopt, beta2 = std::nullopt;  ///< of adam and its kin
  std::optional<double> eps = std::nullopt;                          ///< of those that divide
  std::optional<double> alpha = std::nullopt;                        ///< of rmsprop and asgd
  std::optional<double> rho = std::nullopt;                          ///< of adadelta
  std::optional<double> dampening = std::nullopt;                    ///< of sgd
  std::optional<double> lr_decay = std::nullopt;                     ///< of adagrad
  bool amsgrad = false;                                              ///< of adam and adamw
  bool centered = false;                                             ///< of rmsprop
  bool maximize = false;                                             ///< of all but muon
};
/// The formula alone. Throws Error for an unknown name, an option that the optimizer does not have, and one without sense.
CLNET_API std::shared_ptr<const Rule> rule(std::string_view name, const NamedOptions& options = {});
/// The optimizer. muon gets the matrices; all other parameters are a second group with adamw's formula, to whose rates
/// MuonOptions::match_adam fits the matrices'.
CLNET_API Optimizer make(std::string_view name, const Parameters& parameters, const NamedOptions& options = {});

}  // namespace clnet::optim
