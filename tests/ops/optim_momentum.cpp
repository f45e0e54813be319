// Momenta that change from step to step: schedules and trainings against PyTorch's, rules against themselves.
#include <catch2/catch.hpp>
#include <functional>

#include "clnet/clnet.h"
#include "lib/exec/statistics.h"

using namespace clnet;
using Catch::Contains;

namespace {

struct Weights : nn::Module {
  nn::Parameter w = add_parameter("w", Tensor::from({0.5F, -1.0F, 2.0F}));
  Tensor forward(const Tensor& x) override { return matmul(x, reshape(w.value(), {3, 1})); }
  Tensor loss() {
    return mse_loss((*this)(Tensor::from({1.0F, 2.0F, -1.0F, 0.5F, -1.0F, 3.0F, -2.0F, 0.25F, 1.0F, 1.0F, -1.5F, 0.5F}, {4, 3})),
                    Tensor::from({1.0F, -1.0F, 0.5F, 2.0F}, {4, 1}));
  }
};

using Values = std::vector<double>;
struct Cycle {
  const char* name;
  optim::Schedule rate, momentum;
  Values rates, momenta;
  std::map<std::string, Values> weights;  ///< by optimizer, after 12 steps
};

/// torch 2.15's OneCycleLR and CyclicLR in f64 with
///   SGD([w], lr=0.1, momentum=0.9[, nesterov=True]), Adam([w], lr=0.1), AdamW([w], lr=0.1, weight_decay=0.1),
///   NAdam([w], lr=0.1), RMSprop([w], lr=0.1, momentum=0.5)
const std::vector<Cycle>& cycles() {
  static const optim::OneCycleOptions three{.linear = true, .three_phase = true, .base_momentum = 0.6, .max_momentum = 0.9};
  static const optim::CyclicOptions uneven{.up = 4, .down = 3};
  static const optim::CyclicOptions halved{
      .up = 3, .mode = optim::Cycle::triangular2, .base_momentum = 0.5, .max_momentum = 0.95};
  static const optim::CyclicOptions shrinking{.up = 3, .mode = optim::Cycle::exp_range, .gamma = 0.9};
  static const std::vector<Cycle> all{
      {"OneCycleLR(o, 0.1, total_steps=12)",
       optim::one_cycle(0.1, 12),
       optim::one_cycle_momentum(12),
       {0.004, 0.03497896542, 0.08792851591, 0.09944154355, 0.09330129698, 0.08117456539, 0.06473789977, 0.04626371027,
        0.02830609982, 0.01334775302, 0.003456698743, 4e-07},
       {0.95, 0.9177302444, 0.8625744626, 0.8505584587, 0.8566987298, 0.8688255099, 0.8852622413, 0.9037365047, 0.921694187,
        0.9366525936, 0.9465436874, 0.95},
       {{"SGD", {-0.1115266, -1.43439185, 0.731803678}},
        {"nesterov", {0.0592499586, -0.474427599, -0.433183836}},
        {"Adam", {0.437663535, -0.514046386, 1.5113571}},
        {"AdamW", {0.425333921, -0.472515875, 1.41519963}},
        {"NAdam", {0.448021503, -0.591227917, 1.58526664}},
        {"RMSprop", {0.244840888, 0.805742265, -1.08677298}}}},
      {"OneCycleLR(o, 0.1, total_steps=12, three_phase=True, anneal_strategy='linear', base_momentum=0.6, max_momentum=0.9)",
       optim::one_cycle(0.1, 12, three),
       optim::one_cycle_momentum(12, three),
       {0.004, 0.04092307692, 0.07784615385, 0.08523076923, 0.04830769231, 0.01138461538, 0.003448331034, 0.002758744828,
        0.002069158621, 0.001379572414, 0.0006899862069, 4e-07},
       {0.9, 0.7846153846, 0.6692307692, 0.6461538462, 0.7615384615, 0.8769230769, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9},
       {{"SGD", {0.197536676, 0.491722979, -1.04618183}},
        {"nesterov", {0.17847169, 0.0754565105, -0.483302566}},
        {"Adam", {0.462609801, -0.756446942, 1.75563775}},
        {"AdamW", {0.456458994, -0.731981765, 1.70360883}},
        {"NAdam", {0.460885711, -0.757797546, 1.75593303}},
        {"RMSprop", {0.0727351813, 1.30689264, -0.72564536}}}},
      {"CyclicLR(o, 0.01, 0.1, step_size_up=4, step_size_down=3)",
       optim::cyclic(0.01, 0.1, uneven),
       optim::cyclic_momentum(uneven),
       {0.01, 0.0325, 0.055, 0.0775, 0.1, 0.07, 0.04, 0.01, 0.0325, 0.055, 0.0775, 0.1},
       {0.9, 0.875, 0.85, 0.825, 0.8, 0.8333333333, 0.8666666667, 0.9, 0.875, 0.85, 0.825, 0.8},
       {{"SGD", {0.271909696, -0.482777093, -0.314066074}},
        {"nesterov", {0.196544083, -0.302748985, -0.38770924}},
        {"Adam", {0.431381455, -0.41342112, 1.40804579}},
        {"AdamW", {0.417776147, -0.370338325, 1.30042918}},
        {"NAdam", {0.437387921, -0.473961482, 1.46405182}},
        {"RMSprop", {0.483529122, -1.3982595, 0.707645541}}}},
      {"CyclicLR(o, 0.01, 0.1, step_size_up=3, mode='triangular2', base_momentum=0.5, max_momentum=0.95)",
       optim::cyclic(0.01, 0.1, halved),
       optim::cyclic_momentum(halved),
       {0.01, 0.04, 0.07, 0.1, 0.07, 0.04, 0.01, 0.025, 0.04, 0.055, 0.04, 0.025},
       {0.95, 0.8, 0.65, 0.5, 0.65, 0.8, 0.95, 0.875, 0.8, 0.725, 0.8, 0.875},
       {{"SGD", {0.115004553, -0.588016103, 0.0733858813}},
        {"nesterov", {0.147852433, -0.273432746, -0.308618686}},
        {"Adam", {0.438141042, -0.508111688, 1.503973}},
        {"AdamW", {0.427453978, -0.47059605, 1.41483455}},
        {"NAdam", {0.446102585, -0.539260469, 1.53172013}},
        {"RMSprop", {0.335871008, -0.433719555, 0.0790988623}}}},
      {"CyclicLR(o, 0.01, 0.1, step_size_up=3, mode='exp_range', gamma=0.9)",
       optim::cyclic(0.01, 0.1, shrinking),
       optim::cyclic_momentum(shrinking),
       {0.01, 0.037, 0.0586, 0.07561, 0.049366, 0.0277147, 0.01, 0.024348907, 0.0358280326, 0.04486784401, 0.03092070641,
        0.01941431788},
       {0.9, 0.87, 0.846, 0.8271, 0.85626, 0.880317, 0.9, 0.88405677, 0.871302186, 0.8612579511, 0.8767547707, 0.8895396468},
       {{"SGD", {-0.0422471566, -1.62600666, 1.34974147}},
        {"nesterov", {0.0944480248, -0.565560578, -0.077150575}},
        {"Adam", {0.440618314, -0.600512072, 1.59886383}},
        {"AdamW", {0.430432721, -0.567427419, 1.52407138}},
        {"NAdam", {0.453073356, -0.660882373, 1.65743908}},
        {"RMSprop", {0.117061799, 0.0363774946, -0.207836103}}}}};
  return all;
}

const std::map<std::string, std::function<optim::Optimizer(const nn::Module&)>> optimizers{
    {"SGD", [](const nn::Module& m) { return optim::SGD(m, {.learning_rate = 0.1, .momentum = 0.9}); }},
    {"nesterov", [](const nn::Module& m) { return optim::SGD(m, {.learning_rate = 0.1, .momentum = 0.9, .nesterov = true}); }},
    {"Adam", [](const nn::Module& m) { return optim::Adam(m, {.learning_rate = 0.1}); }},
    {"AdamW", [](const nn::Module& m) { return optim::AdamW(m, {.learning_rate = 0.1, .weight_decay = 0.1}); }},
    {"NAdam", [](const nn::Module& m) { return optim::NAdam(m, {.learning_rate = 0.1}); }},
    {"RMSprop", [](const nn::Module& m) { return optim::RMSprop(m, {.learning_rate = 0.1, .momentum = 0.5}); }}};

std::vector<std::vector<float>> all_of(const nn::Module& model, const optim::Optimizer& optimizer) {
  std::vector<std::vector<float>> result;
  for (const auto& [name, tensor] : model.state_dict()) result.push_back(tensor.to_vector<float>());
  for (const auto& [name, tensor] : optimizer.state_dict())
    if (!name.starts_with("momentum.") && tensor.dtype() == Dtype::f32) result.push_back(tensor.to_vector<float>());
  return result;
}

}  // namespace

