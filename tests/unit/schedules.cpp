// Schedules against what PyTorch's schedulers do step by step.
#include <catch2/catch.hpp>
#include <cmath>

#include "clnet/clnet.h"

using namespace clnet;
using Catch::Contains;

namespace {

void require_same(const optim::Schedule& schedule, const std::function<double(int step)>& want, int steps = 40) {
  for (int step = 0; step < steps; ++step) {
    INFO("step " << step);
    CHECK(schedule(step) == Approx(want(step)).epsilon(1e-12).margin(1e-15));
  }
}

/// A scheduler that changes the rate of the step before.
std::function<double(int)> chain(double first, const std::function<double(double rate, int step)>& next) {
  return [=](int step) {
    double rate = first;
    for (int k = 1; k <= step; ++k) rate = next(rate, k);
    return rate;
  };
}

}  // namespace

TEST_CASE("schedules that multiply what was there") {
  require_same(optim::step_decay(0.2, 3, 0.5), chain(0.2, [](double r, int k) { return k % 3 == 0 ? r * 0.5 : r; }));
  require_same(optim::multi_step(0.2, {9, 4, 4}, 0.5), chain(0.2, [](double r, int k) {
                 return k == 4 ? r * 0.25 : k == 9 ? r * 0.5 : r;
               }));
  require_same(optim::exponential(0.2, 0.9), chain(0.2, [](double r, int) { return r * 0.9; }));
  require_same(optim::polynomial(0.2, 8, 2),
               chain(0.2, [](double r, int k) { return k > 8 ? r : r * std::pow((1 - k / 8.0) / (1 - (k - 1) / 8.0), 2); }));
  require_same(optim::linear(0.2, 5, 0.25, 2),
               chain(0.05, [](double r, int k) { return k > 5 ? r : r * (1 + (2 - 0.25) / (5 * 0.25 + (k - 1) * (2 - 0.25))); }));
  require_same(optim::constant_factor(0.2, 4, 0.5), chain(0.1, [](double r, int k) { return k == 4 ? r / 0.5 : r; }));
  require_same(optim::scaled(0.2, [](std::int64_t k) { return 1.0 / static_cast<double>(1 + k); }),
               [](int k) { return 0.2 / (1 + k); });
}

TEST_CASE("schedules that come back") {
  require_same(optim::cosine_restarts(0.2, 4, 2, 0.02), [](int step) {
    int at = 0, length = 4;
    for (int k = 0; k < step; ++k)
      if (++at == length) at = 0, length *= 2;
    return 0.02 + (0.2 - 0.02) * (1 + std::cos(std::acos(-1.0) * at / length)) / 2;
  });
  CHECK(optim::cosine_restarts(0.2, 4)(8) == 0.2);
  CHECK(optim::cosine_restarts(0.2, 1000, 1000000)(std::int64_t{1} << 62) <= 0.2);
  const std::vector<std::pair<optim::Cycle, std::function<double(int cycle, int step)>>> modes{
      {optim::Cycle::triangular, [](int, int) { return 1.0; }},
      {optim::Cycle::triangular2, [](int cycle, int) { return 1 / std::pow(2, cycle - 1); }},
      {optim::Cycle::exp_range, [](int, int step) { return std::pow(0.95, step); }}};
  for (const auto& [mode, scale] : modes)
    for (const int down : {0, 2})
      require_same(optim::cyclic(0.1, 0.5, {.up = 4, .down = down, .mode = mode, .gamma = 0.95}), [=, &scale = scale](int step) {
        const double total = 4 + (down == 0 ? 4 : down), ratio = 4 / total;
        const double cycle = std::floor(1 + step / total), x = 1 + step / total - cycle;
        const double height = x <= ratio ? x / ratio : (x - 1) / (ratio - 1);
        return 0.1 + 0.4 * height * scale(static_cast<int>(cycle), step);
      });
}

TEST_CASE("schedules made of schedules") {
  const auto both =
      optim::sequential({optim::constant_factor(0.2, 3, 0.1), optim::exponential(0.2, 0.9), optim::constant(1)}, {3, 6});
  for (const auto& [step, want] :
       std::vector<std::pair<int, double>>{{0, 0.02}, {2, 0.02}, {3, 0.2}, {5, 0.162}, {6, 1}, {60, 1}})
    CHECK(both(step) == Approx(want));
  const auto chained = optim::product({optim::constant_factor(0.2, 2, 0.5), optim::exponential(1, 0.9)});
  require_same(chained, [](int k) { return 0.2 * (k < 2 ? 0.5 : 1) * std::pow(0.9, k); });
}

