#include "tests/cases/shape/expand.h"

#include <catch2/catch.hpp>

#include "tests/ops/check.h"

namespace clnet::testing {

TEST_CASE("expand") { check(expand_cases()); }

TEST_CASE("expand refuses other extents") {
  CHECK_THROWS_AS(expand(ones({2, 3}), {2, 4}), ShapeError);
  CHECK_THROWS_AS(expand(ones({2, 3}), {3}), ShapeError);
  CHECK_THROWS_WITH(expand(ones({2, 3}), {2, 4}), "expand: shape [2, 3] cannot become [2, 4]");
}

}  // namespace clnet::testing
