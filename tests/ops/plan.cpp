// Plans: made once per structure, replayed without making anything.
#include <catch2/catch.hpp>

#include "clnet/clnet.h"
#include "lib/cl/context.h"
#include "lib/exec/launch/recorder.h"
#include "lib/exec/statistics.h"
#include "lib/graph/op.h"

using namespace clnet;

namespace {

/// What must not grow once a program repeats itself.
struct Made {
  std::uint64_t plans, buffers, programs;
  bool operator==(const Made&) const = default;
  static Made now() {
    auto context = context_of(Device::current());
    return {exec::statistics().plans_made, Device::current().memory().allocations,
            context->programs().built() + context->programs().loaded()};
  }
};

}  // namespace

TEST_CASE("from the third step on training makes no plan, no buffer and no program") {
  manual_seed(1);
  for (const bool batch_norm : {false, true}) {
    auto model =
        nn::Sequential{nn::Conv2d{1, 4, 3, {.padding = 1}}, relu, nn::MaxPool2d{2}, nn::Flatten{}, nn::Linear{4 * 3 * 3, 3}};
    if (batch_norm)
      model = nn::Sequential{nn::Conv2d{1, 4, 3, {.padding = 1}},
                             nn::BatchNorm2d{4},
                             relu,
                             nn::Dropout{0.5},
                             nn::Flatten{},
                             nn::Linear{4 * 6 * 6, 3}};
    auto adam = optim::Adam{model, {.learning_rate = 1e-3}};
    Made before{};
    for (int step = 0; step < 8; ++step) {
      if (step == 2) {
        Device::current().finish();
        before = Made::now();
      }
      adam.set_learning_rate(1e-3 / (step + 1));
      const Tensor images = Tensor::from(std::vector<float>(5 * 36, static_cast<float>(step)), {5, 1, 6, 6});
      const Tensor labels = Tensor::from({0, 1, 2, 1, step % 3});
      const float loss = adam.step(cross_entropy(model(images), labels)).item<float>();
      CHECK(std::isfinite(loss));
    }
    CHECK(exec::statistics().plans_made == before.plans);
    CHECK(Made::now() == before);
  }
}

TEST_CASE("a plan serves other values, and only the same structure") {
  const auto run = [](const std::vector<float>& values, double scale, bool negate) {
    const auto count = static_cast<std::int64_t>(values.size());
    const Tensor x = Tensor::from(values, Shape{count}), y = exp(x) * scale;
    return sum(negate ? -y : y + 0.0).item<float>();
  };
  CHECK(run({0, 0}, 1, false) == 2.0F);
  const auto made = exec::statistics().plans_made;
  CHECK(run({0, 0}, 3, false) == 6.0F);  // the scale is a leaf
  CHECK(exec::statistics().plans_made == made);
  CHECK(run({0, 0, 0}, 3, false) == 9.0F);
  CHECK(exec::statistics().plans_made == made + 1);
  CHECK(run({0, 0}, 3, true) == -6.0F);
  CHECK(exec::statistics().plans_made == made + 2);
  CHECK(run({0, 0}, 1, false) == 2.0F);
  CHECK(exec::statistics().plans_made == made + 2);
}

TEST_CASE("which results are asked for is part of the structure") {
  const auto graph = [] {
    const Tensor x = Tensor::from({1.0F, 2.0F}), y = x * x;
    return std::vector{y, sum(y)};
  };
  auto both = graph();
  eval(both);
  CHECK(both[0].to_vector<float>() == std::vector<float>{1, 4});
  CHECK(both[1].item<float>() == 5.0F);
  const auto one = graph();
  CHECK(one[1].item<float>() == 5.0F);
  CHECK(one[0].to_vector<float>() == std::vector<float>{1, 4});
  const Tensor again = graph()[0];
  eval({again, again});
  CHECK(again.to_vector<float>() == std::vector<float>{1, 4});
}

TEST_CASE("nothing but clnet's own errors leaves an evaluation") {
  class Odd : public Op {
   public:
    std::string_view name() const override { return "odd"; }
    Specs infer(const Specs& inputs) const override { return inputs; }
    void lower(exec::Recorder&) const override { throw std::out_of_range("unordered_map::at"); }
  };
  const Tensor y = apply(std::make_shared<Odd>(), {Tensor::from({1.0F, 2.0F})});
  CHECK_THROWS_AS(y.eval(), Error);
  CHECK_THROWS_WITH(y.eval(), "eval of odd: unordered_map::at");
}