TEST_CASE("one_cycle in equal parts and in three phases") {
  // OneCycleLR(max_lr=1, total_steps=20, pct_start=0.3, div_factor=10, final_div_factor=5)
  const auto rates = [](bool linear, bool three_phase) {
    return optim::one_cycle(1, 20, {.div = 10, .final_div = 5, .linear = linear, .three_phase = three_phase});
  };
  const auto require = [](const optim::Schedule& schedule, const std::vector<double>& want) {
    require_same(
        schedule, [&](int step) { return want[static_cast<std::size_t>(step)]; }, static_cast<int>(want.size()));
  };
  require(rates(true, false),
          {0.1, 0.28, 0.46, 0.64, 0.82, 1.0, 0.93, 0.86, 0.79, 0.72, 0.65, 0.58, 0.51, 0.44, 0.37, 0.3, 0.23, 0.16, 0.09, 0.02});
  const double fall = 0.08 / 9;
  require(rates(true, true), {0.1, 0.28, 0.46, 0.64, 0.82, 1.0, 0.82, 0.64, 0.46, 0.28, 0.1, 0.1 - fall, 0.1 - 2 * fall});
  const auto curved = rates(false, true);
  for (const auto& [step, want] : std::vector<std::pair<int, double>>{
           {1, 0.1859424}, {4, 0.9140576}, {5, 1}, {7, 0.6890576}, {10, 0.1}, {11, 0.0975877}, {18, 0.0224123}, {19, 0.02}})
    CHECK(curved(step) == Approx(want).epsilon(1e-6));
}

TEST_CASE("a rate that falls on a plateau") {
  const auto rates = [](const optim::PlateauOptions& options, const std::vector<double>& metrics) {
    optim::Plateau plateau(1, options);
    std::vector<double> result;
    for (const double metric : metrics) {
      // A state in between changes nothing.
      optim::Plateau next(0.5, options);
      next.load_state_dict(plateau.state_dict());
      plateau = next;
      result.push_back(plateau.step(metric));
    }
    return result;
  };
  using Rates = std::vector<double>;
  CHECK(rates({.factor = 0.5, .patience = 1}, {5, 4, 4, 4, 4, 4, 3, 3}) == Rates{1, 1, 1, 0.5, 0.5, 0.25, 0.25, 0.25});
  CHECK(rates({.factor = 0.5, .patience = 0, .cooldown = 2}, {5, 5, 5, 5, 5, 5}) == Rates{1, 0.5, 0.5, 0.5, 0.25, 0.25});
  CHECK(rates({.maximize = true, .factor = 0.5, .patience = 0}, {5, 6, 5, NAN, 7}) == Rates{1, 1, 0.5, 0.25, 0.25});
  // 10 % better counts, less does not; the bar stays where the best was.
  CHECK(rates({.factor = 0.5, .patience = 0, .threshold = 0.1}, {10, 9.5, 8.9}) == Rates{1, 0.5, 0.5});
  CHECK(rates({.factor = 0.5, .patience = 0, .threshold = 1, .relative = false}, {10, 9.5, 8.9}) == Rates{1, 0.5, 0.5});
  CHECK(rates({.factor = 0.1, .patience = 0, .min_rate = 0.3}, {1, 1, 1}) == Rates{1, 0.3, 0.3});
  CHECK(rates({.factor = 0.5, .patience = 0, .eps = 0.3}, {1, 1, 1}) == Rates{1, 0.5, 0.5});
  optim::Plateau odd(0.1);
  CHECK(odd.state_dict()[0].second.to_vector<float>().size() == 3);
  optim::Plateau same(1);
  same.load_state_dict(odd.state_dict());
  CHECK(same.rate() == 0.1);
  auto state = odd.state_dict();
  state.pop_back();
  CHECK_THROWS_WITH(same.load_state_dict(state), "the state does not fit the plateau: cooldown is missing");
  CHECK_THROWS_WITH(optim::Plateau(1, {.factor = 1}), "plateau: factor cannot be 1");
  CHECK_THROWS_AS(optim::Plateau(-1), Error);
}

