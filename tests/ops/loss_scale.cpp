// Loss scaling: what a step with and without an infinite gradient does, for all rules, with sums, groups, clipping and
// checkpoints.
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "clnet/clnet.h"
#include "lib/exec/statistics.h"
#include "tests/ops/values.h"

using namespace clnet;
using testing::ramp;

namespace {

constexpr float infinite = std::numeric_limits<float>::infinity();

struct Affine : nn::Module {
  nn::Parameter matrix = add_parameter("matrix", ramp({3, 4}, 0.5F, 0.1F)), vector = add_parameter("vector", ramp({4}, 0.3F, 1));
  Tensor forward(const Tensor& x) override { return matmul(x, matrix) + vector; }
};

/// The loss of step i; `factor` infinite makes gradients that are none.
Tensor loss_of(Affine& net, int i, float factor = 1) {
  return mean(square(net(ramp({5, 3}, 1, static_cast<float>(i)))) * Tensor::scalar(factor));
}

/// All that a step may change but the loss scale itself, by name.
std::vector<std::pair<std::string, std::vector<float>>> everything(const Affine& net, const optim::Optimizer& optimizer) {
  std::vector<std::pair<std::string, std::vector<float>>> all;
  for (const auto& [name, parameter] : net.parameters()) all.emplace_back(name, parameter.value().to_vector<float>());
  for (const auto& [name, tensor] : optimizer.state_dict())
    if (name.find('.') != std::string::npos) all.emplace_back(name, tensor.to_vector<float>());
  return all;
}

void require_close(const Affine& a, const Affine& b, double tolerance) {
  const auto first = a.parameters(), second = b.parameters();
  for (std::size_t i = 0; i < first.size(); ++i) {
    const auto x = first[i].second.value().to_vector<float>(), y = second[i].second.value().to_vector<float>();
    for (std::size_t j = 0; j < x.size(); ++j) REQUIRE(x[j] == Approx(y[j]).epsilon(tolerance).margin(tolerance));
  }
}

using Make = std::function<optim::Optimizer(const nn::Module&)>;
const std::vector<std::pair<std::string, Make>>& rules() {
  static const std::vector<std::pair<std::string, Make>> all{
      {"SGD", [](const nn::Module& m) { return optim::SGD(m, {.learning_rate = 0.1}); }},
      {"momentum",
       [](const nn::Module& m) { return optim::SGD(m, {.learning_rate = 0.1, .momentum = 0.9, .weight_decay = 0.01}); }},
      {"nesterov", [](const nn::Module& m) { return optim::SGD(m, {.learning_rate = 0.1, .momentum = 0.9, .nesterov = true}); }},
      {"dampened", [](const nn::Module& m) { return optim::SGD(m, {.learning_rate = 0.1, .momentum = 0.9, .dampening = 0.5}); }},
      {"Adam", [](const nn::Module& m) { return optim::Adam(m, {.learning_rate = 0.01}); }},
      {"AdamW", [](const nn::Module& m) { return optim::AdamW(m, {.learning_rate = 0.01, .weight_decay = 0.1}); }},
      {"clipped",
       [](const nn::Module& m) { return optim::Adam(m, {.learning_rate = 0.01, .clip_norm = 0.1, .clip_value = 0.05}); }},
      {"amsgrad", [](const nn::Module& m) { return optim::Adam(m, {.learning_rate = 0.01, .amsgrad = true}); }},
      {"NAdam", [](const nn::Module& m) { return optim::NAdam(m, {.learning_rate = 0.01}); }},
      {"RAdam", [](const nn::Module& m) { return optim::RAdam(m, {.learning_rate = 0.01}); }},
      {"RAdam, short", [](const nn::Module& m) { return optim::RAdam(m, {.learning_rate = 0.01, .beta2 = 0.9}); }},
      {"Adamax", [](const nn::Module& m) { return optim::Adamax(m, {.learning_rate = 0.01}); }},
      {"LAMB", [](const nn::Module& m) { return optim::LAMB(m, {.learning_rate = 0.01, .weight_decay = 0.01}); }},
      {"Lion", [](const nn::Module& m) { return optim::Lion(m, {.learning_rate = 0.01}); }},
      {"RMSprop", [](const nn::Module& m) { return optim::RMSprop(m, {.learning_rate = 0.01}); }},
      {"RMSprop, momentum", [](const nn::Module& m) { return optim::RMSprop(m, {.learning_rate = 0.01, .momentum = 0.9}); }},
      {"RMSprop, centered", [](const nn::Module& m) { return optim::RMSprop(m, {.learning_rate = 0.01, .centered = true}); }},
      {"Adagrad", [](const nn::Module& m) { return optim::Adagrad(m, {.learning_rate = 0.01, .lr_decay = 0.1}); }},
      {"Adadelta", [](const nn::Module& m) { return optim::Adadelta(m); }},
      {"Adafactor", [](const nn::Module& m) { return optim::Adafactor(m); }},
      {"ASGD", [](const nn::Module& m) { return optim::ASGD(m, {.learning_rate = 0.1, .lambda = 0.01, .t0 = 2}); }},
      {"Rprop", [](const nn::Module& m) { return optim::Rprop(m); }},
      {"LARS", [](const nn::Module& m) { return optim::LARS(m, {.learning_rate = 1}); }}};
  return all;
}

}  // namespace

