// Optimizers and clipping.
#include <fmt/format.h>

#include <cmath>

#include "tests/torch/cases.h"

namespace clnet::torch {

namespace {

struct Bare : nn::Module {
  nn::Parameter parameter;
  explicit Bare(const Tensor& value) : parameter(add_parameter("p", value)) {}
  Tensor forward(const Tensor& x) override { return x; }
};

Results optimizer_case(const Given& in) {
  const auto start = in[{"param", "params", "p", "x"}], grads = in[{"grads", "grad", "g"}];
  if (!start.defined() || !grads.defined()) throw Failed("there is no param or grads");
  const Bare module(start);
  const auto steps = make_steps(in, module);
  std::vector<Tensor> after;
  for (std::int64_t i = 0; i < grads.size(0); ++i) {
    const auto gradient = reshape(slice(grads, 0, i, i + 1), start.shape());
    // The gradient of this loss is the given one.
    steps([&] { return sum(module.parameter * gradient); });
    after.push_back(module.parameter);
  }
  return {{{"params_after_step", stack(after, 0)}, {"param", after.back()}, {"y", after.back()}}, {}};
}

Results named(const std::vector<Tensor>& gradients) {
  Results results;
  for (std::size_t i = 0; i < gradients.size(); ++i)
    for (const char* name : {"g", "grad", "x", "y"}) results.outputs[fmt::format("{}{}", name, i + 1)] = gradients[i];
  return results;
}

/// One or two numbers under PyTorch's name.
std::vector<double> two(const Given& in, const Names& names, double first, double second) {
  const auto given = in.numbers(names).value_or(std::vector<double>{first, second});
  if (given.size() != 2) throw Failed(fmt::format("{} has {} numbers, not 2", names.all[0], given.size()));
  return given;
}

/// What Adam and its kin share.
template <class Options>
Options moments(const Given& in, Options o) {
  o.learning_rate = in.number("lr", o.learning_rate);
  const auto betas = two(in, "betas", in.number("beta1", o.beta1), in.number("beta2", o.beta2));
  o.beta1 = betas[0];
  o.beta2 = betas[1];
  if constexpr (requires { o.eps; }) o.eps = in.number("eps", o.eps);
  o.weight_decay = in.number({"weight_decay", "wd"}, o.weight_decay);
  if constexpr (requires { o.amsgrad; }) o.amsgrad = in.flag("amsgrad");
  if constexpr (requires { o.decoupled; }) o.decoupled = in.flag({"decoupled_weight_decay", "decoupled"});
  o.maximize = in.flag("maximize");
  return o;
}

optim::Optimizer make_momentum(const Given& in, const nn::Module& module, const std::string& algorithm) {
  if (algorithm == "sgd")
    return optim::SGD{module,
                      {.learning_rate = in.number("lr", 1e-3),
                       .momentum = in.number("momentum", 0),
                       .dampening = in.number("dampening", 0),
                       .weight_decay = in.number({"weight_decay", "wd"}, 0),
                       .nesterov = in.flag("nesterov"),
                       .maximize = in.flag("maximize")}};
  if (algorithm == "lars")
    return optim::LARS{module,
                       {.learning_rate = in.number("lr", 0.1),
                        .momentum = in.number("momentum", 0.9),
                        .trust = in.number({"trust_coefficient", "trust"}, 1e-3),
                        .eps = in.number("eps", 1e-8),
                        .weight_decay = in.number({"weight_decay", "wd"}, 0),
                        .nesterov = in.flag("nesterov"),
                        .maximize = in.flag("maximize")}};
  if (algorithm == "asgd")
    return optim::ASGD{module,
                       {.learning_rate = in.number("lr", 1e-2),
                        .lambda = in.number({"lambd", "lambda"}, 1e-4),
                        .alpha = in.number("alpha", 0.75),
                        .t0 = in.number("t0", 1e6),
                        .weight_decay = in.number({"weight_decay", "wd"}, 0),
                        .maximize = in.flag("maximize")}};
  if (algorithm == "rprop") {
    const auto etas = two(in, "etas", 0.5, 1.2), sizes = two(in, "step_sizes", 1e-6, 50);
    return optim::Rprop{module,
                        {.learning_rate = in.number("lr", 1e-2),
                         .shrink = etas[0],
                         .grow = etas[1],
                         .min_step = sizes[0],
                         .max_step = sizes[1],
                         .maximize = in.flag("maximize")}};
  }
  if (algorithm == "muon") {
    optim::MuonOptions o{.learning_rate = in.number("lr", 1e-3),
                         .weight_decay = in.number({"weight_decay", "wd"}, 0.1),
                         .momentum = in.number("momentum", 0.95),
                         .nesterov = in.flag("nesterov", true)};
    if (const auto abc = in.numbers("ns_coefficients")) {
      if (abc->size() != 3) throw Failed("ns_coefficients are three");
      o.a = (*abc)[0];
      o.b = (*abc)[1];
      o.c = (*abc)[2];
    }
    o.eps = in.number("eps", o.eps);
    o.iterations = static_cast<int>(in.integer("ns_steps", o.iterations));
    const auto fit = in.text("adjust_lr_fn", "original");
    if (fit != "original" && fit != "match_rms_adamw" && fit != "spectral_unclamped") throw Failed("unknown adjust_lr_fn " + fit);
    o.match_adam = fit == "match_rms_adamw";
    o.unclamped = fit == "spectral_unclamped";
    return optim::Muon{module, o};
  }
  throw Failed("unknown optimizer " + in.text({"algo", "optimizer"}, ""));
}

optim::Optimizer make_adaptive(const Given& in, const nn::Module& module, const std::string& algorithm) {
  if (algorithm == "rmsprop")
    return optim::RMSprop{module,
                          {.learning_rate = in.number("lr", 1e-2),
                           .alpha = in.number("alpha", 0.99),
                           .eps = in.number("eps", 1e-8),
                           .weight_decay = in.number({"weight_decay", "wd"}, 0),
                           .momentum = in.number("momentum", 0),
                           .centered = in.flag("centered"),
                           .maximize = in.flag("maximize")}};
  if (algorithm == "adagrad")
    return optim::Adagrad{module,
                          {.learning_rate = in.number("lr", 1e-2),
                           .lr_decay = in.number("lr_decay", 0),
                           .weight_decay = in.number({"weight_decay", "wd"}, 0),
                           .initial_accumulator_value = in.number("initial_accumulator_value", 0),
                           .eps = in.number("eps", 1e-10),
                           .maximize = in.flag("maximize")}};
  if (algorithm == "adadelta")
    return optim::Adadelta{module,
                           {.learning_rate = in.number("lr", 1),
                            .rho = in.number("rho", 0.9),
                            .eps = in.number("eps", 1e-6),
                            .weight_decay = in.number({"weight_decay", "wd"}, 0),
                            .maximize = in.flag("maximize")}};
  if (algorithm == "adafactor") {
    optim::AdafactorOptions o{.learning_rate = in.number("lr", 1e-2),
                              .beta2_decay = in.number("beta2_decay", -0.8),
                              .d = in.number("d", 1),
                              .weight_decay = in.number({"weight_decay", "wd"}, 0),
                              .maximize = in.flag("maximize")};
    // PyTorch's eps is a pair, whose first may be null.
    if (const auto* eps = in.find("eps"); eps != nullptr && eps->is_array() && eps->size() == 2) {
      if (!(*eps)[0].is_null()) o.eps1 = (*eps)[0].get<double>();
      o.eps2 = (*eps)[1].get<double>();
    } else if (eps != nullptr) {
      throw Failed("eps is no pair");
    }
    return optim::Adafactor{module, o};
  }
  return make_momentum(in, module, algorithm);
}

std::string algorithm_of(const Given& in) {
  // Choices of PyTorch's implementation.
  in.restated({"foreach", "fused", "capturable", "differentiable"});
  return plain_name(in.text({"algo", "optimizer", "name"}, in.op));
}

}  // namespace

optim::Optimizer make_optimizer(const Given& in, const nn::Module& module) {
  const auto algorithm = algorithm_of(in);
  if (algorithm == "adam" && in.flag("decoupled_weight_decay"))
    return optim::AdamW{module, moments(in, optim::AdamWOptions{.weight_decay = 0})};
  if (algorithm == "adam") return optim::Adam{module, moments(in, optim::AdamOptions{})};
  if (algorithm == "adamw") return optim::AdamW{module, moments(in, optim::AdamWOptions{})};
  if (algorithm == "nadam") {
    auto o = moments(in, optim::NAdamOptions{});
    o.momentum_decay = in.number("momentum_decay", o.momentum_decay);
    return optim::NAdam{module, o};
  }
  if (algorithm == "radam") return optim::RAdam{module, moments(in, optim::RAdamOptions{})};
  if (algorithm == "adamax") return optim::Adamax{module, moments(in, optim::AdamaxOptions{})};
  if (algorithm == "lamb") return optim::LAMB{module, moments(in, optim::LAMBOptions{})};
  if (algorithm == "lion") return optim::Lion{module, moments(in, optim::LionOptions{})};
  return make_adaptive(in, module, algorithm);
}

Steps make_steps(const Given& in, const nn::Module& module) {
  if (algorithm_of(in) == "lbfgs") {
    const auto search = in.text("line_search_fn", "");
    if (!search.empty() && search != "strong_wolfe") throw Failed("unknown line_search_fn " + search);
    optim::LBFGS optimizer(module, {.learning_rate = in.number("lr", 1),
                                    .max_iter = in.integer("max_iter", 20),
                                    .max_eval = in.integer("max_eval", 0),
                                    .tolerance_grad = in.number("tolerance_grad", 1e-7),
                                    .tolerance_change = in.number("tolerance_change", 1e-9),
                                    .history_size = in.integer("history_size", 100),
                                    .strong_wolfe = search == "strong_wolfe",
                                    .maximize = in.flag("maximize")});
    return [optimizer](const std::function<Tensor()>& loss) mutable { return Tensor::scalar(optimizer.step(loss)); };
  }
  return [optimizer = make_optimizer(in, module)](const std::function<Tensor()>& loss) mutable { return optimizer.step(loss()); };
}

void add_training(Operations& operations) {
  operations["optimizer"] = operations["optim"] = optimizer_case;
  operations["clip_grad_norm"] = [](const Given& in) {
    const auto before = in.operands();
    const double p = in.number("norm_type", 2);
    auto results = named(optim::clip_by_norm(before, in.number("max_norm", 1), p));
    results.outputs["total_norm"] = global_norm(before, p);
    return results;
  };
  operations["clip_grad_value"] = [](const Given& in) {
    return named(optim::clip_by_value(in.operands(), in.number({"clip_value", "max_value", "value"}, 1)));
  };
}

}  // namespace clnet::torch
