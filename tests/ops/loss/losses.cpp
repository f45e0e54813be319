#include "tests/cases/loss/losses.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "tests/ops/check.h"

using namespace clnet;
using namespace clnet::testing;
using Catch::Matchers::Contains;

TEST_CASE("losses") { check(losses_cases()); }

TEST_CASE("losses of inputs and targets that broadcast") { check(broadcast_losses_cases()); }

TEST_CASE("the mean of kl_div's batch counts the input's rows, whatever the target's") {
  const Tensor x = Tensor::from({-1.F, -2.F}, {2, 1}), t = full({3, 2, 1}, 0.5);
  CHECK(kl_div(x, t, {.batch_mean = true}).item() == Approx(3 * (0.5 * (std::log(0.5) + 1) + 0.5 * (std::log(0.5) + 2)) / 2));
}

TEST_CASE("binary_cross_entropy_with_logits of large logits neither overflows nor loses its gradient") {
  const Tensor x = Tensor::from({200.f, -200.f, 200.f, -200.f}), t = Tensor::from({1.f, 0.f, 0.f, 1.f});
  CHECK(binary_cross_entropy_with_logits(x, t, Reduction::none).to_vector<float>() == std::vector<float>{0, 0, 200, 200});
  CHECK(gradients(binary_cross_entropy_with_logits(x, t, Reduction::sum), {x})[0].to_vector<float>() ==
        std::vector<float>{0, 0, 1, -1});
}

TEST_CASE("the gradient of l1_loss is 0 where input and target are equal") {
  const Tensor x = Tensor::from({1.f, 2.f, 3.f});
  CHECK(gradients(l1_loss(x, Tensor::from({1.f, 1.f, 5.f}), Reduction::sum), {x})[0].to_vector<float>() ==
        std::vector<float>{0, 1, -1});
}

TEST_CASE("losses refuse wrong inputs") {
  CHECK_THROWS_WITH(mse_loss(zeros({2, 3}), zeros({2})), "mse_loss: shapes [2, 3] and [2] cannot be broadcast together");
  CHECK_THROWS_WITH(binary_cross_entropy(zeros({2, 3}), zeros({3})),
                    Contains("binary_cross_entropy: input f32[2, 3] and target f32[3] differ in shape"));
  CHECK_THROWS_AS(binary_cross_entropy_with_logits(zeros({2, 3}), zeros({3})), ShapeError);
  CHECK_THROWS_AS(sigmoid_focal_loss(zeros({2, 3}), zeros({3})), ShapeError);
  CHECK_THROWS_WITH(soft_margin_loss(zeros({3}), zeros({2, 3})),
                    "soft_margin_loss: target f32[2, 3] does not broadcast to input f32[3]");
  CHECK_THROWS_AS(l1_loss(zeros({2}), zeros({2}, Dtype::f16)), DtypeError);
  CHECK_THROWS_AS(binary_cross_entropy_with_logits(zeros({2}), zeros({2}), Reduction::mean, zeros({2, 2})), ShapeError);
}

TEST_CASE("binary_cross_entropy at probabilities of 0 and 1 is bounded, with PyTorch's gradient") {
  const Tensor x = Tensor::from({0.f, 1.f, 0.f, 1.f}), t = Tensor::from({1.f, 0.f, 0.f, 1.f});
  CHECK(binary_cross_entropy(x, t, Reduction::none).to_vector<float>() == std::vector<float>{100, 100, 0, 0});
  CHECK(gradients(binary_cross_entropy(x, t, Reduction::sum), {x})[0].to_vector<float>() ==
        std::vector<float>{-1e12f, 1e12f, 0, 0});
}

TEST_CASE("kl_div of a target of 0 is 0, and poisson_nll_loss adds nothing for targets of 0 or 1") {
  const Tensor x = Tensor::from({-1.f, -2.f}), t = Tensor::from({0.f, 1.f});
  CHECK(kl_div(x, t, {.reduction = Reduction::none}).to_vector<float>() == std::vector<float>{0, 2});
  for (float g : gradients(kl_div(x, t), {t})[0].to_vector<float>()) CHECK(std::isfinite(g));
  const auto full = poisson_nll_loss(x, t, {.full = true}), plain = poisson_nll_loss(x, t);
  CHECK(full.item<float>() == plain.item<float>());
  for (float g : gradients(full, {t})[0].to_vector<float>()) CHECK(std::isfinite(g));
}

TEST_CASE("huber losses of infinite differences have finite gradients") {
  const float far = std::numeric_limits<float>::infinity();
  const Tensor x = Tensor::from({far, -far}), t = Tensor::from({0.f, 0.f});
  CHECK(gradients(smooth_l1_loss(x, t, Reduction::sum), {x})[0].to_vector<float>() == std::vector<float>{1, -1});
  CHECK(gradients(huber_loss(x, t, Reduction::sum, 2), {x})[0].to_vector<float>() == std::vector<float>{2, -2});
}