TEST_CASE("loss scale: every rule steps as without, to f32 rounding, and skipped steps do not count") {
  for (const auto& [name, make] : rules()) {
    INFO(name);
    Affine plain, scaled;
    auto without = make(plain), with = make(scaled);
    with.set_loss_scale();
    for (int i = 0; i < 12; ++i) {
      const auto loss = without.step(loss_of(plain, i));
      CHECK(with.step(loss_of(scaled, i)).item<float>() == Approx(loss.item<float>()).epsilon(1e-4));
      if (i % 4 != 1) continue;
      const auto before = everything(scaled, with);
      const auto scale = with.loss_scale().item<float>();
      const auto made = with.steps_made().item<std::int64_t>();
      with.step(loss_of(scaled, i, infinite));
      CHECK(everything(scaled, with) == before);
      CHECK(with.loss_scale().item<float>() == scale / 2);
      CHECK(with.steps_made().item<std::int64_t>() == made);
    }
    CHECK(with.steps_made().item<std::int64_t>() == 12);
    CHECK(with.steps() == 15);
    require_close(plain, scaled, 2e-5);
  }
}

TEST_CASE("loss scale: a rule of one's own is skipped, too, and told the count") {
  struct Counting : optim::Rule {
    std::string name() const override { return "Counting"; }
    std::vector<State> states(const Shape&) const override { return {{"count"}}; }
    Result update(const Tensor& p, const Tensor& g, const std::vector<Tensor>& states, const Step& step) const override {
      return {p - g * 0.1, {states[0] * 0.0 + step.made}};
    }
  };
  Affine net;
  optim::Optimizer optimizer(net, std::make_shared<Counting>(), 0.1);
  optimizer.set_loss_scale({.initial = 8});
  optimizer.step(loss_of(net, 0));
  optimizer.step(loss_of(net, 1, std::numeric_limits<float>::quiet_NaN()));
  CHECK(everything(net, optimizer)[2].second[0] == 1);
  optimizer.step(loss_of(net, 2));
  CHECK(everything(net, optimizer)[2].second[0] == 2);
  CHECK(optimizer.loss_scale().item<float>() == 4);
}

