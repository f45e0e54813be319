#include "tests/cases/shape/rearrange.h"

#include <catch2/catch.hpp>

#include "tests/ops/check.h"

using namespace clnet;
using namespace clnet::testing;
using Catch::Matchers::Contains;

TEST_CASE("elements turned, moved, repeated and left out") { check(rearrange_cases()); }

TEST_CASE("arrangements take integers and nothing at all") {
  const Tensor x = Tensor::from<std::int64_t>({1, 2, 3});
  CHECK(flip(x, {0}).to_vector<std::int64_t>() == std::vector<std::int64_t>{3, 2, 1});
  CHECK(roll(x, {1}, {0}).to_vector<std::int64_t>() == std::vector<std::int64_t>{3, 1, 2});
  CHECK(roll(zeros({0, 2}), {3}, {0}).shape() == Shape{0, 2});
  // Several dimensions at once are one after the other, and the gradient rolls back.
  const Tensor cube = rand({3, 4, 5, 2}), weights = rand({3, 4, 5, 2});
  const Tensor apart = roll(roll(roll(cube, {-4}, {0}), {7}, {2}), {1}, {3});
  CHECK(roll(cube, {7, -4, 1, 12}, {2, 0, 3, 0}).to_vector<float>() == roll(apart, {12}, {0}).to_vector<float>());
  CHECK(gradients(sum(roll(cube, {1, 2}, {0, 1}) * weights), {cube})[0].to_vector<float>() ==
        roll(weights, {-1, -2}, {0, 1}).to_vector<float>());
  CHECK(triu(zeros({0, 3}, Dtype::i32)).shape() == Shape{0, 3});
  CHECK(tril(ones({2, 2}, Dtype::i32)).to_vector<std::int32_t>() == std::vector<std::int32_t>{1, 0, 1, 1});
}

TEST_CASE("arrangements refuse wrong inputs") {
  CHECK_THROWS_WITH(flip(zeros({2, 3}), {1, -1}), "flip: dimension -1 is given twice");
  CHECK_THROWS_AS(flip(zeros({2, 3}), {2}), ShapeError);
  CHECK_THROWS_WITH(roll(zeros({2}), {1, 2}, {0}), "roll: 2 shifts for 1 dimensions");
  CHECK_THROWS_WITH(tile(zeros({2}), {-1}), Contains("tile: repeats [-1]"));
  CHECK_THROWS_AS(tile(zeros({2}), {std::int64_t{1} << 62, 4}), ShapeError);
  CHECK_THROWS_AS(pixel_shuffle(zeros({4, 2, 2}), std::int64_t{1} << 32), Error);
  CHECK_THROWS_WITH(tril(zeros({2})), "tril: f32[2] has no rows and columns");
  CHECK_THROWS_WITH(pixel_shuffle(zeros({1, 3, 2, 2}), 2), "pixel_shuffle: 3 channels of f32[1, 3, 2, 2] are no multiple of 4");
  CHECK_THROWS_WITH(pixel_unshuffle(zeros({1, 3, 3, 2}), 2),
                    "pixel_unshuffle: height and width of f32[1, 3, 3, 2] are no multiples of 2");
  CHECK_THROWS_WITH(pixel_shuffle(zeros({4, 2, 2}), 0), "pixel_shuffle: factor 0 is not from 1 to 46340");
}
