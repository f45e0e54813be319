#include "tests/cases/pool/pool.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "lib/cl/quirks.h"
#include "tests/ops/check.h"

namespace clnet::testing {

namespace {

using Catch::Contains;
const std::vector<std::string> max_solvers{"max_pool2d", "max_pool2d_backward"}, avg_solvers{"avg_pool2d", "avg_pool2d_backward"};

Tensor gradient(const Tensor& y, const Tensor& g, const Tensor& x) {
  return gradients(std::vector{y}, std::vector{g}, std::vector{x})[0];
}

}  // namespace

TEST_CASE("max_pool of lines, planes and volumes, with indices") { check(max_pool_cases(), max_solvers); }
TEST_CASE("adaptive_max_pool of lines, planes and volumes, with indices") { check(adaptive_max_pool_cases(), max_solvers); }
TEST_CASE("avg_pool of lines and volumes, and by a given divisor") { check(avg_pool_cases(), avg_solvers); }
TEST_CASE("lp_pool") { check(lp_pool_cases()); }

TEST_CASE("max_pool3d: NaN wins, and the first of equals in the order of depth, height and width") {
  const float nan = std::nanf("");
  // Equals at (0, 0, 1), (0, 1, 0) and (1, 0, 0); the second volume has a NaN.
  const auto x = Tensor::from<float>({1, 5, 5, 1, 5, 2, 2, 2, 1, 2, 3, 4, 5, 6, nan, 7}, {2, 1, 2, 2, 2});
  const auto [y, indices] = max_pool3d_with_indices(x, 2);
  const auto values = y.to_vector<float>();
  CHECK(values[0] == 5);
  CHECK(std::isnan(values[1]));
  CHECK(indices.to_vector<std::int32_t>() == std::vector<std::int32_t>{1, 6});
  CHECK(gradient(y, ones(y.shape()), x).to_vector<float>() == std::vector<float>{0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0});
}

TEST_CASE("global pooling of lines and volumes") {
  const auto x = Tensor::from<float>({3, 9, 6, 1, -4, -2, -6, -8}, {2, 1, 4});
  CHECK(global_max_pool1d(x).to_vector<float>() == std::vector<float>{9, -2});
  CHECK(global_avg_pool1d(x).to_vector<float>() == std::vector<float>{4.75, -5});
  const auto volume = reshape(x, {1, 2, 1, 2, 2});
  CHECK(global_max_pool3d(volume).shape() == Shape{1, 2, 1, 1, 1});
  CHECK(global_max_pool3d(volume).to_vector<float>() == std::vector<float>{9, -2});
  CHECK(global_avg_pool3d(volume).to_vector<float>() == std::vector<float>{4.75, -5});
}

TEST_CASE("adaptive_max_pool2d of a large plane has the first of equals' index") {
  auto values = std::vector<float>(300 * 300, 1);
  values[70'000] = values[70'001] = values[80'000] = 2;
  const auto [y, indices] = adaptive_max_pool2d_with_indices(Tensor::from(values, {1, 1, 300, 300}), 1);
  CHECK(y.item<float>() == 2);
  CHECK(indices.item<std::int32_t>() == 70'000);
}

TEST_CASE("max_unpool puts elements where they were, and takes their gradients from there") {
  Array values = make_values({{2, 3, 4, 6, 5}}, 1);
  const auto x = to_tensor(values, Dtype::f32);
  const auto [y, indices] = max_pool3d_with_indices(x, 2);
  const auto z = max_unpool3d(y, indices, 2, {.output_size = Triple{4, 6, 5}});
  compare("values", to_array(z), max_unpool_reference(to_array(y), to_array(indices), x.shape()), 0);
  CHECK(max_unpool3d(y, cast(indices, Dtype::i64), 2).shape() == Shape{2, 3, 4, 6, 4});
  Array weights = make_values({x.shape()}, 2);
  const auto g = to_tensor(weights, Dtype::f32);
  const auto dy = gradient(z, g, y);
  compare("gradient", to_array(dy),
          to_array(reshape(gather(reshape(g, {6, 120}), 1, reshape(indices, {6, 12})), indices.shape())), 0);
  // And the gradient's, which puts them back.
  const auto again = ones(y.shape());
  compare("gradient of second order", to_array(gradient(dy, again, g)),
          max_unpool_reference(to_array(again), to_array(indices), x.shape()), 0);
  for (auto dtype : {Dtype::f16, Dtype::bf16}) {
    const auto narrow = max_pool2d_with_indices(cast(reshape(x, {2, 3, 24, 5}), dtype), {2, 1});
    const auto back = max_unpool2d(narrow.y, narrow.indices, {2, 1});
    compare("narrow", to_array(back), max_unpool_reference(to_array(narrow.y), to_array(narrow.indices), {2, 3, 24, 5}), 0);
  }
}

TEST_CASE("layers of unpooling are called with places") {
  const auto x = Tensor::from<float>({1, 5, 2, 7, 3, 4}, {1, 1, 6});
  const auto [y, indices] = max_pool1d_with_indices(x, 2);
  nn::MaxUnpool1d line{2};
  CHECK(line(y, indices).to_vector<float>() == std::vector<float>{0, 5, 0, 7, 0, 4});
  CHECK(line.kind() == "MaxUnpool1d(kernel_size=2, stride=2, padding=0)");
  CHECK_THROWS_AS(line(y), Unsupported);
  const auto planes = max_pool2d_with_indices(reshape(x, {1, 1, 2, 3}), {2, 1});
  nn::MaxUnpool2d plane{{2, 1}};
  CHECK(plane(planes.y, planes.indices).to_vector<float>() == std::vector<float>{0, 5, 0, 7, 0, 4});
  nn::MaxPool2d pool{{2, 1}};
  const auto by_layer = pool.with_indices(reshape(x, {1, 1, 2, 3}));
  CHECK(by_layer.indices.to_vector<std::int32_t>() == planes.indices.to_vector<std::int32_t>());
  CHECK(plane(by_layer.y, by_layer.indices).to_vector<float>() == std::vector<float>{0, 5, 0, 7, 0, 4});
  nn::AdaptiveMaxPool1d adaptive{3};
  CHECK(adaptive.with_indices(x).indices.to_vector<std::int32_t>() == std::vector<std::int32_t>{1, 3, 5});
  const auto volumes = max_pool3d_with_indices(reshape(x, {1, 1, 1, 2, 3}), {1, 2, 3});
  nn::MaxUnpool3d volume{{1, 2, 3}};
  CHECK(volume(volumes.y, volumes.indices).to_vector<float>() == std::vector<float>{0, 0, 0, 7, 0, 0});
}

TEST_CASE("max_unpool: the last of several stays, what lies outside is left out") {
  const auto x = Tensor::from<float>({1, 2, 3, 4}, {1, 1, 4});
  const auto at = Tensor::from<std::int64_t>({5, 0, -1, 0}, {1, 1, 4}),
             beyond = Tensor::from<std::int64_t>({8, 9, 1LL << 40, 7}, {1, 1, 4});
  CHECK(max_unpool1d(x, at, 2).to_vector<float>() == std::vector<float>{4, 0, 0, 0, 0, 1, 0, 0});
  const auto y = max_unpool1d(x, beyond, 2);
  CHECK(y.to_vector<float>() == std::vector<float>{0, 0, 0, 0, 0, 0, 0, 4});
  CHECK(gradient(y, ones(y.shape()), x).to_vector<float>() == std::vector<float>{0, 0, 0, 1});
}

TEST_CASE("max_unpool of more elements than a launch takes") {
  constexpr std::int64_t count = 120'000;
  const auto indices = reshape(arange(count, 0, 1, Dtype::i32), {1, 1, count});
  const auto x = cast(indices + 1.0, Dtype::f32);
  CHECK(sum(abs(max_unpool1d(x, indices, 1) - x)).item<float>() == 0);
}

TEST_CASE("lp_pool: infinity is the largest magnitude, and the root of 0 has no slope") {
  const auto x = Tensor::from<float>({3, -4, 0, 0}, {1, 1, 4});
  CHECK(lp_pool1d(x, INFINITY, 2).to_vector<float>() == std::vector<float>{4, 0});
  const auto y = lp_pool1d(x, 2, 2);
  CHECK(y.to_vector<float>() == std::vector<float>{5, 0});
  const auto dx = gradient(y, ones(y.shape()), x).to_vector<float>();
  CHECK(dx[0] == Approx(0.6));
  CHECK(dx[1] == Approx(-0.8));
  CHECK(dx[2] == 0);
  CHECK(dx[3] == 0);
  CHECK(lp_pool1d(x, 1, 2).to_vector<float>() == std::vector<float>{-1, 0});
  // Below 1 the slope at 0 is infinite.
  const auto positive = Tensor::from<float>({4, 9, 0, 0, 1, 0}, {1, 1, 6}), root = lp_pool1d(positive, 0.5, 2);
  CHECK(root.to_vector<float>() == std::vector<float>{25, 0, 1});
  const auto slopes = gradient(root, ones(root.shape()), positive).to_vector<float>();
  CHECK(slopes[0] == Approx(2.5));
  CHECK(slopes[1] == Approx(5.0 / 3));
  CHECK(std::vector<float>(slopes.begin() + 2, slopes.end()) == std::vector<float>{0, 0, 1, 0});
}

TEST_CASE("pooling of volumes takes first what leaves less") {
  // The other way, what lies between has too many elements for a tensor.
  CHECK(sum(adaptive_avg_pool3d(ones({1, 1, 2000, 10, 10}), {2, 1100, 1000})).item<float>() == 2.2e6F);
  CHECK(sum(adaptive_avg_pool3d(ones({1, 1, 2, 1100, 1000}), {2000, 10, 10})).item<float>() == 2e5F);
}

TEST_CASE("windows longer than a device's loops are refused there, by name") {
  const auto x = ones({1, 1, 70'000});
  const bool ends_loops = ocl::has_quirk(Device::current().info(), "llvmpipe-loops");
  const auto pooled = [&](std::string_view op, const Tensor& y) {
    if (ends_loops)
      CHECK_THROWS_WITH(y.eval(), Contains(std::string(op) + ": needs loops of 70000 iterations"));
    else
      CHECK(y.item<float>() == Approx(1).epsilon(1e-5));
  };
  pooled("max_pool2d", global_max_pool1d(x));
  pooled("avg_pool2d", avg_pool1d(x, 70'000));
  pooled("interpolate", interpolate(x, {.size = {1}, .mode = Interpolation::area}));
}

TEST_CASE("max_pool's gradient has a gradient where windows are padding alone") {
  const auto x = ones({1, 1, 1}), g = ones({1, 1, 1});
  const auto y = max_pool1d(x, 2, {.stride = 1, .padding = 2, .dilation = 4});
  CHECK(y.item<float>() == -INFINITY);
  const auto dx = gradient(y, g, x);
  CHECK(dx.item<float>() == 0);
  CHECK(gradient(dx, ones({1, 1, 1}), g).item<float>() == 0);
}

TEST_CASE("pooling of a sample without a batch") {
  const auto same = [](const Tensor& y, const Tensor& batch) {
    CHECK(y.shape() == squeeze(batch, 0).shape());
    CHECK(y.to_vector<float>() == batch.to_vector<float>());
  };
  const Tensor line = make_tensor({2, 7}), image = make_tensor({2, 6, 5}), volume = make_tensor({2, 3, 4, 5});
  const Tensor lines = unsqueeze(line, 0), images = unsqueeze(image, 0), volumes = unsqueeze(volume, 0);
  same(max_pool1d(line, 3), max_pool1d(lines, 3));
  same(avg_pool2d(image, 2, {.padding = 1}), avg_pool2d(images, 2, {.padding = 1}));
  same(lp_pool3d(volume, 2, 2), lp_pool3d(volumes, 2, 2));
  same(adaptive_avg_pool2d(image, {4, 2}), adaptive_avg_pool2d(images, {4, 2}));
  same(adaptive_max_pool3d(volume, 2), adaptive_max_pool3d(volumes, 2));
  same(global_avg_pool1d(line), global_avg_pool1d(lines));
  same(adaptive_max_pool2d(image, {-1, 2}), adaptive_max_pool2d(images, {-1, 2}));
  same(adaptive_avg_pool1d(line, 1), adaptive_avg_pool1d(lines, 1));
  same(lp_pool2d(image, INFINITY, 2), lp_pool2d(images, INFINITY, 2));
  const auto [y, indices] = max_pool2d_with_indices(image, 2);
  const auto of_batch = max_pool2d_with_indices(images, 2);
  same(y, of_batch.y);
  same(indices, of_batch.indices);
  same(max_unpool2d(y, indices, 2), max_unpool2d(of_batch.y, of_batch.indices, 2));
}

TEST_CASE("pooling of lines and volumes refuses what does not fit") {
  constexpr auto huge = std::numeric_limits<std::int64_t>::max();
  const auto line = ones({1, 2, 4}), volume = ones({1, 2, 4, 4, 4}), plane = ones({2, 4, 4});
  CHECK_THROWS_WITH(max_pool1d(line, 5),
                    "max_pool1d: length: a window of extent 5 does not fit into [1, 2, 4] with padding 0 and 0");
  CHECK_THROWS_WITH(max_pool1d(ones({2, 4}), 5),
                    "max_pool1d: length: a window of extent 5 does not fit into [2, 4] with padding 0 and 0");
  CHECK_THROWS_WITH(adaptive_max_pool1d(ones({2, 4}), 0), "adaptive_max_pool1d: f32[2, 4] cannot be pooled to 0");
  CHECK_THROWS_WITH(max_unpool1d(ones({2, 4}), zeros({2, 3}, Dtype::i32), 2),
                    "max_unpool1d: indices i32[2, 3] do not have the shape of f32[2, 4]");
  CHECK_THROWS_WITH(max_pool3d(volume, 2, {.padding = {2, 0, 0}}),
                    "max_pool3d: depth: padding 2 and 2 must be between 0 and half the window's extent 2");
  CHECK_THROWS_WITH(max_pool3d(plane, 2), "max_pool3d: needs {N, C, D, H, W} or {C, D, H, W}, got f32[2, 4, 4]");
  CHECK_THROWS_AS(max_pool1d(line, 2, {.stride = 0}), ShapeError);
  CHECK_THROWS_AS(max_pool1d(line, huge), ShapeError);
  CHECK_THROWS_AS(max_pool3d(volume, 1, {.stride = Triple{1, huge, 1}}), ShapeError);
  CHECK_THROWS_AS(max_pool3d(volume, {1, -1, 1}), ShapeError);
  CHECK_THROWS_AS(max_pool1d(line, 2, {.dilation = huge}), ShapeError);
  CHECK_THROWS_AS(avg_pool1d(ones({1, 2, 4}, Dtype::i32), 2), DtypeError);
  CHECK_THROWS_WITH(avg_pool2d(plane, 2, {.divisor_override = 0}), Contains("avg_pool2d: divisor_override 0"));
  CHECK_THROWS_AS(avg_pool3d(volume, 2, {.divisor_override = std::numeric_limits<std::int64_t>::min()}), Error);
  CHECK_THROWS_WITH(adaptive_avg_pool3d(volume, {2, 0, 2}),
                    "adaptive_avg_pool3d: f32[1, 2, 4, 4, 4] cannot be pooled to 2 x 0 x 2");
  CHECK_THROWS_AS(adaptive_max_pool1d(line, huge), ShapeError);
  CHECK_THROWS_WITH(lp_pool1d(line, 0, 2), "lp_pool1d: power 0 must be above 0");
  CHECK_THROWS_AS(lp_pool2d(plane, NAN, 2), Error);
  CHECK_THROWS_AS(lp_pool2d(plane, -1, 2), Error);
  const auto indices = zeros({1, 2, 4}, Dtype::i32);
  CHECK_THROWS_AS(max_unpool1d(line, zeros({1, 2, 4}), 2), DtypeError);
  CHECK_THROWS_AS(max_unpool1d(line, zeros({1, 2, 3}, Dtype::i32), 2), ShapeError);
  CHECK_THROWS_AS(max_unpool1d(line, indices, 0), ShapeError);
  CHECK_THROWS_AS(max_unpool1d(line, indices, huge), ShapeError);
  CHECK_THROWS_AS(max_unpool1d(line, indices, 2, {.padding = 4}), ShapeError);
  CHECK_THROWS_WITH(max_unpool1d(line, indices, 2, {.output_size = 10}), Contains("output size 10"));
  CHECK_THROWS_AS(max_unpool3d(line, indices, 2), ShapeError);
}

}  // namespace clnet::testing
