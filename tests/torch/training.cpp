// Optimizers, schedules and clipping.
#include <fmt/format.h>

#include "tests/torch/cases.h"

namespace clnet::torch {

namespace {

struct Bare : nn::Module {
  nn::Parameter parameter;
  explicit Bare(const Tensor& value) : parameter(add_parameter("p", value)) {}
  Tensor forward(const Tensor& x) override { return x; }
};

optim::Optimizer optimizer(const Given& in, const nn::Module& module) {
  const auto algorithm = in.text("algo", "");
  const double decay = in.number("weight_decay", algorithm == "AdamW" ? 0.01 : 0);
  std::vector<double> betas{0.9, 0.999};
  if (const auto found = in.attributes.find("betas"); found != in.attributes.end()) betas = found->get<std::vector<double>>();
  if (algorithm == "SGD")
    return optim::SGD{module,
                      {.learning_rate = in.number("lr", 1e-3),
                       .momentum = in.number("momentum", 0),
                       .nesterov = in.flag("nesterov"),
                       .weight_decay = decay}};
  const optim::AdamOptions adam{.learning_rate = in.number("lr", 1e-3),
                                .beta1 = betas.at(0),
                                .beta2 = betas.at(1),
                                .eps = in.number("eps", 1e-8),
                                .weight_decay = decay};
  if (algorithm == "Adam") return optim::Adam{module, adam};
  if (algorithm == "AdamW") return optim::AdamW{module, adam};
  if (algorithm == "RMSprop")
    return optim::RMSprop{module,
                          {.learning_rate = in.number("lr", 1e-2),
                           .alpha = in.number("alpha", 0.99),
                           .eps = in.number("eps", 1e-8),
                           .momentum = in.number("momentum", 0),
                           .weight_decay = decay}};
  throw Failed("unknown optimizer " + algorithm);
}

Results optimizer_case(const Given& in) {
  const Bare module(in["param"]);
  auto steps = optimizer(in, module);
  const auto grads = in["grads"];
  std::vector<Tensor> after;
  for (std::int64_t i = 0; i < grads.size(0); ++i) {
    steps.apply({reshape(slice(grads, 0, i, i + 1), in["param"].shape())});
    after.push_back(module.parameter);
  }
  return {{{"params_after_step", stack(after, 0)}}, {}};
}

/// As many gradients g1, g2, ... as there are.
std::vector<Tensor> given_gradients(const Given& in) {
  std::vector<Tensor> result;
  while (in.inputs.contains(fmt::format("g{}", result.size() + 1))) result.push_back(in[fmt::format("g{}", result.size() + 1)]);
  return result;
}

Results named(const std::vector<Tensor>& gradients) {
  Results results;
  for (std::size_t i = 0; i < gradients.size(); ++i) results.outputs[fmt::format("g{}", i + 1)] = gradients[i];
  return results;
}

}  // namespace

void add_training(Operations& operations) {
  operations["optimizer"] = optimizer_case;
  operations["clip_grad_norm"] = [](const Given& in) {
    const auto before = given_gradients(in);
    auto results = named(optim::clip_by_norm(before, in.number("max_norm", 1)));
    results.outputs["total_norm"] = global_norm(before);
    return results;
  };
}

}  // namespace clnet::torch
