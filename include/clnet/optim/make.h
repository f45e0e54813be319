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

/// The names for rule() and make(): sgd, asgd, rprop, lars, muon, adam, adamw, nadam, radam, adamax, lamb, lion, rmsprop,
/// adagrad, adadelta, adafactor. LBFGS is not among them: its step needs a function of the loss.
CLNET_API std::vector<std::string> names();

/// Options by name. Absent ones have the default of the optimizer's own options.
struct NamedOptions {
  std::optional<double> learning_rate = std::nullopt;
  std::optional<double> momentum = std::nullopt;  ///< for sgd, lars, muon and rmsprop
  bool nesterov = false;                          ///< for sgd and lars; muon always uses Nesterov's momentum
  std::optional<double> weight_decay = std::nullopt;
  double clip_norm = 0, clip_value = 0;
  std::optional<double> beta1 = std::nullopt, beta2 = std::nullopt;  ///< for adam and its relatives
  std::optional<double> eps = std::nullopt;                          ///< for optimizers that divide
  std::optional<double> alpha = std::nullopt;                        ///< for rmsprop and asgd
  std::optional<double> rho = std::nullopt;                          ///< for adadelta
  std::optional<double> dampening = std::nullopt;                    ///< for sgd
  std::optional<double> lr_decay = std::nullopt;                     ///< for adagrad
  bool amsgrad = false;                                              ///< for adam and adamw
  bool centered = false;                                             ///< for rmsprop
  bool maximize = false;                                             ///< for all but muon
};
/// The rule alone. Throws Error for an unknown name, an option that the optimizer lacks, and a value out of range.
CLNET_API std::shared_ptr<const Rule> rule(std::string_view name, const NamedOptions& options = {});
/// The optimizer. Throws Error as rule(). muon updates the matrices; all other parameters form a second group with adamw's rule.
/// MuonOptions::match_adam then fits the matrices' rates to that group's.
CLNET_API Optimizer make(std::string_view name, const Parameters& parameters, const NamedOptions& options = {});

}  // namespace clnet::optim
