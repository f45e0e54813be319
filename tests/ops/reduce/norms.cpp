#include "tests/cases/reduce/norms.h"

#include <catch2/catch.hpp>
#include <limits>

#include "tests/ops/check.h"

using namespace clnet;
using namespace clnet::testing;

TEST_CASE("standard deviations, norms and logsumexp") { check(norms_cases()); }

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

TEST_CASE("norms refuse wrong inputs") {
  CHECK_THROWS_WITH(norm(zeros({2}), -1), "norm: p -1 is not 0 or more");
  CHECK_THROWS_AS(norm(zeros({2}, Dtype::i32)), DtypeError);
  CHECK_THROWS_AS(logsumexp(zeros({2}), {1}), ShapeError);
  CHECK_THROWS_AS(stddev(zeros({2}, Dtype::i64)), DtypeError);
}

TEST_CASE("norms below 1 have a gradient where an element is 0, and logsumexp of nothing is -infinity") {
  const Tensor x = Tensor::from({0.f, 1.f});
  CHECK(gradients(norm(x, 0.5), {x})[0].to_vector<float>() == std::vector<float>{0, 1});
  const float inf = std::numeric_limits<float>::infinity();
  CHECK(logsumexp(zeros({2, 0}), {1}).to_vector<float>() == std::vector<float>{-inf, -inf});
}