TEST_CASE("gaussian_nll_loss bounds the variance, and its gradient does not see the bound") {
  const Tensor x = Tensor::from({1.f}), t = Tensor::from({0.f}), var = Tensor::from({0.f});
  const auto loss = gaussian_nll_loss(x, t, var, {.eps = 0.5});
  CHECK(loss.item<float>() == Approx((std::log(0.5) + 2) / 2));
  CHECK(gradients(loss, {var})[0].item<float>() == Approx((2.0 - 4.0) / 2));
}

TEST_CASE("losses by element refuse wrong options") {
  CHECK_THROWS_WITH(smooth_l1_loss(zeros({2}), zeros({2}), Reduction::mean, -1), "smooth_l1_loss: beta -1 is not 0 or more");
  CHECK_THROWS_WITH(huber_loss(zeros({2}), zeros({2}), Reduction::mean, 0), "huber_loss: delta 0 is not positive");
  CHECK_THROWS_WITH(gaussian_nll_loss(zeros({2, 3}), zeros({2, 3}), zeros({3})),
                    "gaussian_nll_loss: var f32[3] does not fit input f32[2, 3]");
  CHECK_THROWS_WITH(binary_cross_entropy(zeros({2}), zeros({2}), Reduction::mean, zeros({2, 2})),
                    Contains("binary_cross_entropy: weight f32[2, 2] does not broadcast"));
}

TEST_CASE("global_norm and clipping by other norms than the Euclidean one") {
  const auto infinity = std::numeric_limits<double>::infinity();
  const Tensor a = Tensor::from({3.F, -4.F, 0.F}), b = Tensor::from({12.F});
  CHECK(global_norm({a, b}, 1).item() == 19);
  CHECK(global_norm({a, b}, infinity).item() == 12);
  CHECK(global_norm({a, b}, 0).item() == 3);
  CHECK(global_norm({a, zeros({0, 2}), b}, 3).item() == Approx(std::cbrt(27 + 64 + 1728)));
  CHECK(global_norm({zeros({0})}, infinity).item() == 0);
  CHECK(global_norm({}, 1).item() == 0);
  CHECK_THROWS_WITH(global_norm({a}, NAN), "global_norm: p is NaN");
  const auto clipped = optim::clip_by_norm({a, b}, 6, infinity);
  CHECK(clipped[0].to_vector<float>()[1] == Approx(-2).epsilon(1e-6));
  CHECK(clipped[1].item() == Approx(6).epsilon(1e-6));
}

TEST_CASE("cross_entropy of one sample") {
  const Tensor x = Tensor::from({0.5F, -1.F, 2.F}), weight = Tensor::from({1.F, 2.F, 3.F});
  const Tensor row = unsqueeze(x, 0), target = Tensor::from({1}, Shape{});
  for (const auto reduction : {Reduction::none, Reduction::sum, Reduction::mean}) {
    const CrossEntropyOptions options{.weight = weight, .label_smoothing = 0.1, .reduction = reduction};
    const Tensor loss = cross_entropy(x, target, options);
    CHECK(loss.shape() == Shape{});
    CHECK(loss.item() == sum(cross_entropy(row, Tensor::from({1}), options)).item());
    CHECK(cross_entropy(x, softmax(x, 0), options).item() == sum(cross_entropy(row, softmax(row, 1), options)).item());
  }
  CHECK_THROWS_AS(cross_entropy(x, Tensor::from({1})), ShapeError);
}

TEST_CASE("global_norm of no tensors is 0") { CHECK(global_norm({}).item<float>() == 0); }

TEST_CASE("binary_cross_entropy_with_logits keeps small losses and gradients of certain answers") {
  const Tensor x = Tensor::from({-15.f, -20.f}), t = zeros({2});
  const auto losses = binary_cross_entropy_with_logits(x, t, Reduction::none).to_vector<float>();
  const auto slopes = gradients(binary_cross_entropy_with_logits(x, t, Reduction::sum), {x})[0].to_vector<float>();
  for (std::size_t i = 0; i < 2; ++i) {
    const double p = 1 / (1 + std::exp(i == 0 ? 15.0 : 20.0));
    CHECK(losses[i] == Approx(p).epsilon(1e-5));
    CHECK(slopes[i] == Approx(p).epsilon(1e-5));
  }
}

TEST_CASE("kl_div of what is no probability is NaN") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (float value : kl_div(zeros({2}), Tensor::from({nan, -1.f}), {.reduction = Reduction::none}).to_vector<float>())
    CHECK(std::isnan(value));
}