TEST_CASE("schedules refuse options without sense") {
  CHECK_THROWS_WITH(optim::polynomial(1, 0), "polynomial: total must be at least 1, not 0");
  CHECK_THROWS_AS(optim::linear(1, 0), Error);
  CHECK_THROWS_WITH(optim::one_cycle(1, 10, {.div = 0}), "one_cycle: div cannot be 0");
  CHECK_THROWS_WITH(optim::linear(1, 3, -1), "linear: first cannot be -1");
  CHECK_THROWS_AS(optim::constant_factor(1, -1), Error);
  CHECK_THROWS_AS(optim::cosine_restarts(1, 0), Error);
  CHECK_THROWS_AS(optim::cosine_restarts(1, 3, 0), Error);
  CHECK_THROWS_AS(optim::cyclic(1, 2, {.up = 0}), Error);
  CHECK_THROWS_AS(optim::cyclic(1, 2, {.up = std::numeric_limits<std::int64_t>::max()}), Error);
  CHECK_THROWS_WITH(optim::exponential(1, NAN), "exponential: gamma cannot be nan");
  CHECK_THROWS_WITH(optim::sequential({optim::constant(1)}, {3}), Contains("one milestone less"));
  CHECK_THROWS_AS(optim::sequential({optim::constant(1), optim::constant(1), optim::constant(1)}, {3, 3}), Error);
  CHECK_THROWS_WITH(optim::sequential({nullptr}, {}), "sequential: an empty schedule");
  CHECK_THROWS_AS(optim::product({}), Error);
  CHECK_THROWS_AS(optim::warm_up(3, nullptr), Error);
  CHECK_THROWS_AS(optim::scaled(1, nullptr), Error);
}

TEST_CASE("optimizers refuse options without sense, each by its name") {
  struct One : nn::Module {
    nn::Parameter p = add_parameter("p", ones({2, 2}));
    Tensor forward(const Tensor& x) override { return x; }
  } m;
  CHECK_THROWS_WITH(optim::SGD(m, {.momentum = 0.9, .dampening = 0.1, .nesterov = true}),
                    "SGD: nesterov's dampening cannot be 0.1");
  CHECK_THROWS_WITH(optim::SGD(m, {.learning_rate = NAN}), "SGD: learning_rate cannot be nan");
  CHECK_THROWS_WITH(optim::SGD(m, {.learning_rate = INFINITY}), "SGD: learning_rate cannot be inf");
  CHECK_THROWS_WITH(optim::SGD(m, {.clip_norm = -1}), "SGD: clip_norm cannot be -1");
  CHECK_THROWS_WITH(optim::ASGD(m, {.lambda = NAN}), "ASGD: lambda cannot be nan");
  CHECK_THROWS_WITH(optim::Rprop(m, {.shrink = 1}), "Rprop: shrink cannot be 1");
  CHECK_THROWS_WITH(optim::Rprop(m, {.min_step = 2, .max_step = 1}), "Rprop: max_step cannot be 1");
  CHECK_THROWS_WITH(optim::LARS(m, {.trust = -1}), "LARS: trust cannot be -1");
  CHECK_THROWS_WITH(optim::LARS(m, {.momentum = 0, .nesterov = true}), "LARS: nesterov's momentum cannot be 0");
  CHECK_THROWS_WITH(optim::Muon(m, {.iterations = 0}), "Muon: iterations cannot be 0");
  CHECK_THROWS_WITH(optim::AdamW(m, {.weight_decay = -1}), "AdamW: weight_decay cannot be -1");
  CHECK_THROWS_WITH(optim::NAdam(m, {.beta1 = 1}), "NAdam: beta1 cannot be 1");
  CHECK_THROWS_WITH(optim::RAdam(m, {.beta2 = NAN}), "RAdam: beta2 cannot be nan");
  CHECK_THROWS_WITH(optim::Adamax(m, {.eps = -1}), "Adamax: eps cannot be -1");
  CHECK_THROWS_WITH(optim::LAMB(m, {.learning_rate = -1}), "LAMB: learning_rate cannot be -1");
  CHECK_THROWS_WITH(optim::LAMB(m, {.weight_decay = -1}), "LAMB: weight_decay cannot be -1");
  CHECK_THROWS_WITH(optim::Lion(m, {.beta2 = 1}), "Lion: beta2 cannot be 1");
  CHECK_THROWS_WITH(optim::RMSprop(m, {.alpha = -1}), "RMSprop: alpha cannot be -1");
  CHECK_THROWS_WITH(optim::Adagrad(m, {.lr_decay = -1}), "Adagrad: lr_decay cannot be -1");
  CHECK_THROWS_WITH(optim::Adadelta(m, {.rho = 1.5}), "Adadelta: rho cannot be 1.5");
  CHECK_THROWS_WITH(optim::Adafactor(m, {.d = 0.5}), "Adafactor: d cannot be 0.5");
  CHECK_THROWS_WITH(optim::LBFGS(m, {.history_size = 0}), "LBFGS: history_size cannot be 0");
}
