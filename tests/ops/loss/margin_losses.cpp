#include "tests/cases/loss/margin_losses.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "clnet/device.h"
#include "lib/exec/upload.h"
#include "tests/ops/check.h"

using namespace clnet;
using namespace clnet::testing;
using Catch::Matchers::Contains;

TEST_CASE("losses with margins") { check(margin_losses_cases()); }

TEST_CASE("losses with margins broadcast dimensions of 1") {
  const Tensor a = Tensor::from({0.3F, -0.7F, 0.2F, 0.9F, -0.4F, 0.6F}, {2, 3}), row = Tensor::from({0.5F, 0.1F, -0.8F}, {1, 3});
  const Tensor all = expand(row, {2, 3}), signs = Tensor::from({1.F, -1.F});
  const auto same = [&](const auto& loss) {
    const Tensor got = loss(row), want = loss(all);
    compare("losses", to_array(got), to_array(want), 1e-6);
    for (const auto& x : {a, row})
      compare("gradient", to_array(gradients(sum(got), {x})[0]), to_array(gradients(sum(want), {x})[0]), 1e-6);
  };
  same([&](const Tensor& b) { return margin_ranking_loss(a, b, unsqueeze(signs, 1), 0.3, Reduction::none); });
  same([&](const Tensor& b) { return margin_ranking_loss(b, a, full({1, 1}, -1), 0.3, Reduction::mean); });
  same([&](const Tensor& b) { return triplet_margin_loss(a, b, b * 0.5, {.swap = true, .reduction = Reduction::none}); });
  same([&](const Tensor& b) { return cosine_embedding_loss(a, b, signs, 0.1, Reduction::none); });
  // The classes are those of the input.
  const Tensor x = Tensor::from({0.5F, -1.F}, {2, 1}), labels = Tensor::from({1.F, 0.F, 1.F}, {1, 3});
  compare("losses", to_array(multilabel_soft_margin_loss(x, labels, Reduction::none)),
          to_array(sum(binary_cross_entropy_with_logits(expand(x, {2, 3}), expand(labels, {2, 3}), Reduction::none), {1})), 1e-6);
}

TEST_CASE("equal inputs leave the gradients of distances and cosines finite") {
  const Tensor x = Tensor::from({1.f, 2.f, 0.f, 0.f}, {2, 2});
  for (const auto& gradient : gradients(triplet_margin_loss(x, x, x), {x}))
    for (float g : gradient.to_vector<float>()) CHECK(std::isfinite(g));
  for (const auto& gradient : gradients(cosine_embedding_loss(x, x, Tensor::from({1.f, 1.f})), {x}))
    for (float g : gradient.to_vector<float>()) CHECK(std::isfinite(g));
}

TEST_CASE("losses with margins refuse wrong inputs") {
  CHECK_THROWS_WITH(margin_ranking_loss(zeros({2}), zeros({3}), zeros({2})),
                    "margin_ranking_loss: shapes [2] and [3] cannot be broadcast together");
  CHECK_THROWS_WITH(margin_ranking_loss(zeros({2, 3}), zeros({2, 3}), zeros({3})),
                    "margin_ranking_loss: f32[2, 3] and f32[3] have different numbers of dimensions");
  CHECK_THROWS_AS(triplet_margin_loss(zeros({2, 3}), zeros({3}), zeros({2, 3})), ShapeError);
  CHECK_THROWS_AS(cosine_embedding_loss(zeros({2, 3}), zeros({3}), zeros({2})), ShapeError);
  CHECK_THROWS_WITH(cosine_embedding_loss(zeros({2, 3}), zeros({2, 3}), zeros({3})),
                    "cosine_embedding_loss: target f32[3] does not belong to inputs f32[2, 3]");
  CHECK_THROWS_AS(cosine_embedding_loss(zeros({2, 3, 4}), zeros({2, 3, 4}), zeros({2, 3})), ShapeError);
  CHECK_THROWS_WITH(triplet_margin_loss(zeros({2}), zeros({2}), zeros({2}), {.p = 0.5}), Contains("p 0.5 is below 1"));
  CHECK_THROWS_AS(triplet_margin_loss(zeros({}), zeros({}), zeros({})), ShapeError);
  const Tensor x = zeros({2, 3}), two = zeros({2}, Dtype::i64);
  CHECK_THROWS_WITH(multi_margin_loss(x, zeros({3}, Dtype::i64)),
                    "multi_margin_loss: input f32[2, 3] and target i64[3] are not {N, C} and {N}, or {C} and {}");
  CHECK_THROWS_WITH(multi_margin_loss(x, two, {.p = 3}), "multi_margin_loss: p 3 is not 1 or 2");
  CHECK_THROWS_WITH(multi_margin_loss(x, two, {.weight = ones({2})}), Contains("weight f32[2] must be [3]"));
  CHECK_THROWS_AS(multi_margin_loss(x, zeros({2})), DtypeError);
  CHECK_THROWS_AS(multi_margin_loss(zeros({2, 0}), two), ShapeError);
  CHECK_THROWS_WITH(multilabel_margin_loss(x, two), Contains("input f32[2, 3] and target i64[2]"));
  CHECK_THROWS_AS(multilabel_margin_loss(x, zeros({2, 3})), DtypeError);
}