TEST_CASE("learning rates and momenta go as PyTorch's over a cycle") {
  for (const auto& cycle : cycles()) {
    INFO(cycle.name);
    for (std::size_t step = 0; step < cycle.rates.size(); ++step) {
      INFO("step " << step);
      CHECK(cycle.rate(static_cast<std::int64_t>(step)) == Approx(cycle.rates[step]).epsilon(1e-8));
      CHECK(cycle.momentum(static_cast<std::int64_t>(step)) == Approx(cycle.momenta[step]).epsilon(1e-8));
    }
  }
}

TEST_CASE("trainings over cycles of rate and momentum end where PyTorch's do, on one plan") {
  for (const auto& cycle : cycles())
    for (const auto& [name, make] : optimizers) {
      INFO(name << ", " << cycle.name);
      Weights model;
      auto optimizer = make(model);
      std::uint64_t plans = 0;
      for (std::int64_t step = 0; step < 12; ++step) {
        optimizer.set_learning_rate(cycle.rate(step));
        optimizer.set_momentum(cycle.momentum(step));
        CHECK(optimizer.momentum() == cycle.momentum(step));
        optimizer.step(model.loss());
        if (step == 0) plans = exec::statistics().plans_made;
      }
      CHECK(exec::statistics().plans_made == plans);
      const auto got = model.w.value().to_vector<float>();
      for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == Approx(cycle.weights.at(name)[i]).epsilon(1e-5).margin(1e-6));
    }
}

