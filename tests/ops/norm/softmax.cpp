#include "tests/cases/norm/softmax.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "lib/exec/choose/solver.h"
#include "tests/ops/check.h"

using namespace clnet;
using namespace clnet::testing;
using Catch::Matchers::Contains;

TEST_CASE("softmax") { check(softmax_cases(), {"softmax"}); }

TEST_CASE("softmax of infinities and NaN") {
  const std::string solver = GENERATE("gpu", "direct");
  const exec::ForceSolver force("softmax", solver);
  const auto y = softmax(Tensor::from({0.f, -INFINITY, 0.f}), 0).to_vector<float>();
  CHECK(y == std::vector<float>{0.5f, 0, 0.5f});
  for (float value : softmax(Tensor::from({0.f, std::nanf(""), 1.f}), 0).to_vector<float>()) CHECK(std::isnan(value));
  for (float value : softmax(full({3}, -INFINITY), 0).to_vector<float>()) CHECK(std::isnan(value));
  CHECK(softmax(zeros({0, 3}), 1).to_vector<float>().empty());
}

TEST_CASE("softmax refuses wrong inputs") {
  CHECK_THROWS_WITH(softmax(zeros({2, 3}), 2), Contains("softmax: dimension 2 is out of range for shape [2, 3]"));
  CHECK_THROWS_AS(log_softmax(zeros({2, 3}, Dtype::i32), 1), DtypeError);
}