TEST_CASE("margins between classes are PyTorch's, with their gradients") {
  const Tensor x = Tensor::from({0.1F, 0.2F, 0.4F, 0.8F, 0.9F, -0.3F, 0.5F, 0.7F, -0.2F, 0.6F, 0.3F, 0.1F}, {3, 4});
  const auto same = [&](const Tensor& losses, const std::vector<double>& want, const std::vector<double>& slopes) {
    compare("losses", to_array(losses), {{3}, want}, 1e-6);
    compare("gradient", to_array(gradients(mean(losses), {x})[0]), {{3, 4}, slopes}, 1e-6);
  };
  const Tensor classes = Tensor::from<std::int64_t>({3, 0, 2}), weight = Tensor::from({0.5F, 1.5F, 2.0F, 1.0F});
  same(multi_margin_loss(x, classes, {.margin = 0.7, .reduction = Reduction::none}), {0.1, 0.2, 0.425},
       {0, 0.0833333, 0.0833333, -0.1666667, -0.1666667, 0, 0.0833333, 0.0833333, 0.0833333, 0.0833333, -0.25, 0.0833333});
  same(multi_margin_loss(x, classes, {.p = 2, .margin = 0.7, .weight = weight, .reduction = Reduction::none}),
       {0.025, 0.0425, 0.645},
       {0, 0.0166667, 0.05, -0.0666667, -0.0666667, 0, 0.025, 0.0416667, 0.0666667, 0.3333333, -0.5666667, 0.1666667});
  // What stands behind a negative class does not count.
  const Tensor several = Tensor::from<std::int32_t>({3, 0, -1, 1, 2, -1, 0, 0, -1, 0, 1, 2}, {3, 4});
  same(multilabel_margin_loss(x, several, Reduction::none), {0.85, 0.7, 0},
       {-0.1666667, 0.1666667, 0.1666667, -0.1666667, 0.0833333, 0.0833333, -0.25, 0.0833333, 0, 0, 0, 0});
  // A class that is there twice counts twice, as in PyTorch.
  CHECK(multilabel_margin_loss(Tensor::from({0.F, 0.F}), Tensor::from<std::int64_t>({1, 1})).item<float>() == 1);
}

TEST_CASE("a scalar is the score of the only class, as in PyTorch") {
  const Tensor x = Tensor::scalar(-3.7), first = Tensor::scalar(0, Dtype::i64);
  for (const auto reduction : {Reduction::mean, Reduction::none}) {
    const auto one = multi_margin_loss(x, first, {.reduction = reduction}), several = multilabel_margin_loss(x, first, reduction);
    for (const auto& loss : {one, several}) {
      CHECK(loss.shape() == Shape{});
      CHECK(loss.item<float>() == 0);
      CHECK(gradients(loss, {x})[0].item<float>() == 0);
    }
  }
}

TEST_CASE("targets that are no class give NaN on the device") {
  const Tensor x = zeros({3, 2});
  const Tensor classes = exec::copy_now(Tensor::from<std::int64_t>({2, -1, 1}), Device::current());
  const auto one = multi_margin_loss(x, classes, {.reduction = Reduction::none});
  const auto several = multilabel_margin_loss(x, Tensor::from<std::int32_t>({2, 0, 1, -1, -1, 9}, {3, 2}), Reduction::none);
  const auto a = one.to_vector<float>(), b = several.to_vector<float>();
  CHECK(std::isnan(a[0]));
  CHECK(std::isnan(a[1]));
  CHECK(a[2] == 0.5F);
  CHECK(std::isnan(b[0]));
  CHECK(b[1] == 0.5F);
  CHECK(b[2] == 0);
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
