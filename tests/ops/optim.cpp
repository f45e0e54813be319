// The optimizers' formulas, as PyTorch's documentation states them, in double precision over several steps and many parameters.
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>

#include "clnet/clnet.h"
#include "lib/exec/launch/recorder.h"
#include "lib/exec/statistics.h"
#include "lib/graph/node.h"
#include "lib/graph/op.h"
#include "lib/ops/optimize/optimizer_update.h"

using namespace clnet;

namespace {

/// Parameters of many sizes, among them an empty one and one that ends within a vector and a chunk.
class Many : public nn::Module {
 public:
  Many() {
    std::int64_t which = 0;
    for (std::int64_t size : {1, 3, 8, 0, 17, 300, 9001, 2, 5, 64, 33}) {
      std::vector<float> values;
      for (std::int64_t i = 0; i < size; ++i) values.push_back(std::sin(static_cast<float>(i + 10 * which)));
      add_parameter("p" + std::to_string(which++), Tensor::from(values, Shape{size}));
    }
  }
  Tensor forward(const Tensor& x) override { return x; }
};

struct State {
  double m = 0, v = 0;
};
using ElementFormula = std::function<void(double& p, double g, State& state, int t)>;

void check_elements(const std::function<optim::Optimizer(const nn::Module&)>& make, const ElementFormula& formula) {
  Many model;
  auto optimizer = make(model);
  std::vector<std::vector<double>> values;
  std::vector<std::vector<State>> states;
  for (const auto& [name, parameter] : model.parameters()) {
    const auto now = parameter.value().to_vector<float>();
    values.emplace_back(now.begin(), now.end());
    states.emplace_back(now.size());
  }
  for (int t = 1; t <= 4; ++t) {
    std::vector<Tensor> gradients;
    for (std::size_t k = 0; k < values.size(); ++k) {
      std::vector<float> gradient;
      for (std::size_t i = 0; i < values[k].size(); ++i) {
        const auto g = static_cast<float>(std::cos(static_cast<double>(i + 3 * k) + 0.7 * t) + 0.1);
        gradient.push_back(g);
        formula(values[k][i], g, states[k][i], t);
      }
      gradients.push_back(Tensor::from(gradient, Shape{static_cast<std::int64_t>(gradient.size())}));
    }
    const auto kernels = exec::statistics().kernels;
    optimizer.apply(gradients);
    CHECK(exec::statistics().kernels - kernels <= 3);  // ten parameters with elements
  }
  const auto parameters = model.parameters();
  for (std::size_t k = 0; k < values.size(); ++k) {
    const auto got = parameters[k].second.value().to_vector<float>();
    REQUIRE(got.size() == values[k].size());
    for (std::size_t i = 0; i < got.size(); ++i)
      if (!(std::abs(got[i] - values[k][i]) <= 2e-6 * (1 + std::abs(values[k][i])))) {
        INFO("parameter " << k << ", element " << i);
        CHECK(got[i] == Approx(values[k][i]));
        return;
      }
  }
}

}  // namespace

TEST_CASE("SGD") {
  check_elements(
      [](const auto& m) {
        return optim::SGD{m, {.learning_rate = 0.1, .weight_decay = 0.01}};
      },
      [](double& p, double g, State&, int) { p -= 0.1 * (g + 0.01 * p); });
  for (const bool nesterov : {false, true})
    check_elements(
        [=](const auto& m) {
          return optim::SGD{m, {.learning_rate = 0.1, .momentum = 0.9, .nesterov = nesterov}};
        },
        [=](double& p, double g, State& s, int t) {
          s.m = t == 1 ? g : 0.9 * s.m + g;
          p -= 0.1 * (nesterov ? g + 0.9 * s.m : s.m);
        });
}

