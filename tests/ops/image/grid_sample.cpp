#include "tests/cases/image/grid_sample.h"

#include <catch2/catch.hpp>
#include <cmath>

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

TEST_CASE("grid_sample at corners, outside and between pixels is PyTorch's") {
  const Tensor x = Tensor::from({3.F, -1.F, 4.F, 1.F, -5.F, 9.F, 2.F, -6.F, 5.F, 3.F, -5.F, 8.F}, {1, 1, 3, 4});
  const Tensor grid = Tensor::from({0.F, 0.F, -1.F, 1.F, 1.25F, -1.3F}, {1, 1, 3, 2});
  struct Known {
    GridSampleOptions options;
    std::vector<double> samples, slopes;  // of their sum by the grid
  };
  const Known known[] = {
      {{Interpolation::bilinear, GridPadding::zeros, false}, {5.5, 1.25, 0}, {-14, -9.75, 5, -3.75, 0, 0}},
      {{Interpolation::bilinear, GridPadding::zeros, true}, {5.5, 5, 0.4375}, {-10.5, -6.5, -3, -5, -1.05, 0.625}},
      {{Interpolation::bilinear, GridPadding::border, false}, {5.5, 5, 1}, {-14, -9.75, 0, 0, 0, 0}},
      {{Interpolation::bilinear, GridPadding::border, true}, {5.5, 5, 1}, {-10.5, -6.5, 0, 0, 0, 0}},
      {{Interpolation::bilinear, GridPadding::reflection, false}, {5.5, 5, 1}, {-14, -9.75, 0, 0, 0, 0}},
      {{Interpolation::bilinear, GridPadding::reflection, true}, {5.5, 5, 0.5875003}, {-10.5, -6.5, 0, 0, 6.75, 5.125}},
      {{Interpolation::nearest, GridPadding::zeros, false}, {2, 5, 0}, {0, 0, 0, 0, 0, 0}},
      {{Interpolation::nearest, GridPadding::zeros, true}, {2, 5, 1}, {0, 0, 0, 0, 0, 0}},
      {{Interpolation::nearest, GridPadding::border, false}, {2, 5, 1}, {0, 0, 0, 0, 0, 0}},
      {{Interpolation::nearest, GridPadding::border, true}, {2, 5, 1}, {0, 0, 0, 0, 0, 0}},
      {{Interpolation::nearest, GridPadding::reflection, false}, {2, 5, 1}, {0, 0, 0, 0, 0, 0}},
      {{Interpolation::nearest, GridPadding::reflection, true}, {2, 5, 1}, {0, 0, 0, 0, 0, 0}},
      {{Interpolation::bicubic, GridPadding::zeros, false},
       {7.5625, 1.953125, 0},
       {-18, -4.289062, 8.671875, -6.363281, -0.07766785, 0}},
      {{Interpolation::bicubic, GridPadding::zeros, true},
       {7.5625, 5, 0.7777619},
       {-13.5, -2.859375, 3.375, 3.75, -2.324876, 0.06630319}},
      {{Interpolation::bicubic, GridPadding::border, false},
       {7.5625, 6.265625, 1.012471},
       {-18, -4.289062, 1.3125, -3.234375, -1.583248e-08, 0.7284389}},
      {{Interpolation::bicubic, GridPadding::border, true},
       {7.5625, 5, 1.502721},
       {-13.5, -2.859375, -2.25, 7.5, 0.2152223, -0.396338}},
      {{Interpolation::bicubic, GridPadding::reflection, false},
       {7.5625, 7.8125, 1.249378},
       {-18, -4.289062, 0, 0, 4.232815, 7.087499}},
      {{Interpolation::bicubic, GridPadding::reflection, true},
       {7.5625, 5, 0.5678313},
       {-13.5, -2.859375, 0, 0, 9.531414, 8.767078}},
  };
  for (const auto& [options, samples, slopes] : known) {
    INFO(static_cast<int>(options.mode) << static_cast<int>(options.padding) << options.align_corners);
    const Tensor y = grid_sample(x, grid, options);
    compare("samples", to_array(y), {{1, 1, 1, 3}, samples}, 2e-6);
    compare("slopes", to_array(gradients(sum(y), {grid})[0]), {{1, 1, 3, 2}, slopes}, 2e-6);
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
  CHECK_THROWS_WITH(nms(boxes, scores, NAN), "nms: the threshold is no number");
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
