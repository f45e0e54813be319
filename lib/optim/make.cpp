#include "clnet/optim/make.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "clnet/error.h"
#include "clnet/optim/adam.h"
#include "clnet/optim/adaptive.h"
#include "clnet/optim/sgd.h"

namespace clnet::optim {

namespace {

struct Made {
  std::shared_ptr<const Rule> rule;
  double learning_rate;
};

void refuse(bool given, std::string_view name, std::string_view option) {
  if (given) throw Error(fmt::format("optimizer {} has no {}", name, option));
}

/// Options of the optimizer's own, with those that are given in their places.
template <class Kind, class Options>
Made made(std::string_view name, const NamedOptions& given) {
  Options o;
  o.learning_rate = given.learning_rate.value_or(o.learning_rate);
  if constexpr (requires { o.weight_decay; })
    o.weight_decay = given.weight_decay.value_or(o.weight_decay);
  else
    refuse(given.weight_decay.has_value(), name, "weight decay");
  if constexpr (requires { o.momentum; })
    o.momentum = given.momentum.value_or(o.momentum);
  else
    refuse(given.momentum.has_value(), name, "momentum");
  if constexpr (requires { o.nesterov; })
    o.nesterov = o.nesterov || given.nesterov;
  else
    refuse(given.nesterov, name, "Nesterov's momentum");
  const auto number = [&](const std::optional<double>& value, std::string_view option, auto member) {
    if constexpr (requires { member(o); })
      member(o) = value.value_or(member(o));
    else
      refuse(value.has_value(), name, option);
  };
  number(given.beta1, "beta1", [](auto& own) -> decltype((own.beta1)) { return own.beta1; });
  number(given.beta2, "beta2", [](auto& own) -> decltype((own.beta2)) { return own.beta2; });
  number(given.eps, "eps", [](auto& own) -> decltype((own.eps)) { return own.eps; });
  number(given.alpha, "alpha", [](auto& own) -> decltype((own.alpha)) { return own.alpha; });
  number(given.rho, "rho", [](auto& own) -> decltype((own.rho)) { return own.rho; });
  number(given.dampening, "dampening", [](auto& own) -> decltype((own.dampening)) { return own.dampening; });
  number(given.lr_decay, "lr_decay", [](auto& own) -> decltype((own.lr_decay)) { return own.lr_decay; });
  const auto flag = [&](bool value, std::string_view option, auto member) {
    if constexpr (requires { member(o); })
      member(o) = member(o) || value;
    else
      refuse(value, name, option);
  };
  flag(given.amsgrad, "amsgrad", [](auto& own) -> decltype((own.amsgrad)) { return own.amsgrad; });
  flag(given.centered, "centered", [](auto& own) -> decltype((own.centered)) { return own.centered; });
  flag(given.maximize, "maximize", [](auto& own) -> decltype((own.maximize)) { return own.maximize; });
  if constexpr (requires { o.match_adam; }) o.match_adam = true;
  return {Kind::rule(o), o.learning_rate};
}

struct NamedOptimizer {
  std::string_view name;
  Made (*make)(std::string_view name, const NamedOptions& options);
};
constexpr NamedOptimizer table[] = {{"sgd", made<SGD, SGDOptions>},
                                    {"asgd", made<ASGD, ASGDOptions>},
                                    {"rprop", made<Rprop, RpropOptions>},
                                    {"lars", made<LARS, LARSOptions>},
                                    {"muon", made<Muon, MuonOptions>},
                                    {"adam", made<Adam, AdamOptions>},
                                    {"adamw", made<AdamW, AdamWOptions>},
                                    {"nadam", made<NAdam, NAdamOptions>},
                                    {"radam", made<RAdam, RAdamOptions>},
                                    {"adamax", made<Adamax, AdamaxOptions>},
                                    {"lamb", made<LAMB, LAMBOptions>},
                                    {"lion", made<Lion, LionOptions>},
                                    {"rmsprop", made<RMSprop, RMSpropOptions>},
                                    {"adagrad", made<Adagrad, AdagradOptions>},
                                    {"adadelta", made<Adadelta, AdadeltaOptions>},
                                    {"adafactor", made<Adafactor, AdafactorOptions>}};

Made make_rule(std::string_view name, const NamedOptions& options) {
  for (const auto& entry : table)
    if (entry.name == name) return entry.make(name, options);
  throw Error(fmt::format("there is no optimizer named '{}'; there are: {}", name, fmt::join(names(), ", ")));
}

}  // namespace

std::vector<std::string> names() {
  std::vector<std::string> result;
  for (const auto& entry : table) result.emplace_back(entry.name);
  return result;
}

std::shared_ptr<const Rule> rule(std::string_view name, const NamedOptions& options) { return make_rule(name, options).rule; }

Optimizer make(std::string_view name, const Parameters& parameters, const NamedOptions& options) {
  const auto [rule, rate] = make_rule(name, options);
  const Clipping clipping{options.clip_norm, options.clip_value};
  if (name != "muon") return {parameters, rule, rate, clipping};
  nn::NamedParameters matrices, others;
  for (const auto& entry : parameters.list()) (entry.second.value().rank() == 2 ? matrices : others).push_back(entry);
  const auto adamw = make_rule("adamw", {.learning_rate = rate, .weight_decay = options.weight_decay}).rule;
  if (matrices.empty()) return {others, adamw, rate, clipping};
  Optimizer optimizer(matrices, rule, rate, clipping);
  if (!others.empty()) optimizer.add_group(others, adamw, rate);
  return optimizer;
}

}  // namespace clnet::optim