TEST_CASE("a step with a momentum that was set is that of an optimizer made with it") {
  struct Made {
    const char* name;
    optim::NamedOptions options;
  };
  std::vector<Made> all;
  for (const char* name : {"sgd", "lars", "muon", "rmsprop"}) all.push_back({name, {.momentum = 0.9}});
  all.push_back({"sgd", {.momentum = 0.9, .nesterov = true}});
  all.push_back({"sgd", {.momentum = 0.9, .dampening = 0.3}});
  all.push_back({"rmsprop", {.momentum = 0.9, .centered = true}});
  for (const char* name : {"adam", "adamw", "nadam", "radam", "adamax", "lamb", "lion"}) all.push_back({name, {.beta1 = 0.9}});
  all.push_back({"adam", {.beta1 = 0.9, .amsgrad = true}});
  for (const auto& each : all)
    for (const bool scaled : {false, true}) {
      const char* name = each.name;
      const auto& options = each.options;
      CAPTURE(name, options.nesterov, options.dampening.value_or(0), options.centered, options.amsgrad, scaled);
      const auto make = [&](const nn::Module& model, double momentum) {
        auto its = options;
        (its.momentum ? its.momentum : its.beta1) = momentum;
        // Muon's other group has a beta1 of its own.
        auto made = optim::make(name, optim::Parameters(model, [](const auto& p) { return p == "weight"; }), its);
        if (scaled) made.set_loss_scale();
        return made;
      };
      manual_seed(5);
      nn::Linear one(4, 3), other(4, 3);
      other.load_state_dict(one.state_dict());
      const auto x = randn({6, 4}), y = randn({6, 3});
      eval({x, y});
      auto set = make(one, 0.9);
      CHECK(set.momentum() == 0.9);
      for (int step = 0; step < 7; ++step) set.step(mse_loss(one(x), y));
      const auto plans = exec::statistics().plans_made;
      for (const double momentum : {0.8, 0.0, 0.55}) {
        if (momentum == 0 && options.momentum && std::string(name) != "muon") continue;
        auto made = make(other, momentum);
        other.load_state_dict(one.state_dict());
        auto state = set.state_dict();
        std::erase_if(state, [](const auto& entry) { return entry.first.starts_with("momentum."); });
        made.load_state_dict(state);
        set.set_momentum(momentum);
        CHECK(set.momentum() == momentum);
        set.step(mse_loss(one(x), y));
        made.step(mse_loss(other(x), y));
        CHECK(all_of(one, set) == all_of(other, made));
      }
      CHECK(exec::statistics().plans_made - plans <= 1);  // values that came from a state
    }
}

