#include "tests/cases/shape/slice_update.h"

#include <catch2/catch.hpp>
#include <limits>

#include "lib/exec/statistics.h"
#include "tests/ops/check.h"

namespace clnet::testing {

TEST_CASE("slice_update and narrow") { check(slice_update_cases()); }

TEST_CASE("another place makes no other plan") {
  const auto x = Tensor::from(std::vector<float>{0, 1, 2, 3, 4, 5}, {6}), value = Tensor::from({9.0F, 8.0F});
  eval({x, value});
  const auto run = [&](std::int64_t start) { return narrow(slice_update(x, 0, start, value), 0, start, 3).to_vector<float>(); };
  CHECK(run(0) == std::vector<float>{9, 8, 2});
  const auto before = exec::statistics().plans_made;
  CHECK(run(1) == std::vector<float>{9, 8, 3});
  CHECK(run(3) == std::vector<float>{9, 8, 5});
  CHECK(exec::statistics().plans_made == before);
}

TEST_CASE("slice_update and narrow at their edges") {
  const auto x = Tensor::from({1.0F, 2.0F, 3.0F});
  CHECK(slice_update(x, 0, 3, zeros({0})).to_vector<float>() == std::vector<float>{1, 2, 3});
  CHECK(narrow(x, 0, 3, 0).numel() == 0);
  CHECK(slice_update(zeros({0, 2}), 1, 1, zeros({0, 1})).numel() == 0);
  const auto outside = narrow(x, 0, Tensor::scalar(-1, Dtype::i64), 3).to_vector<float>();
  CHECK(std::isnan(outside[0]));
  CHECK(outside[1] == 1);
  CHECK_THROWS_AS(slice_update(x, 0, 2, zeros({2})), ShapeError);
  CHECK_THROWS_AS(slice_update(x, 0, -1, zeros({2})), ShapeError);
  CHECK_THROWS_AS(slice_update(x, 0, 0, zeros({4})), ShapeError);
  CHECK_THROWS_AS(slice_update(x, 0, 0, zeros({1, 2})), ShapeError);
  CHECK_THROWS_WITH(slice_update(x, 1, 0, zeros({2})), "slice_update: dimension 1 is out of range for shape [3]");
  CHECK_THROWS_WITH(slice_update(x, 1, zeros({}, Dtype::i64), zeros({2})),
                    "slice_update: dimension 1 is out of range for shape [3]");
  CHECK_THROWS_WITH(narrow(x, -2, 0, 1), "narrow: dimension -2 is out of range for shape [3]");
  CHECK_THROWS_WITH(narrow(x, 3, zeros({}, Dtype::i64), 1), "narrow: dimension 3 is out of range for shape [3]");
  CHECK_THROWS_AS(slice_update(x, 0, 0, zeros({2}, Dtype::i32)), DtypeError);
  CHECK_THROWS_AS(slice_update(x, 0, ones({1}), zeros({2})), DtypeError);
  CHECK_THROWS_AS(narrow(x, 0, 2, 2), ShapeError);
  CHECK_THROWS_AS(narrow(x, 0, std::numeric_limits<std::int64_t>::max(), 2), ShapeError);
  CHECK_THROWS_AS(narrow(x, 0, 0, -1), ShapeError);
  CHECK_THROWS_AS(narrow(x, 0, ones({2}, Dtype::i64), 1), DtypeError);
}

}  // namespace clnet::testing
