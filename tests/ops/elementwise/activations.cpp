#include "tests/cases/elementwise/activations.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <numbers>

#include "tests/ops/check.h"

using namespace clnet;
using namespace clnet::testing;
using Catch::Matchers::Contains;

TEST_CASE("activations of several operations") { check(activation_cases()); }

TEST_CASE("gradients stop at stop_gradient, and second ones, too") {
  const Tensor x = Tensor::from({2.f, 3.f});
  CHECK(stop_gradient(x).to_vector<float>() == std::vector<float>{2, 3});
  CHECK(gradients(sum(stop_gradient(square(x)) * x), {x})[0].to_vector<float>() == std::vector<float>{4, 9});
  CHECK(gradients(sum(stop_gradient(x)), {x})[0].to_vector<float>() == std::vector<float>{0, 0});
}

TEST_CASE("NaN passes through shrinking and thresholds, and bounds belong to the inside") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor x = Tensor::from({nan, 0.5f, -0.5f, 1.f});
  for (const auto& y : {hardshrink(x), softshrink(x), tanhshrink(x), threshold(x, 0, 1)})
    CHECK(std::isnan(y.to_vector<float>()[0]));
  CHECK(slice(hardshrink(x), 0, 1).to_vector<float>() == std::vector<float>{0, 0, 1});
  CHECK(slice(softshrink(x), 0, 1).to_vector<float>() == std::vector<float>{0, 0, 0.5});
  CHECK(slice(threshold(x, 0.5, 9), 0, 1).to_vector<float>() == std::vector<float>{9, 9, 1});
}

TEST_CASE("fmod and atan2 take numbers on either side, and all quadrants") {
  const Tensor x = Tensor::from({5.5f, -5.5f});
  CHECK(fmod(x, 2.0).to_vector<float>() == std::vector<float>{1.5, -1.5});
  CHECK(fmod(7.0, x).to_vector<float>() == std::vector<float>{1.5, 1.5});
  const Tensor a = Tensor::from({1.f, 1.f, -1.f, -1.f, 0.f}), b = Tensor::from({1.f, -1.f, -1.f, 1.f, -1.f});
  const auto angles = atan2(a, b).to_vector<float>();
  const double pi = std::numbers::pi;
  for (const auto& [i, want] :
       std::vector<std::pair<std::size_t, double>>{{0, pi / 4}, {1, 3 * pi / 4}, {2, -3 * pi / 4}, {3, -pi / 4}, {4, pi}})
    CHECK(angles[i] == Approx(want).epsilon(1e-6));
}

TEST_CASE("atan2 takes no gradient at the origin") {
  const Tensor a = Tensor::from({0.f, 0.f, 3.f}), b = Tensor::from({0.f, 2.f, 4.f});
  const auto slopes = gradients(sum(atan2(a, b)), {a, b});
  CHECK(slopes[0].to_vector<float>() == std::vector<float>{0, 0.5f, 0.16f});
  CHECK(slopes[1].to_vector<float>() == std::vector<float>{0, 0, -0.12f});
  CHECK(gradients(sum(square(slopes[0])), {a})[0].to_vector<float>()[0] == 0);
}

TEST_CASE("activations of several operations refuse wrong inputs") {
  CHECK_THROWS_WITH(prelu(zeros({2, 3}), zeros({2})),
                    Contains("prelu: weight f32[2] is neither one number nor one for each channel"));
  CHECK_THROWS_AS(prelu(zeros({2, 3}), zeros({3}, Dtype::f16)), DtypeError);
  CHECK_THROWS_WITH(glu(zeros({2, 3})), Contains("glu: extent 3 of f32[2, 3] has no halves"));
  CHECK_THROWS_WITH(softshrink(zeros({2}), -1), "softshrink: lambda -1 is not 0 or more");
  CHECK_THROWS_AS(hardshrink(zeros({2}, Dtype::i32)), DtypeError);
  CHECK_THROWS_AS(lerp(zeros({2}), zeros({2}, Dtype::f16), 0.5), DtypeError);
  CHECK_THROWS_AS(masked_fill(zeros({2}), zeros({2, 2}, Dtype::boolean), 0), ShapeError);
  CHECK_THROWS_AS(masked_fill(zeros({2}), zeros({2}), 0), DtypeError);
}

TEST_CASE("lerp ends where it shall, and prelu's weight does not see positive elements") {
  const Tensor a = Tensor::from({1e8f, 16777216.f}), b = Tensor::from({1.f, 0.1f});
  CHECK(lerp(a, b, 1.0).to_vector<float>() == std::vector<float>{1, 0.1f});
  CHECK(lerp(a, b, ones({2})).to_vector<float>() == std::vector<float>{1, 0.1f});
  const float inf = std::numeric_limits<float>::infinity();
  const Tensor x = Tensor::from({inf, -1.f}), weight = Tensor::from({0.25f});
  CHECK(gradients(sum(prelu(x, weight)), {weight})[0].item<float>() == -1);
  const Tensor number = Tensor::scalar(0.25), y = prelu(x, number);
  CHECK(y.to_vector<float>() == std::vector<float>{inf, -0.25f});
  CHECK(gradients(sum(y), {number})[0].item<float>() == -1);
}

TEST_CASE("values that a dtype does not hold are refused by name") {
  const Tensor mask = ones({2}, Dtype::boolean);
  CHECK_THROWS_WITH(masked_fill(zeros({2}, Dtype::f16), mask, -1e9), "masked_fill: -1000000000 does not fit in f16");
  CHECK_THROWS_WITH(masked_fill(zeros({2}, Dtype::u8), mask, -1), "masked_fill: -1 does not fit in u8");
  CHECK_THROWS_WITH(threshold(zeros({2}, Dtype::f16), 0, 1e6), "threshold: 1000000 does not fit in f16");
  CHECK(masked_fill(zeros({1}, Dtype::f16), ones({1}, Dtype::boolean), -std::numeric_limits<double>::infinity()).item<float>() ==
        -std::numeric_limits<float>::infinity());
}
