#include "tests/cases/image/grid_sample.h"

#include <catch2/catch.hpp>

#include "tests/ops/check.h"

using namespace clnet;
using namespace clnet::testing;
using Catch::Matchers::Contains;

TEST_CASE("roi_align takes as many samples as a place has pixels") {
  check({roi_align_case({2, 2, 9, 8}, 4, {2, 2}, {}), roi_align_case({1, 1, 9, 8}, 3, {1, 3}, {.aligned = true})});
  const auto sampled = compile([](const Tensor& x, const Tensor& boxes) { return roi_align(x, boxes, 2); });
  CHECK_THROWS_WITH(sampled(ones({1, 1, 4, 4}), zeros({1, 5})), "roi_align: the shape depends on values; not inside compile()");
}

TEST_CASE("roi_align of boxes that are empty, or of an image that is not there") {
  const Tensor x = ones({1, 2, 4, 4});
  const auto values = [&](float image, float x1, float x2, RoiAlignOptions options) {
    return roi_align(x, Tensor::from({image, x1, 1.F, x2, 3.F}, {1, 5}), 1, options).to_vector<float>();
  };
  CHECK(values(0, 1, 3, {}) == std::vector<float>{1, 1});
  CHECK(values(0, 1, 1, {.aligned = true}) == std::vector<float>{0, 0});
  CHECK(values(1, 1, 3, {}) == std::vector<float>{0, 0});
  CHECK(values(-1, 1, 3, {.sampling_ratio = 2}) == std::vector<float>{0, 0});
  CHECK(roi_align(x, zeros({0, 5}), {3, 2}).shape() == Shape{0, 2, 3, 2});
  CHECK_THROWS_WITH(values(0, 0, 1e9F, {}), Contains("roi_align: a box of"));
}

TEST_CASE("grid_sample and affine_grid do nothing by the identity") {
  const Tensor x = make_tensor({2, 3, 4, 5}, 3);
  const Tensor theta = expand(Tensor::from({1.F, 0.F, 0.F, 0.F, 1.F, 0.F}, {1, 2, 3}), {2, 2, 3});
  for (bool align_corners : {false, true}) {
    const Tensor grid = affine_grid(theta, x.shape(), align_corners);
    compare("identity", to_array(grid_sample(x, grid, {.align_corners = align_corners})), to_array(x), 1e-5);
  }
}

TEST_CASE("the gradient of grid_sample adds up the same at every run, and has one") {
  const Tensor x = make_tensor({1, 2, 3, 3}, 5), grid = make_tensor({1, 40, 30, 2}, 6);
  const auto slope = [&] { return gradients(sum(square(grid_sample(x, grid))), {x})[0].to_vector<float>(); };
  CHECK(slope() == slope());
  const auto first = gradients(sum(square(grid_sample(x, grid))), {x, grid});
  for (const auto& second : gradients(sum(square(first[0])) + sum(square(first[1])), {x, grid}))
    for (const float value : second.to_vector<float>()) REQUIRE(std::isfinite(value));
}

TEST_CASE("nms keeps the best boxes") {
  const Tensor boxes =
      Tensor::from({0.F, 0.F, 10.F, 10.F, 1.F, 1.F, 11.F, 11.F, 20.F, 0.F, 30.F, 10.F, 0.F, 0.F, 10.F, 9.F}, {4, 4});
  const Tensor scores = Tensor::from({0.5F, 0.9F, 0.1F, 0.9F});
  CHECK(nms(boxes, scores, 0.5).to_vector<std::int64_t>() == std::vector<std::int64_t>{1, 2});
  CHECK(nms(boxes, scores, 0.95).to_vector<std::int64_t>() == std::vector<std::int64_t>{1, 3, 0, 2});
  CHECK(nms(zeros({0, 4}), zeros({0}), 0.5).shape() == Shape{0});
  CHECK_THROWS_WITH(nms(boxes, ones({3}), 0.5), "nms: boxes [4, 4] and scores [3] must be {n, 4} and {n}");
}

TEST_CASE("sampling refuses what does not fit") {
  const Tensor x = ones({2, 3, 4, 5});
  CHECK_THROWS_WITH(grid_sample(x, ones({1, 2, 2, 2})),
                    "grid_sample: x [2, 3, 4, 5] and grid [1, 2, 2, 2] must be {N, C, H, W} and {N, h, w, 2}");
  CHECK_THROWS_AS(grid_sample(zeros({1, 1, 0, 2}), ones({1, 2, 2, 2})), ShapeError);
  CHECK_THROWS_AS(grid_sample(x, ones({2, 2, 2, 2}, Dtype::f16)), DtypeError);
  CHECK_THROWS_WITH(grid_sample(x, ones({2, 2, 2, 2}), {.mode = Interpolation::area}),
                    "grid_sample: the mode must be bilinear, nearest or bicubic");
  CHECK_THROWS_WITH(affine_grid(ones({2, 2, 2}), {2, 1, 4, 4}), Contains("affine_grid: theta [2, 2, 2]"));
  CHECK_THROWS_AS(affine_grid(ones({1, 2, 3}), {2, 1, 4, 4}), ShapeError);
  CHECK_THROWS_WITH(roi_align(x, ones({3, 4}), 2), Contains("roi_align: x [2, 3, 4, 5] and boxes [3, 4]"));
  CHECK_THROWS_AS(roi_align(x, ones({3, 5}), {0, 2}), ShapeError);
}
