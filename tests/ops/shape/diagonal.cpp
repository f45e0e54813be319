#include "tests/cases/shape/diagonal.h"

#include <catch2/catch.hpp>
#include <limits>

#include "tests/ops/check.h"

using namespace clnet;
using namespace clnet::testing;
using Catch::Matchers::Contains;

TEST_CASE("diagonals, and elements repeated in place") { check(diagonal_cases()); }

TEST_CASE("diagonals at the ends of numbers") {
  constexpr auto least = std::numeric_limits<std::int64_t>::min(), most = std::numeric_limits<std::int64_t>::max();
  CHECK(diagonal(zeros({3, 4}), least).shape() == Shape{0});
  CHECK(diagonal(zeros({3, 4}), most).shape() == Shape{0});
  CHECK(diagonal(zeros({0, 4})).shape() == Shape{0});
  CHECK(trace(zeros({0, 4})).item<float>() == 0);
  CHECK(trace(ones({3, 3}, Dtype::i32)).item<std::int64_t>() == 3);
  CHECK(diag(zeros({0})).shape() == Shape{0, 0});
  CHECK_THROWS_AS(diag(zeros({3}), least), ShapeError);
  CHECK_THROWS_AS(diag(zeros({3}), most), ShapeError);
  CHECK_THROWS_AS(repeat_interleave(zeros({3}), most, 0), ShapeError);
  CHECK_THROWS_AS(repeat_interleave(zeros({3}), -1, 0), ShapeError);
}

TEST_CASE("diagonals and repetitions refuse what does not fit") {
  CHECK_THROWS_WITH(diagonal(zeros({3, 3}), 0, 1, -1), "diagonal: dimensions 1 and -1 are one");
  CHECK_THROWS_WITH(diagonal(zeros({3})), "diagonal: dimension 1 is out of range for shape [3]");
  CHECK_THROWS_WITH(diag(zeros({2, 2, 2})), Contains("neither a vector nor a matrix"));
  CHECK_THROWS_WITH(trace(zeros({2})), "trace: f32[2] is no matrix");
  CHECK_THROWS_WITH(repeat(zeros({2, 2}), {3}), "repeat: 1 numbers for f32[2, 2]");
  CHECK_THROWS_WITH(repeat(zeros({2}), {-3}), Contains("repeat: repeats [-3]"));
  CHECK_THROWS_WITH(repeat(zeros({2}), {1 << 30}), Contains("repeat: shape [2147483648]: more than"));
  CHECK_THROWS_WITH(diag(zeros({50'000})), Contains("diag: shape [50000, 50000]: more than"));
}

TEST_CASE("dimensions out of range name the operation") {
  const Tensor x = zeros({2, 3});
  CHECK_THROWS_WITH(transpose(x, 0, 2), "transpose: dimension 2 is out of range for shape [2, 3]");
  CHECK_THROWS_WITH(flatten(x, 0, 5), "flatten: dimension 5 is out of range for shape [2, 3]");
  CHECK_THROWS_WITH(flip(x, {-3}), "flip: dimension -3 is out of range for shape [2, 3]");
  CHECK_THROWS_WITH(roll(x, {1}, {4}), "roll: dimension 4 is out of range for shape [2, 3]");
  CHECK_THROWS_WITH(glu(x, 2), "glu: dimension 2 is out of range for shape [2, 3]");
  CHECK_THROWS_WITH(squeeze(x, 2), "squeeze: dimension 2 is out of range for shape [2, 3]");
  CHECK_THROWS_WITH(slice(x, 2, 0), "slice: dimension 2 is out of range for shape [2, 3]");
}

TEST_CASE("linspace and eye") {
  const auto line = linspace(-1, 2, 7).to_vector<float>();
  CHECK(line == std::vector<float>{-1, -0.5F, 0, 0.5F, 1, 1.5F, 2});
  CHECK(linspace(0.1, 0.7, 2).to_vector<float>() == std::vector<float>{0.1F, 0.7F});
  CHECK(linspace(3, 9, 1).to_vector<float>() == std::vector<float>{3});
  CHECK(linspace(3, 9, 0).shape() == Shape{0});
  const auto thirds = linspace(0.3, 0.9, 1001).to_vector<float>();
  CHECK(thirds.front() == 0.3F);
  CHECK(thirds.back() == 0.9F);
  CHECK_THROWS_AS(linspace(0, 1, -1), ShapeError);
  CHECK_THROWS_AS(linspace(0, 1, 3, Dtype::i32), DtypeError);
  CHECK(eye(2, 3).to_vector<float>() == std::vector<float>{1, 0, 0, 0, 1, 0});
  CHECK(eye(2, -1, Dtype::i32).to_vector<std::int32_t>() == std::vector<std::int32_t>{1, 0, 0, 1});
  CHECK_THROWS_AS(eye(-1), ShapeError);
  CHECK_THROWS_AS(eye(2, -2), ShapeError);
}
