#include "tests/cases/shape/reshape.h"

#include <catch2/catch.hpp>

#include "tests/ops/check.h"

namespace clnet::testing {

TEST_CASE("reshape, flatten, squeeze and unsqueeze") { check(reshape_cases()); }

TEST_CASE("reshape refuses another number of elements") {
  const auto x = ones({2, 3});
  CHECK_THROWS_WITH(reshape(x, Shape{4}), "reshape: [2, 3] has 6 elements, but shape [4] has 4");
  CHECK_THROWS_AS(reshape(x, {4, -1}), ShapeError);
  CHECK_THROWS_AS(reshape(x, {-1, -1}), ShapeError);
  CHECK_THROWS_AS(reshape(x, {-2, 3}), ShapeError);
  CHECK_THROWS_AS(reshape(x, {0, -1}), ShapeError);
  CHECK_THROWS_AS(flatten(x, 1, 0), ShapeError);
  CHECK_THROWS_AS(squeeze(x, 2), ShapeError);
  CHECK_THROWS_AS(unsqueeze(x, 3), ShapeError);
}

}  // namespace clnet::testing
