// Optimizers, schedules and clipping.
#include <fmt/format.h>

#include <cmath>
#include <regex>

#include "tests/torch/cases.h"

namespace clnet::torch {

namespace {

struct Bare : nn::Module {
  nn::Parameter parameter;
  explicit Bare(const Tensor& value) : parameter(add_parameter("p", value)) {}
  Tensor forward(const Tensor& x) override { return x; }
};

Results optimizer_case(const Given& in) {
  const Bare module(in["param"]);
  auto steps = make_optimizer(in, module);
  const auto grads = in["grads"];
  std::vector<Tensor> after;
  for (std::int64_t i = 0; i < grads.size(0); ++i) {
    steps.apply({reshape(slice(grads, 0, i, i + 1), in["param"].shape())});
    after.push_back(module.parameter);
  }
  return {{{"params_after_step", stack(after, 0)}}, {}};
}

/// The rate of each epoch; the numbers are words in the case's detail, as in "step 3 gamma .5".
Results schedule_case(const Given& in) {
  const auto kind = in.text("kind", ""), detail = in.text("detail", "");
  const double base = in.number("base_lr", 0);
  const std::regex number(R"([0-9]*\.?[0-9]+)");
  std::vector<double> numbers;
  for (std::sregex_iterator word(detail.begin(), detail.end(), number), end; word != end; ++word)
    numbers.push_back(std::stod(word->str()));
  optim::Schedule schedule;
  if (kind == "step")
    schedule = optim::step_decay(base, static_cast<std::int64_t>(numbers.at(0)), numbers.at(1));
  else if (kind == "exp")
    schedule = optim::exponential(base, numbers.at(0));
  else if (kind == "linear")
    schedule = optim::linear(base, static_cast<std::int64_t>(numbers.at(2)), numbers.at(0), numbers.at(1));
  else if (kind == "poly_lambda")
    schedule = optim::scaled(base, [=](std::int64_t epoch) {
      return std::pow(numbers.at(0) - static_cast<double>(epoch) / numbers.at(1), numbers.at(2));
    });
  else
    throw Failed("unknown schedule " + kind);
  std::vector<float> rates;
  for (std::int64_t epoch = 0; epoch < in.outputs.at("lr").numel(); ++epoch) rates.push_back(static_cast<float>(schedule(epoch)));
  return {{{"lr", Tensor::from(rates, in.outputs.at("lr").shape())}}, {}};
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

optim::Optimizer make_optimizer(const Given& in, const nn::Module& module) {
  const auto algorithm = in.text("algo", "");
  const double decay = in.number("weight_decay", algorithm == "AdamW" ? 0.01 : 0);
  std::vector<double> betas{0.9, 0.999};
  if (const auto found = in.attributes.find("betas"); found != in.attributes.end()) betas = found->get<std::vector<double>>();
  if (algorithm == "SGD")
    return optim::SGD{module,
                      {.learning_rate = in.number("lr", 1e-3),
                       .momentum = in.number("momentum", 0),
                       .nesterov = in.flag("nesterov"),
                       .weight_decay = decay,
                       .dampening = in.number("dampening", 0),
                       .maximize = in.flag("maximize")}};
  const optim::AdamOptions adam{.learning_rate = in.number("lr", 1e-3),
                                .beta1 = betas.at(0),
                                .beta2 = betas.at(1),
                                .eps = in.number("eps", 1e-8),
                                .weight_decay = decay,
                                .amsgrad = in.flag("amsgrad"),
                                .maximize = in.flag("maximize")};
  if (algorithm == "Adam") return optim::Adam{module, adam};
  if (algorithm == "AdamW") return optim::AdamW{module, adam};
  if (algorithm == "RMSprop")
    return optim::RMSprop{module,
                          {.learning_rate = in.number("lr", 1e-2),
                           .alpha = in.number("alpha", 0.99),
                           .eps = in.number("eps", 1e-8),
                           .momentum = in.number("momentum", 0),
                           .weight_decay = decay,
                           .centered = in.flag("centered")}};
  if (algorithm == "NAdam")
    return optim::NAdam{module,
                        {.learning_rate = in.number("lr", 2e-3),
                         .beta1 = betas.at(0),
                         .beta2 = betas.at(1),
                         .eps = in.number("eps", 1e-8),
                         .momentum_decay = in.number("momentum_decay", 4e-3),
                         .weight_decay = decay}};
  if (algorithm == "RAdam")
    return optim::RAdam{module,
                        {.learning_rate = in.number("lr", 1e-3),
                         .beta1 = betas.at(0),
                         .beta2 = betas.at(1),
                         .eps = in.number("eps", 1e-8),
                         .weight_decay = decay}};
  if (algorithm == "Adamax")
    return optim::Adamax{module,
                         {.learning_rate = in.number("lr", 2e-3),
                          .beta1 = betas.at(0),
                          .beta2 = betas.at(1),
                          .eps = in.number("eps", 1e-8),
                          .weight_decay = decay}};
  if (algorithm == "Adagrad")
    return optim::Adagrad{module,
                          {.learning_rate = in.number("lr", 1e-2),
                           .lr_decay = in.number("lr_decay", 0),
                           .weight_decay = decay,
                           .initial_accumulator_value = in.number("initial_accumulator_value", 0),
                           .eps = in.number("eps", 1e-10)}};
  if (algorithm == "Adadelta")
    return optim::Adadelta{module,
                           {.learning_rate = in.number("lr", 1),
                            .rho = in.number("rho", 0.9),
                            .eps = in.number("eps", 1e-6),
                            .weight_decay = decay}};
  if (algorithm == "Rprop") return optim::Rprop{module, {.learning_rate = in.number("lr", 1e-2)}};
  if (algorithm == "ASGD")
    return optim::ASGD{module,
                       {.learning_rate = in.number("lr", 1e-2),
                        .lambda = in.number("lambd", 1e-4),
                        .alpha = in.number("alpha", 0.75),
                        .t0 = in.number("t0", 1e6),
                        .weight_decay = decay}};
  throw Failed("unknown optimizer " + algorithm);
}

void add_training(Operations& operations) {
  operations["optimizer"] = optimizer_case;
  operations["lr_schedule"] = schedule_case;
  operations["clip_grad_norm"] = [](const Given& in) {
    const auto before = given_gradients(in);
    auto results = named(optim::clip_by_norm(before, in.number("max_norm", 1)));
    results.outputs["total_norm"] = global_norm(before);
    return results;
  };
}

}  // namespace clnet::torch
