#include "tests/cases/shape/pad.h"

#include <catch2/catch.hpp>

#include "tests/ops/check.h"

namespace clnet::testing {

TEST_CASE("pad") { check(pad_cases()); }

TEST_CASE("pad of integers keeps them exact") {
  const auto y = pad(Tensor::from<std::int64_t>({1}), {1}, {0}, 1LL << 40);
  CHECK(y.to_vector<std::int64_t>() == std::vector<std::int64_t>{1LL << 40, 1});
}

TEST_CASE("circular padding goes round what negative amounts leave") {
  const auto x = Tensor::from({0.0F, 1.0F, 2.0F});
  CHECK(pad(x, {-1}, {1}, 0, PadMode::circular).to_vector<float>() == std::vector<float>{1, 2, 1});
  CHECK(pad(x, {2}, {-1}, 0, PadMode::circular).to_vector<float>() == std::vector<float>{0, 1, 0, 1});
  CHECK_THROWS_AS(pad(x, {-1}, {3}, 0, PadMode::circular), ShapeError);
}

TEST_CASE("pad refuses what does not fit") {
  const auto x = ones({2, 3});
  CHECK_THROWS_AS(pad(x, {1}, {1}), ShapeError);
  CHECK_THROWS_AS(pad(x, {-3, 0}, {2, 0}), ShapeError);
  CHECK_THROWS_AS(pad(x, {-1, 0}, {-2, 0}), ShapeError);
  CHECK_THROWS_AS(pad(x, {0, 3}, {0, 0}, 0, PadMode::reflect), ShapeError);
  CHECK_THROWS_AS(pad(zeros({0}), {1}, {0}, 0, PadMode::edge), ShapeError);
  CHECK_THROWS_WITH(
      pad(x, {0, 4}, {0, 0}, 0, PadMode::circular),
      "pad: [0, 4] before and [0, 0] after do not fit [2, 3] (circularly, each must be at most what is there to go round)");
  CHECK_THROWS_AS(pad(zeros({0}), {1}, {0}, 0, PadMode::circular), ShapeError);
}

}  // namespace clnet::testing