TEST_CASE("Adam and AdamW") {
  // Betas, too, of which 1 - beta is no longer right when f32 makes it.
  for (const auto& [beta1, beta2] : {std::pair{0.8, 0.95}, std::pair{0.9, 0.99999}, std::pair{0.9999, 0.95}})
    for (const bool decoupled : {false, true}) {
      CAPTURE(beta1, beta2, decoupled);
      const auto make = [&, b1 = beta1, b2 = beta2](const nn::Module& m) -> optim::Optimizer {
        if (decoupled)
          return optim::AdamW{m, {.learning_rate = 0.01, .beta1 = b1, .beta2 = b2, .eps = 1e-6, .weight_decay = 0.1}};
        return optim::Adam{m, {.learning_rate = 0.01, .beta1 = b1, .beta2 = b2, .eps = 1e-6, .weight_decay = 0.1}};
      };
      check_elements(make, [&, b1 = beta1, b2 = beta2](double& p, double g, State& s, int t) {
        if (decoupled)
          p -= 0.01 * 0.1 * p;
        else
          g += 0.1 * p;
        s.m = b1 * s.m + (1 - b1) * g;
        s.v = b2 * s.v + (1 - b2) * g * g;
        const double mean = s.m / (1 - std::pow(b1, t)), square = s.v / (1 - std::pow(b2, t));
        p -= 0.01 * mean / (std::sqrt(square) + 1e-6);
      });
    }
}

TEST_CASE("RMSprop") {
  for (const double alpha : {0.9, 0.9999})
    for (const double momentum : {0.0, 0.9}) {
      CAPTURE(alpha, momentum);
      const double rate = 0.03 * std::sqrt(1 - alpha);
      check_elements(
          [=](const auto& m) {
            return optim::RMSprop{m, {.learning_rate = rate, .alpha = alpha, .weight_decay = 0.01, .momentum = momentum}};
          },
          [=](double& p, double g, State& s, int) {
            g += 0.01 * p;
            s.v = alpha * s.v + (1 - alpha) * g * g;
            const double scaled = g / (std::sqrt(s.v) + 1e-8);
            s.m = momentum * s.m + scaled;
            p -= rate * s.m;
          });
    }
}

TEST_CASE("a launch of an optimizer counts the work-items of its tensors in 32 bits") {
  const Tensor large = zeros({1 << 30}), small = zeros({8}), one = Tensor::scalar(1);
  const auto updated = ops::optimizer_update(ops::UpdateRule::sgd, {{large, large, {}}, {large, large, {}}, {small, small, {}}},
                                             {}, {one, one, one, one, one});
  const auto& node = *node_of(updated[0]);
  DeviceInfo gpu;
  gpu.max_work_group_size = 256;
  gpu.max_parameter_size = 4096;
  exec::Recording recording;
  std::vector<exec::ValueId> inputs, outputs;
  for (const auto& input : node.inputs) inputs.push_back(recording.add_leaf(input.spec(), input.same(one)));
  for (const auto& spec : node.outputs) outputs.push_back(recording.add_value(spec));
  const exec::Choosing choosing;
  exec::Recorder recorder(recording, gpu, choosing, inputs, outputs);
  node.op->lower(recorder);
  // The first large one, and the second with the small one.
  REQUIRE(recording.commands().size() == 2);
  for (const auto& command : recording.commands()) CHECK(std::get<exec::Launch>(command).global()[0] <= std::size_t{1} << 31);
}

