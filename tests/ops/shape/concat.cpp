#include "tests/cases/shape/concat.h"

#include <catch2/catch.hpp>

#include "tests/ops/check.h"

namespace clnet::testing {

TEST_CASE("concat, stack and split") { check(concat_cases()); }

TEST_CASE("concat of many empty tensors and one that is not") {
  std::vector<Tensor> parts(9, zeros({2, 0}));
  parts.insert(parts.begin() + 8, cast(reshape(arange(6), {2, 3}), Dtype::f32));
  CHECK(concat(parts, 1).to_vector<float>() == std::vector<float>{0, 1, 2, 3, 4, 5});
}

TEST_CASE("concat, stack and split refuse what does not fit") {
  const auto x = ones({2, 3});
  CHECK_THROWS_WITH(concat({x, ones({3, 3})}, 1), "concat: [2, 3] and [3, 3] differ in more than dimension 1");
  CHECK_THROWS_AS(concat({x, ones({2, 3, 1})}, 1), ShapeError);
  CHECK_THROWS_AS(concat({x, ones({2, 3}, Dtype::f16)}, 1), DtypeError);
  CHECK_THROWS_AS(concat({}, 0), Error);
  CHECK_THROWS_AS(stack({}, 0), Error);
  CHECK_THROWS_AS(stack({x, ones({3, 2})}), ShapeError);
  CHECK_THROWS_AS(split(x, {1, 1}, 1), ShapeError);
  CHECK_THROWS_AS(split(x, {4, -1}, 1), ShapeError);
  CHECK_THROWS_AS(split(x, {2, 2}, 1), ShapeError);
}

}  // namespace clnet::testing