TEST_CASE("loss scale: grows after good steps in a row, within bounds") {
  Affine net;
  optim::SGD sgd(net, {.learning_rate = 0});
  sgd.set_loss_scale({.initial = 4, .growth = 4, .interval = 3});
  std::vector<float> scales;
  for (int i = 0; i < 10; ++i) {
    sgd.step(loss_of(net, i, i == 1 ? infinite : 1));
    scales.push_back(sgd.loss_scale().item<float>());
  }
  CHECK(scales == std::vector<float>{4, 2, 2, 2, 8, 8, 8, 32, 32, 32});
  sgd.set_loss_scale({.initial = 0x1p99, .growth = 1e10, .interval = 1});
  sgd.step(loss_of(net, 0, 0x1p-90F));
  CHECK(sgd.loss_scale().item<float>() == 0x1p100F);
  sgd.set_loss_scale({.initial = 0x1p-99, .backoff = 0.01, .interval = 0});
  for (int i = 0; i < 3; ++i) sgd.step(loss_of(net, 0, infinite));
  CHECK(sgd.loss_scale().item<float>() == 0x1p-100F);
  sgd.step(loss_of(net, 0));
  CHECK(sgd.loss_scale().item<float>() == 0x1p-100F);
  CHECK_THROWS_AS(sgd.set_loss_scale({.initial = 0}), Error);
  CHECK_THROWS_AS(sgd.set_loss_scale({.growth = 0.5}), Error);
  CHECK_THROWS_AS(sgd.set_loss_scale({.backoff = 2}), Error);
  CHECK_THROWS_AS(sgd.set_loss_scale({.interval = -1}), Error);
}

TEST_CASE("loss scale: one evaluation per step and plans that are used again") {
  Affine net;
  optim::Adam adam(net, {.learning_rate = 0.01});
  adam.set_loss_scale();
  for (int i = 0; i < 3; ++i) adam.step(loss_of(net, i));
  const auto before = exec::statistics();
  for (int i = 3; i < 6; ++i) adam.step(loss_of(net, i, i == 4 ? infinite : 1));
  CHECK(exec::statistics().evaluations == before.evaluations + 3);
  CHECK(exec::statistics().plans_made == before.plans_made);
}

TEST_CASE("loss scale: sums of several losses, given gradients and what is not reached") {
  Affine plain, scaled;
  optim::Adam without(plain, {.learning_rate = 0.01}), with(scaled, {.learning_rate = 0.01});
  with.set_loss_scale();
  for (int i = 0; i < 4; ++i) {
    without.accumulate(loss_of(plain, i));
    with.accumulate(loss_of(scaled, i));
    without.step(loss_of(plain, i + 1));
    with.step(loss_of(scaled, i + 1));
  }
  require_close(plain, scaled, 1e-5);
  // One part that is no number spoils the sum, which is cleared with the step.
  const auto before = everything(scaled, with);
  with.accumulate(loss_of(scaled, 0, infinite));
  with.accumulate(loss_of(scaled, 1));
  with.step();
  CHECK(everything(scaled, with) == before);
  CHECK(with.loss_scale().item<float>() == 32768);
  without.step(loss_of(plain, 7));
  with.step(loss_of(scaled, 7));
  require_close(plain, scaled, 1e-5);

  const std::vector<Tensor> given{ramp({3, 4}, 1, 0), ramp({4}, 1, 0)};
  without.apply(given);
  with.apply(given);
  require_close(plain, scaled, 1e-5);
  const auto then = everything(scaled, with);
  with.apply({given[0], given[1] * infinite});
  CHECK(everything(scaled, with) == then);

  const auto matrix = scaled.matrix.value().to_vector<float>();
  with.step(sum(square(Tensor(scaled.vector))));
  CHECK(scaled.matrix.value().to_vector<float>() == matrix);
  CHECK_THROWS_AS(with.step(scaled(ramp({5, 3}, 1, 0))), ShapeError);
}