TEST_CASE("parameters that a loss does not reach stay untouched") {
  class Two : public nn::Module {
   public:
    Two() {
      add_parameter("near", Tensor::from({1.0F, 2.0F}));
      add_parameter("far", Tensor::from({3.0F, 4.0F}));
    }
    Tensor forward(const Tensor& x) override { return x; }
  };
  using Values = std::vector<std::vector<float>>;
  const std::vector<std::function<optim::Optimizer(const nn::Module&)>> makers{
      [](const nn::Module& m) {
        return optim::SGD{m, {.learning_rate = 0.1, .momentum = 0.9, .weight_decay = 0.1}};
      },
      [](const nn::Module& m) {
        return optim::Adam{m, {.weight_decay = 0.1, .clip_norm = 1}};
      },
      [](const nn::Module& m) {
        return optim::AdamW{m, {.weight_decay = 0.1}};
      },
      [](const nn::Module& m) {
        return optim::RMSprop{m, {.weight_decay = 0.1, .momentum = 0.9}};
      }};
  for (const auto& make : makers) {
    Two model;
    auto optimizer = make(model);
    const auto near = model.parameters()[0].second, far = model.parameters()[1].second;
    const auto far_values = [&] {
      Values values{far.value().to_vector<float>()};
      for (const auto& [name, tensor] : optimizer.state_dict())
        if (name.starts_with("far") && name != "far.step") values.push_back(tensor.to_vector<float>());
      return values;
    };
    optimizer.step(sum(near.value() * far.value()));
    const auto before = far_values();
    CHECK(before[0] != std::vector<float>{3, 4});
    CHECK(before[1] != std::vector<float>{0, 0});
    const auto moved = near.value().to_vector<float>();
    optimizer.step(sum(square(near.value())));
    CHECK(far_values() == before);
    CHECK(near.value().to_vector<float>() != moved);
    // No gradient comes back through a comparison.
    optimizer.step(sum(near.value() * cast(greater(far.value(), 0.0), Dtype::f32)));
    CHECK(far_values() == before);
    CHECK(optimizer.steps() == 3);
    optimizer.step(sum(far.value()));
    CHECK(far_values() != before);
    const auto steps = optimizer.steps();
    CHECK_THROWS_WITH(optimizer.step(sum(ones({2}))), Catch::Contains("depends on none of its 2 parameters"));
    CHECK(optimizer.steps() == steps);
  }
}

TEST_CASE("an optimizer of no parameters is refused") {
  CHECK_THROWS_WITH(optim::Adam(nn::NamedParameters{}), "Adam: there are no parameters to optimize");
  CHECK_THROWS_WITH(optim::make("muon", nn::NamedParameters{}), "AdamW: there are no parameters to optimize");
}

TEST_CASE("an optimizer that was never made says so whatever is asked of it") {
  optim::Optimizer none;
  CHECK_FALSE(none);
  CHECK_THROWS_WITH(none.steps(), "optimizer: steps() on an optimizer that was never made");
  CHECK_THROWS_AS(none.learning_rate(), Error);
  CHECK_THROWS_AS(none.set_learning_rate(1), Error);
  CHECK_THROWS_AS(none.state_dict(), Error);
  CHECK_THROWS_AS(none.load_state_dict({}), Error);
  CHECK_THROWS_AS(none.step(ones({})), Error);
  CHECK_THROWS_AS(none.apply({}), Error);
}

TEST_CASE("a parameter that a loss sees only through stop_gradient stays untouched") {
  struct Two : nn::Module {
    nn::Parameter a = add_parameter("a", ones({2})), b = add_parameter("b", ones({2}));
    Tensor forward(const Tensor& x) override { return x; }
  } model;
  optim::AdamW optimizer(model, {.learning_rate = 0.1, .weight_decay = 0.5});
  optimizer.step(mean(stop_gradient(model.a.value()) * model.b.value()));
  CHECK(model.a.value().to_vector<float>() == std::vector<float>{1, 1});
  CHECK(model.b.value().to_vector<float>()[0] < 1);
}

TEST_CASE("any operation may say that it ends gradients: parameters behind it stay untouched") {
  struct Wall : Op {
    std::string_view name() const override { return "wall"; }
    Specs infer(const Specs& inputs) const override { return inputs; }
    Expression expr(const Specs&) const override { return {"a"}; }
    std::optional<std::span<const Tensor>> differentiated() const override { return std::span<const Tensor>(); }
  };
  struct Two : nn::Module {
    nn::Parameter a = add_parameter("a", ones({2})), b = add_parameter("b", ones({2}));
    Tensor forward(const Tensor& x) override { return x; }
  } model;
  optim::AdamW optimizer(model, {.learning_rate = 0.1, .weight_decay = 0.5});
  optimizer.step(mean(apply(std::make_shared<Wall>(), {model.a.value()}) * model.b.value()));
  CHECK(model.a.value().to_vector<float>() == std::vector<float>{1, 1});
  CHECK(model.b.value().to_vector<float>()[0] < 1);
  const Tensor x = ones({2});
  CHECK(gradients(sum(apply(std::make_shared<Wall>(), {x}) * x), {x})[0].to_vector<float>() == std::vector<float>{1, 1});
}