TEST_CASE("a step whose momentum is 0 leaves what was summed as it is, as PyTorch's") {
  struct Case {
    const char* name;
    std::function<optim::Optimizer(const nn::Module&)> make;
    Values weights, buffer;  ///< torch 2.15's after all steps, in f64
    bool late = false;       ///< the first two steps have no momentum, too
  };
  const auto sgd = [](optim::SGDOptions o) {
    o.learning_rate = 0.05;
    o.momentum = 0.9;
    return [o](const nn::Module& m) { return optim::SGD(m, o); };
  };
  const auto rmsprop = [](bool centered) {
    return [=](const nn::Module& m) { return optim::RMSprop(m, {.learning_rate = 0.05, .momentum = 0.9, .centered = centered}); };
  };
  const std::vector<Case> cases{
      {"SGD", sgd({}), {0.226883196, 0.42501662, -0.910149629}, {1.36132032, -0.10132577, 3.67906048}},
      {"SGD, late", sgd({}), {0.202483808, 0.102469932, -0.494870512}, {1.11779129, 0.741482144, 2.00655059}, true},
      {"nesterov", sgd({.nesterov = true}), {0.191637336, 0.0656712167, -0.475616937}, {1.12865604, 0.104983168, 3.00987851}},
      {"nesterov, late",
       sgd({.nesterov = true}),
       {0.186389158, -0.0532968605, -0.339343604},
       {0.929674988, 0.736022176, 1.68192698},
       true},
      {"dampening",
       sgd({.dampening = 0.3, .weight_decay = 0.1}),
       {0.260407947, 0.485620633, -0.893904304},
       {1.04414447, -1.47813903, 4.89915275}},
      {"RMSprop", rmsprop(false), {0.288682864, 0.868807451, -0.533163018}, {0.925619214, -1.75139706, 5.74213152}},
      {"centered", rmsprop(true), {0.286656014, 0.867236764, -0.540291286}, {0.928838504, -1.71242322, 5.72053697}}};
  for (const auto& each : cases)
    for (const bool scaled : {false, true}) {
      CAPTURE(each.name, scaled);
      Weights model;
      auto optimizer = each.make(model);
      if (scaled) optimizer.set_loss_scale();
      std::vector<double> momenta{0.9, 0.9, 0, 0.5, 0, 0, 0.8, 0.9};
      if (each.late) momenta.insert(momenta.begin(), 2, 0.0);
      std::uint64_t plans = 0;
      for (std::size_t step = 0; step < momenta.size(); ++step) {
        optimizer.set_momentum(momenta[step]);
        optimizer.step(model.loss());
        if (step == 0) plans = exec::statistics().plans_made;
      }
      CHECK(exec::statistics().plans_made == plans);
      const auto same = [](const Tensor& got, const Values& wanted) {
        const auto values = got.to_vector<float>();
        for (std::size_t i = 0; i < values.size(); ++i) CHECK(values[i] == Approx(wanted[i]).epsilon(2e-5).margin(2e-6));
      };
      same(model.w.value(), each.weights);
      for (const auto& [name, tensor] : optimizer.state_dict())
        if (name == "w.momentum_buffer") same(tensor, each.buffer);
    }
  // LARS, too.
  nn::Parameter p(Tensor::from({1.0F, 2.0F}));
  optim::Optimizer lars(nn::NamedParameters{{"p", p}}, optim::LARS::rule({}), 1);
  const auto buffer = [&] { return lars.state_dict()[1].second.to_vector<float>(); };
  lars.apply({Tensor::from({0.5F, 1.0F})});
  const auto before = buffer();
  CHECK(before[0] > 0);
  lars.set_momentum(0);
  lars.apply({Tensor::from({3.0F, -1.0F})});
  CHECK(buffer() == before);
}

