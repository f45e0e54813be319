#include "tests/cases/shape/slice.h"

#include <catch2/catch.hpp>

#include "tests/ops/check.h"

namespace clnet::testing {

TEST_CASE("slice") { check(slice_cases(), {"strided_copy"}); }

TEST_CASE("slice refuses step 0 and dimensions that are not there") {
  CHECK_THROWS_AS(slice(ones({3}), 0, 0, 3, 0), Error);
  CHECK_THROWS_AS(slice(ones({3}), 1, 0), ShapeError);
}

TEST_CASE("slice's gradient has a gradient") {
  const auto x = ones({2, 7}), g = full({2, 3}, 3), again = full({2, 7}, 2);
  const auto y = slice(x, 1, 5, 0, -2);
  const auto dx = gradients(std::vector{y}, std::vector{g}, std::vector{x})[0];
  CHECK(dx.to_vector<float>() == std::vector<float>{0, 3, 0, 3, 0, 3, 0, 0, 3, 0, 3, 0, 3, 0});
  CHECK(gradients(std::vector{dx}, std::vector{again}, std::vector{g})[0].to_vector<float>() == std::vector<float>(6, 2));
}

}  // namespace clnet::testing
