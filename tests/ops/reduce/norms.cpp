#include "tests/cases/reduce/norms.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "tests/ops/check.h"

using namespace clnet;
using namespace clnet::testing;

TEST_CASE("standard deviations, norms and logsumexp") { check(norms_cases()); }

TEST_CASE("any and all") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor x = Tensor::from({0.F, 0.F, nan, 0.F, -0.F, 0.F, 1.F, -2.F, 3.F}, {3, 3});
  using Truth = std::vector<bool>;
  CHECK(any(x, 1).to_vector<bool>() == Truth{true, false, true});
  CHECK(all(x, 1).to_vector<bool>() == Truth{false, false, true});
  CHECK(all(x, 0, true).shape() == Shape{1, 3});
  CHECK(any(x).to_vector<bool>() == Truth{true});
  CHECK(all(eq(x, x), 0).to_vector<bool>() == Truth{true, true, false});
  CHECK(any(Tensor::from<std::int64_t>({0, 1LL << 40})).to_vector<bool>() == Truth{true});
  // Of no elements.
  CHECK(any(zeros({2, 0}), 1).to_vector<bool>() == Truth{false, false});
  CHECK(all(zeros({2, 0}), 1).to_vector<bool>() == Truth{true, true});
  CHECK(all(zeros({2, 0}), 0).shape() == Shape{0});
  CHECK_THROWS_WITH(any(x, {0, -2}), "any: dimension -2 is given twice");
}

TEST_CASE("logsumexp neither overflows nor loses infinities") {
  const float inf = std::numeric_limits<float>::infinity();
  CHECK(logsumexp(Tensor::from({1000.f, 1000.f})).item<float>() == Approx(1000.693147));
  CHECK(logsumexp(Tensor::from({-inf, -inf})).item<float>() == -inf);
  CHECK(logsumexp(Tensor::from({-inf, 1.f})).item<float>() == 1);
  CHECK(logsumexp(Tensor::from({inf, 1.f})).item<float>() == inf);
  const Tensor x = Tensor::from({-inf, 1.f});
  CHECK(gradients(logsumexp(x), {x})[0].to_vector<float>() == std::vector<float>{0, 1});
}

TEST_CASE("the gradients of a norm and a standard deviation of 0 are 0") {
  const Tensor x = zeros({3});
  for (double p : {2.0, 3.0}) CHECK(gradients(norm(x, p), {x})[0].to_vector<float>() == std::vector<float>(3, 0));
  CHECK(gradients(stddev(x), {x})[0].to_vector<float>() == std::vector<float>(3, 0));
}

TEST_CASE("norms at 0 have PyTorch's gradients, also where others are made of them") {
  const auto values = [](const Tensor& y, const Tensor& x) { return gradients(sum(y), {x})[0].to_vector<float>(); };
  const std::vector<float> none(3, 0);
  const Tensor x = zeros({3}), y = zeros({3});
  for (double p : {0.5, 1.0, 2.0, 3.0, double{INFINITY}}) {
    INFO("p = " << p);
    CHECK(values(norm(x, p), x) == none);
  }
  CHECK(values(global_norm({x, y}), x) == none);
  CHECK(values(global_norm({x, Tensor::from({3.F, 0.F, 4.F})}), x) == none);
  CHECK(global_norm({x, y}).item<float>() == 0);
  const Tensor four = Tensor::from({3.F, 0.F, 4.F});
  CHECK(values(global_norm({four, y}), four) == std::vector<float>{0.6F, 0, 0.8F});
  // Clipping by the norm, as a part of a loss.
  CHECK(values(x / maximum(global_norm({x}), 1.0), x) == std::vector<float>(3, 1));
  const Tensor row = zeros({1, 3});
  CHECK(values(triplet_margin_loss(row, zeros({1, 3}), zeros({1, 3}), {.eps = 0}), row) == none);
  CHECK(values(cosine_embedding_loss(row, zeros({1, 3}), ones({1})), row) == none);
}

TEST_CASE("norms refuse wrong inputs") {
  CHECK_THROWS_WITH(norm(zeros({2}), NAN), "norm: p is NaN");
  CHECK_THROWS_WITH(norm(zeros({2, 0}), -1, 1), "norm: of no elements there is none of p = -1, in f32[2, 0]");
  CHECK(std::isnan(norm(Tensor::from({NAN, 0.0F}), -1).item<float>()));
  CHECK_THROWS_AS(norm(zeros({2}, Dtype::i32)), DtypeError);
  CHECK_THROWS_AS(logsumexp(zeros({2}), {1}), ShapeError);
  CHECK_THROWS_AS(stddev(zeros({2}, Dtype::i64)), DtypeError);
}

TEST_CASE("norms of negative p are PyTorch's, and 0 with no slope where an element is") {
  const Tensor x = Tensor::from({1.F, -2.F, 4.F, 0.5F, 0.F, 3.F}, {2, 3});
  const double inf = std::numeric_limits<double>::infinity();
  const auto same = [&](double p, double first, const std::vector<double>& slopes) {
    const Tensor y = norm(x, p, 1);
    compare("norm", to_array(y), {{2}, {first, 0}}, 1e-6);
    auto want = slopes;
    want.resize(6);
    // The smallest magnitude of 0 has no sign.
    compare("gradient", to_array(gradients(sum(y), {x})[0]), {{2, 3}, want}, 1e-6);
  };
  same(-1, 0.5714286, {0.3265306, -0.0816327, 0.0204082});
  same(-2.5, 0.9271914, {0.7675256, -0.0678403, 0.0059963});
  same(-inf, 1, {1, 0, 0});
  CHECK(global_norm({x, Tensor::from({-0.25F})}, -inf).item<float>() == 0);
  CHECK(global_norm({Tensor::from({1.F, -2.F}), Tensor::from({4.F})}, -1).item<float>() == Approx(0.5714286));
}

TEST_CASE("norms below 1 have a gradient where an element is 0, and logsumexp of nothing is -infinity") {
  const Tensor x = Tensor::from({0.f, 1.f});
  CHECK(gradients(norm(x, 0.5), {x})[0].to_vector<float>() == std::vector<float>{0, 1});
  const float inf = std::numeric_limits<float>::infinity();
  CHECK(logsumexp(zeros({2, 0}), {1}).to_vector<float>() == std::vector<float>{-inf, -inf});
}