TEST_CASE("momenta of groups, in states, and where there are none") {
  nn::Linear model(2, 2);
  const auto is = [](const char* name) { return [=](const std::string& parameter) { return parameter == name; }; };
  optim::Optimizer both(optim::Parameters(model, is("weight")), optim::SGD::rule({.momentum = 0.9}), 0.1);
  both.add_group(optim::Parameters(model, is("bias")), optim::Adam::rule({}), 0.1);
  CHECK(both.momentum(0) == 0.9);
  CHECK(both.momentum(1) == 0.9);
  const auto without = both.state_dict();
  CHECK(std::none_of(without.begin(), without.end(), [](const auto& entry) { return entry.first.starts_with("momentum."); }));
  both.set_group_momentum(1, 0.7);
  CHECK(both.momentum(0) == 0.9);
  CHECK(both.momentum(1) == 0.7);
  const auto one_set = both.state_dict();
  both.set_momentum(0.1);
  CHECK(both.momentum(0) == 0.1);
  CHECK(both.momentum(1) == 0.1);
  both.load_state_dict(one_set);
  CHECK(both.momentum(0) == 0.9);
  CHECK(both.momentum(1) == 0.7);
  both.load_state_dict(without);
  CHECK(both.momentum(1) == 0.9);
  auto wrong = one_set;
  for (auto& [name, tensor] : wrong)
    if (name == "momentum.1") tensor = Tensor::from({1.0F, 0.5F, 0.0F});
  CHECK_THROWS_WITH(both.load_state_dict(wrong), Contains("the momentum of group 1 is 1.5"));
  CHECK(both.momentum(1) == 0.9);

  CHECK_THROWS_WITH(both.set_momentum(1), "optimizer: the momentum cannot be 1");
  CHECK_THROWS_WITH(both.set_momentum(NAN), "optimizer: the momentum cannot be nan");
  CHECK_THROWS_WITH(both.set_group_momentum(1, -0.1), "optimizer: the momentum cannot be -0.1");
  CHECK_THROWS_WITH(both.momentum(2), "SGD: there is no group 2, only 2");
  CHECK_THROWS_WITH(both.set_group_momentum(2, 0.5), "SGD: there is no group 2, only 2");
  CHECK_THROWS_WITH(optim::Optimizer().set_momentum(0.5), "optimizer: set_momentum() on an optimizer that was never made");
  for (const char* name : {"sgd", "asgd", "rprop", "rmsprop", "adagrad", "adadelta", "adafactor"}) {
    INFO(name);
    auto none = optim::make(name, model);
    CHECK_FALSE(none.momentum());
    CHECK_THROWS_WITH(none.set_momentum(0.5), Contains("has no momentum that could be set"));
    CHECK_THROWS_WITH(none.set_group_momentum(0, 0.5), Contains("group 0 has no momentum that could be set"));
  }
  CHECK_FALSE(optim::make("rmsprop", model, {.centered = true}).momentum());
  // A state with a momentum is not one of an optimizer without.
  optim::SGD plain(model, {.learning_rate = 0.1});
  auto state = plain.state_dict();
  state.emplace_back("momentum.0", Tensor::from({0.5F, 0.0F, 0.0F}));
  CHECK_THROWS_WITH(plain.load_state_dict(state), Contains("momentum.0 is not known"));

  // muon's second group has a beta1.
  nn::Linear matrix(2, 2);
  auto muon = optim::make("muon", matrix);
  muon.set_momentum(0.6);
  CHECK(muon.momentum(0) == 0.6);
  CHECK(muon.momentum(1) == 0.6);
}

TEST_CASE("a user's rule takes part in schedules of the momentum") {
  struct Velocity : optim::Rule {
    std::string name() const override { return "Velocity"; }
    std::optional<double> momentum() const override { return 0.5; }
    std::vector<State> states(const Shape&) const override { return {{"velocity"}}; }
    Result update(const Tensor& p, const Tensor& g, const std::vector<Tensor>& states, const Step& step) const override {
      const Tensor velocity = states[0] * step.momentum.value_or(0.5) + g;
      return {p - velocity * step.rate, {velocity}};
    }
  };
  nn::Parameter p(Tensor::from({0.0F}));
  optim::Optimizer optimizer(nn::NamedParameters{{"p", p}}, std::make_shared<Velocity>(), 1);
  const auto value = [&] { return p.value().to_vector<float>()[0]; };
  const std::vector<Tensor> ones{Tensor::from({1.0F})};
  optimizer.apply(ones);
  optimizer.apply(ones);
  CHECK(value() == -2.5F);
  optimizer.set_momentum(0);
  optimizer.apply(ones);
  CHECK(value() == -3.5F);
}

TEST_CASE("schedules of the momentum refuse options without sense") {
  CHECK_THROWS_WITH(optim::one_cycle_momentum(0), "one_cycle_momentum: total must be at least 1, not 0");
  CHECK_THROWS_WITH(optim::one_cycle_momentum(10, {.max_momentum = 1}), "one_cycle_momentum: max_momentum cannot be 1");
  CHECK_THROWS_WITH(optim::cyclic_momentum({.up = 0}), "cyclic_momentum: up must be at least 1, not 0");
  CHECK_THROWS_WITH(optim::cyclic_momentum({.base_momentum = -0.5}), "cyclic_momentum: base_momentum cannot be -0.5");
}
