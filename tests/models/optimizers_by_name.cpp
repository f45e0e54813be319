// optim::make: every optimizer of the library by its name.
#include <catch2/catch.hpp>
#include <cmath>

#include "clnet/clnet.h"

using namespace clnet;
using Catch::Contains;

namespace {

nn::Sequential small_model() {
  manual_seed(1);
  return nn::Sequential{nn::Linear{4, 8}, relu, nn::Linear{8, 3}};
}

Tensor loss_of(nn::Module& model) {
  const auto x = Tensor::from({1.F, 0.F, 0.5F, 2.F, 0.F, 1.F, -1.F, 0.5F}, {2, 4});
  return cross_entropy(model(x), Tensor::from({0, 2}));
}

}  // namespace

TEST_CASE("optimizers by name: each steps all parameters down, and its state is its own") {
  CHECK(optim::names().size() == 16);
  for (const auto& name : optim::names()) {
    INFO(name);
    auto model = small_model();
    auto optimizer = optim::make(name, model, {.learning_rate = name == "lars" ? 5 : name == "adadelta" ? 10 : 1e-2});
    CHECK(optimizer.made_for(model));
    const auto before = model.parameter("0.bias").value().to_vector<float>();
    const double first = loss_of(model).item<double>();
    for (int step = 0; step < 10; ++step) optimizer.step(loss_of(model));
    CHECK(loss_of(model).item<double>() < first);
    CHECK(model.parameter("0.bias").value().to_vector<float>() != before);

    auto again = optim::make(name, model, {.learning_rate = 1e-2});
    again.load_state_dict(optimizer.state_dict());
    CHECK(again.steps() == 10);
  }
}

TEST_CASE("optimizers by name: the options are those of the class") {
  auto a = small_model(), b = small_model();
  auto by_name =
      optim::make("sgd", a, {.learning_rate = 0.1, .momentum = 0.9, .nesterov = true, .weight_decay = 0.01, .clip_norm = 0.5});
  optim::SGD by_class{b, {.learning_rate = 0.1, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true, .clip_norm = 0.5}};
  auto c = small_model(), d = small_model();
  auto adamw = optim::make("adamw", c);
  optim::AdamW adamw_class{d};
  for (int step = 0; step < 3; ++step) {
    by_name.step(loss_of(a));
    by_class.step(loss_of(b));
    adamw.step(loss_of(c));
    adamw_class.step(loss_of(d));
  }
  CHECK(a.parameter("0.weight").value().to_vector<float>() == b.parameter("0.weight").value().to_vector<float>());
  CHECK(c.parameter("0.weight").value().to_vector<float>() == d.parameter("0.weight").value().to_vector<float>());

  // Numbers and flags that only some have.
  const auto same = [](const std::string& name, const optim::NamedOptions& options,
                       const std::shared_ptr<const optim::Rule>& rule) {
    INFO(name);
    auto one = small_model(), other = small_model();
    auto named = optim::make(name, one, options);
    optim::Optimizer own(other, rule, *options.learning_rate);
    for (int step = 0; step < 3; ++step) {
      named.step(loss_of(one));
      own.step(loss_of(other));
    }
    CHECK(one.parameter("0.weight").value().to_vector<float>() == other.parameter("0.weight").value().to_vector<float>());
  };
  same("adam", {.learning_rate = 0.1, .beta1 = 0.5, .beta2 = 0.7, .eps = 1e-2, .amsgrad = true},
       optim::Adam::rule({.beta1 = 0.5, .beta2 = 0.7, .eps = 1e-2, .amsgrad = true}));
  same("rmsprop", {.learning_rate = 0.1, .alpha = 0.5, .centered = true}, optim::RMSprop::rule({.alpha = 0.5, .centered = true}));
  same("adadelta", {.learning_rate = 0.1, .rho = 0.5, .maximize = true}, optim::Adadelta::rule({.rho = 0.5, .maximize = true}));
  same("sgd", {.learning_rate = 0.1, .momentum = 0.9, .dampening = 0.5}, optim::SGD::rule({.momentum = 0.9, .dampening = 0.5}));
  same("adagrad", {.learning_rate = 0.1, .lr_decay = 0.5}, optim::Adagrad::rule({.lr_decay = 0.5}));
  // Matrices and the rest.
  CHECK(optim::make("muon", a).groups() == 2);
  CHECK(optim::make("muon", nn::LayerNorm{{4}}).groups() == 1);
}

TEST_CASE("optimizers by name: what there is not") {
  CHECK_THROWS_WITH(optim::rule("sgdm"), Contains("'sgdm'") && Contains("adafactor"));
  CHECK_THROWS_WITH(optim::rule("lbfgs"), Contains("'lbfgs'"));
  CHECK_THROWS_WITH(optim::rule("adam", {.momentum = 0.9}), Contains("adam has no momentum"));
  CHECK_THROWS_WITH(optim::rule("rmsprop", {.nesterov = true}), Contains("Nesterov"));
  CHECK_THROWS_WITH(optim::rule("rprop", {.weight_decay = 0.1}), Contains("no weight decay"));
  CHECK_THROWS_WITH(optim::rule("sgd", {.nesterov = true}), Contains("nesterov"));
  CHECK_THROWS_WITH(optim::rule("sgd", {.beta1 = 0.9}), "optimizer sgd has no beta1");
  CHECK_THROWS_WITH(optim::rule("adamax", {.amsgrad = true}), "optimizer adamax has no amsgrad");
  CHECK_THROWS_WITH(optim::rule("muon", {.maximize = true}), "optimizer muon has no maximize");
  CHECK_THROWS_WITH(optim::rule("adam", {.learning_rate = NAN}), Contains("learning_rate"));
}