TEST_CASE("loss scale: its state goes with the optimizer's") {
  Affine net, copy;
  optim::Adam adam(net, {.learning_rate = 0.01}), other(copy, {.learning_rate = 0.01});
  for (int i = 0; i < 2; ++i) adam.step(loss_of(net, i));
  adam.set_loss_scale({.initial = 1024, .interval = 3});
  for (int i = 0; i < 3; ++i) adam.step(loss_of(net, i, i == 0 ? infinite : 1));
  CHECK(adam.steps_made().item<std::int64_t>() == 4);
  CHECK_THROWS_AS(other.load_state_dict(adam.state_dict()), Error);
  other.set_loss_scale({.initial = 2, .interval = 3});
  copy.load_state_dict(net.state_dict());
  other.load_state_dict(adam.state_dict());
  CHECK(other.loss_scale().item<float>() == 512);
  CHECK(other.steps_made().item<std::int64_t>() == 4);
  for (int i = 3; i < 6; ++i) {
    adam.step(loss_of(net, i));
    other.step(loss_of(copy, i));
  }
  CHECK(everything(net, adam) == everything(copy, other));
  CHECK(other.loss_scale().item<float>() == 1024);
  optim::Adam none(net);
  CHECK_FALSE(none.loss_scale().defined());
  CHECK_FALSE(none.steps_made().defined());
}

TEST_CASE("loss scale: another one goes on counting the steps that were made") {
  Affine plain, scaled;
  optim::Adam without(plain, {.learning_rate = 0.01}), with(scaled, {.learning_rate = 0.01});
  with.set_loss_scale();
  for (int i = 0; i < 5; ++i) with.step(loss_of(scaled, i, infinite));
  with.set_loss_scale({.initial = 8});
  CHECK(with.steps_made().item<std::int64_t>() == 0);
  for (int i = 0; i < 3; ++i) {
    without.step(loss_of(plain, i));
    with.step(loss_of(scaled, i));
  }
  CHECK(with.steps_made().item<std::int64_t>() == 3);
  require_close(plain, scaled, 1e-5);
}

TEST_CASE("loss scale: a step that was skipped is none that a parameter missed") {
  // Each has to move as one that was there for its own steps alone.
  Affine plain, scaled, copy;
  optim::Adam without(plain, {.learning_rate = 0.01}), with(scaled, {.learning_rate = 0.01}),
      other(copy, {.learning_rate = 0.01});
  nn::Parameter late(ramp({4}, 0.3F, 2)), late_plain(ramp({4}, 0.3F, 2)), late_copy(ramp({4}, 0.3F, 2));
  with.set_loss_scale();
  other.set_loss_scale();
  scaled.matrix.freeze();
  for (int i = 0; i < 6; ++i) with.step(loss_of(scaled, i, infinite));
  scaled.matrix.freeze(false);
  with.add_group(nn::NamedParameters{{"late", late}}, {.learning_rate = 0.01});
  const auto both = [&](Affine& net, const nn::Parameter& more, int i) { return loss_of(net, i) + mean(square(Tensor(more))); };
  const auto state_of = [](const optim::Optimizer& optimizer, const std::string& name) -> std::int64_t {
    for (const auto& [key, tensor] : optimizer.state_dict())
      if (key == name) return tensor.item<std::int64_t>();
    return -1;
  };
  for (int i = 0; i < 3; ++i) with.step(both(scaled, late, i));
  without.add_group(nn::NamedParameters{{"late", late_plain}}, {.learning_rate = 0.01});
  for (int i = 0; i < 3; ++i) without.step(both(plain, late_plain, i));
  require_close(plain, scaled, 1e-5);
  CHECK(state_of(with, "matrix.step") == 3);
  CHECK(state_of(with, "late.step") == 3);

  // One step that is made without the matrix, and one that is not; plans are used again.
  for (int i = 0; i < 3; ++i) {
    scaled.matrix.freeze();
    const auto plans = exec::statistics().plans_made;
    with.step(both(scaled, late, i));
    with.step(both(scaled, late, i) * infinite);
    scaled.matrix.freeze(false);
    plain.matrix.freeze();
    without.step(both(plain, late_plain, i));
    plain.matrix.freeze(false);
    with.step(both(scaled, late, i));
    without.step(both(plain, late_plain, i));
    if (i == 2) CHECK(exec::statistics().plans_made == plans);
  }
  require_close(plain, scaled, 1e-5);
  CHECK(state_of(with, "matrix.step") == 6);
  CHECK(late.value().to_vector<float>()[1] == Approx(late_plain.value().to_vector<float>()[1]).epsilon(1e-5));

  other.add_group(nn::NamedParameters{{"late", late_copy}}, {.learning_rate = 0.01});
  copy.load_state_dict(scaled.state_dict());
  late_copy.set(late);
  other.load_state_dict(with.state_dict());
  for (int i = 0; i < 2; ++i) {
    with.step(both(scaled, late, i));
    other.step(both(copy, late_copy, i));
  }
  CHECK(copy.matrix.value().to_vector<float>() == scaled.matrix.value().to_vector<float>());
  CHECK(late_copy.value().to_vector<float>() == late.value().to_vector<float>());
  CHECK(state_of(other, "matrix.step") == 8);
}

