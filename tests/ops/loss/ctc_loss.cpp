#include "tests/cases/loss/ctc_loss.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "tests/ops/check.h"

using namespace clnet;
using namespace clnet::testing;
using Catch::Matchers::Contains;

namespace {

using Whole = std::vector<std::int64_t>;
Tensor whole(const Whole& values) { return Tensor::from(values, {static_cast<std::int64_t>(values.size())}); }

}  // namespace

TEST_CASE("ctc_loss") { check(ctc_loss_cases(), {"ctc_loss"}); }

TEST_CASE("a ctc_loss that no alignment has is infinite, or nothing") {
  const Tensor x = log_softmax(rand({3, 2, 4}), 2), targets = Tensor::from<std::int32_t>({1, 1, 2, 3}, {2, 2});
  // Two equal targets need a blank between them.
  const auto losses = [&](bool zero_infinity) {
    return ctc_loss(x, targets, whole({2, 3}), whole({2, 2}), {.reduction = Reduction::none, .zero_infinity = zero_infinity});
  };
  const auto plain = losses(false).to_vector<float>(), zeroed = losses(true).to_vector<float>();
  CHECK(std::isinf(plain[0]));
  CHECK(std::isfinite(plain[1]));
  CHECK(zeroed == std::vector<float>{0, plain[1]});
  const auto g = gradients(sum(losses(true)), {x})[0].to_vector<float>();
  for (std::size_t i = 0; i < g.size(); ++i) {
    CHECK(std::isfinite(g[i]));
    if (i / 4 % 2 == 0) CHECK(g[i] == 0);
  }
}

TEST_CASE("lengths and targets that are none give NaN, those alone") {
  const Tensor x = log_softmax(rand({3, 6, 4}), 2);
  const Tensor targets = Tensor::from<std::int64_t>({1, 2, 1, 2, 1, 2, 1, 2, 1, 4, -1, 2}, {6, 2});
  const auto losses = ctc_loss(x, targets, whole({3, 4, -1, 3, 3, 3}), whole({2, 2, 2, 3, 2, 2}), {.reduction = Reduction::none})
                          .to_vector<float>();
  CHECK(std::isfinite(losses[0]));
  for (std::size_t n = 1; n < 6; ++n) CHECK(std::isnan(losses[n]));
}

TEST_CASE("ctc_loss after log_softmax has gradients that add up to 0 for each step") {
  const Tensor logits = randn({9, 2, 5}), targets = Tensor::from<std::int32_t>({1, 2, 2, 4, 3, 3}, {2, 3});
  const Tensor loss = ctc_loss(log_softmax(logits, 2), targets, whole({9, 7}), whole({3, 3}), {.reduction = Reduction::sum});
  for (float total : sum(gradients(loss, {logits})[0], {2}).to_vector<float>()) CHECK(total == Approx(0).margin(1e-5));
}

TEST_CASE("the gradient of a long ctc_loss does not drift") {
  constexpr std::int64_t steps = 3000, classes = 6;
  const Tensor x = log_softmax(make_tensor({steps, 1, classes}, 1, -3, 3), 2);
  const Tensor targets = reshape(arange(40, 0, 1, Dtype::i32), {1, 40});
  const auto some = targets - targets / 5.0 * 5.0 + 1.0;  // 1..5
  const auto loss = ctc_loss(x, some, whole({steps}), whole({40}), {.reduction = Reduction::sum});
  // Each step is in some class for certain.
  for (float total : sum(gradients(loss, {x})[0], {2}).to_vector<float>()) REQUIRE(total == Approx(-1).epsilon(1e-5));
}

TEST_CASE("ctc_loss has no second gradient, and says so") {
  const Tensor x = log_softmax(rand({3, 1, 4}), 2);
  const auto g = gradients(ctc_loss(x, ones({1, 1}, Dtype::i32), whole({3}), whole({1})), {x})[0];
  CHECK_THROWS_WITH(gradients(sum(square(g)), {x}), Contains("ctc_gradient"));
}

TEST_CASE("ctc_loss refuses what does not fit") {
  const Tensor x = zeros({3, 2, 4}), targets = ones({2, 2}, Dtype::i32), two = whole({2, 2});
  CHECK_THROWS_WITH(ctc_loss(zeros({3, 4}), targets, two, two), Contains("log_probs f32[3, 4] are not {T, N, C}"));
  CHECK_THROWS_WITH(ctc_loss(x, ones({3, 2}, Dtype::i32), two, two), Contains("targets [3, 2] are not {N, S}"));
  CHECK_THROWS_WITH(ctc_loss(x, targets, whole({2}), two), Contains("lengths [1] and [2]"));
  CHECK_THROWS_WITH(ctc_loss(x, targets, two, two, {.blank = 4}), "ctc_loss: blank 4 is none of 4 classes");
  CHECK_THROWS_WITH(ctc_loss(x, ones({2, 2}), two, two), Contains("targets must be i32 or i64"));
  CHECK_THROWS_AS(ctc_loss(cast(x, Dtype::i32), targets, two, two), DtypeError);
}
