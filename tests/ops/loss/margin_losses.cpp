#include "tests/cases/loss/margin_losses.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "tests/ops/check.h"

using namespace clnet;
using namespace clnet::testing;
using Catch::Matchers::Contains;

TEST_CASE("losses with margins") { check(margin_losses_cases()); }

TEST_CASE("equal inputs leave the gradients of distances and cosines finite") {
  const Tensor x = Tensor::from({1.f, 2.f, 0.f, 0.f}, {2, 2});
  for (const auto& gradient : gradients(triplet_margin_loss(x, x, x), {x}))
    for (float g : gradient.to_vector<float>()) CHECK(std::isfinite(g));
  for (const auto& gradient : gradients(cosine_embedding_loss(x, x, Tensor::from({1.f, 1.f})), {x}))
    for (float g : gradient.to_vector<float>()) CHECK(std::isfinite(g));
}

TEST_CASE("losses with margins refuse wrong inputs") {
  CHECK_THROWS_WITH(margin_ranking_loss(zeros({2}), zeros({3}), zeros({2})),
                    Contains("margin_ranking_loss") && Contains("differ in shape"));
  CHECK_THROWS_WITH(cosine_embedding_loss(zeros({2, 3}), zeros({2, 3}), zeros({3})),
                    "cosine_embedding_loss: target f32[3] does not belong to inputs f32[2, 3]");
  CHECK_THROWS_AS(cosine_embedding_loss(zeros({2, 3, 4}), zeros({2, 3, 4}), zeros({2, 3})), ShapeError);
  CHECK_THROWS_WITH(triplet_margin_loss(zeros({2}), zeros({2}), zeros({2}), {.p = 0.5}), Contains("p 0.5 is below 1"));
  CHECK_THROWS_AS(triplet_margin_loss(zeros({}), zeros({}), zeros({})), ShapeError);
}

TEST_CASE("what lies on the margin has a gradient") {
  const Tensor a = Tensor::from({1.f, 2.f}), b = Tensor::from({1.f, 5.f}), t = ones({2});
  CHECK(gradients(margin_ranking_loss(a, b, t, 0, Reduction::sum), {a})[0].to_vector<float>() == std::vector<float>{-1, -1});
  const Tensor x = Tensor::from({1.f}), away = Tensor::from({-1.f});
  CHECK(gradients(hinge_embedding_loss(x, away), {x})[0].item<float>() == -1);
}

TEST_CASE("distances of 0 and by the largest difference") {
  const Tensor a = zeros({1, 2}), far = Tensor::from({3.f, -4.f}, {1, 2});
  const TripletMarginOptions exact{.eps = 0};
  for (float g : gradients(triplet_margin_loss(a, a, far, exact), {a})[0].to_vector<float>()) CHECK(std::isfinite(g));
  const TripletMarginOptions largest{.margin = 10, .p = HUGE_VAL, .eps = 0};
  CHECK(triplet_margin_loss(a, a, far, largest).item<float>() == 6);
}