TEST_CASE("loss scale: without it again, every rule goes on with the steps that were made") {
  for (const auto& [name, make] : rules()) {
    INFO(name);
    Affine plain, scaled, copy;
    auto without = make(plain), with = make(scaled), other = make(copy);
    with.remove_loss_scale();
    with.set_loss_scale();
    const auto step = [&](int i) {
      without.step(loss_of(plain, i));
      with.step(loss_of(scaled, i));
    };
    for (int i = 0; i < 3; ++i) with.step(loss_of(scaled, i, infinite));
    step(0);
    for (auto* net : {&plain, &scaled}) net->vector.freeze();
    step(1);
    with.step(loss_of(scaled, 1, infinite));
    for (auto* net : {&plain, &scaled}) net->vector.freeze(false);
    with.remove_loss_scale();
    CHECK_FALSE(with.loss_scale().defined());
    CHECK_FALSE(with.steps_made().defined());
    CHECK(with.steps() == 6);
    copy.load_state_dict(scaled.state_dict());
    other.load_state_dict(with.state_dict());
    for (int i = 2; i < 5; ++i) {
      step(i);
      other.step(loss_of(copy, i));
    }
    require_close(plain, scaled, 2e-5);
    CHECK(everything(copy, other) == everything(scaled, with));
    // A step that would have been skipped is made.
    const auto before = everything(scaled, with);
    with.step(loss_of(scaled, 0, std::numeric_limits<float>::quiet_NaN()));
    CHECK(everything(scaled, with) != before);
    with.set_loss_scale();
    CHECK(with.steps_made().item<std::int64_t>() == 10);
  }
}

TEST_CASE("loss scale: f16 parameters and gradients that would vanish") {
  struct Half : nn::Module {
    nn::Parameter w = add_parameter("w", cast(ramp({8}, 1, 0.2F), Dtype::f16));
    Tensor forward(const Tensor& x) override { return sum(cast(w * x, Dtype::f32)) * 1e-8; }
  };
  Half plain, scaled;
  const Tensor x = cast(ramp({8}, 1, 0.9F), Dtype::f16);
  optim::SGD without(plain, {.learning_rate = 1e7}), with(scaled, {.learning_rate = 1e7});
  with.set_loss_scale();
  const auto before = plain.w.value().to_vector<float>();
  without.step(plain(x));
  with.step(scaled(x));
  CHECK(plain.w.value().to_vector<float>() == before);
  const auto after = scaled.w.value().to_vector<float>(), slope = x.to_vector<float>();
  for (std::size_t i = 0; i < after.size(); ++i) CHECK(after[i] == Approx(before[i] - 0.1F * slope[i]).margin(2e-3));
}
