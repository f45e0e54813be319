#include "tests/cases/loss/losses.h"

#include <catch2/catch.hpp>

#include "tests/ops/check.h"

using namespace clnet;
using namespace clnet::testing;
using Catch::Matchers::Contains;

TEST_CASE("losses") { check(losses_cases()); }

TEST_CASE("bce_with_logits of large logits neither overflows nor loses its gradient") {
  const Tensor x = Tensor::from({200.f, -200.f, 200.f, -200.f}), t = Tensor::from({1.f, 0.f, 0.f, 1.f});
  CHECK(bce_with_logits(x, t, Reduction::none).to_vector<float>() == std::vector<float>{0, 0, 200, 200});
  CHECK(gradients(bce_with_logits(x, t, Reduction::sum), {x})[0].to_vector<float>() == std::vector<float>{0, 0, 1, -1});
}

TEST_CASE("the gradient of l1_loss is 0 where input and target are equal") {
  const Tensor x = Tensor::from({1.f, 2.f, 3.f});
  CHECK(gradients(l1_loss(x, Tensor::from({1.f, 1.f, 5.f}), Reduction::sum), {x})[0].to_vector<float>() ==
        std::vector<float>{0, 1, -1});
}

TEST_CASE("losses refuse wrong inputs") {
  CHECK_THROWS_WITH(mse_loss(zeros({2, 3}), zeros({3})), Contains("mse_loss: input f32[2, 3] and target f32[3] differ in shape"));
  CHECK_THROWS_AS(l1_loss(zeros({2}), zeros({2}, Dtype::f16)), DtypeError);
  CHECK_THROWS_AS(bce_with_logits(zeros({2}), zeros({2}), Reduction::mean, zeros({2, 2})), ShapeError);
}

TEST_CASE("global_norm of no tensors is 0") { CHECK(global_norm({}).item<float>() == 0); }
