#include "tests/cases/conv/conv.h"

#include <catch2/catch.hpp>

#include "lib/exec/statistics.h"
#include "tests/ops/check.h"

using namespace clnet;
using namespace clnet::testing;
using Catch::Contains;

// The solvers are those of conv2d, whose tests force them; those of volumes read them in ways of their own.
TEST_CASE("conv1d") { check(conv1d_cases()); }
TEST_CASE("conv_transpose1d") { check(conv_transpose1d_cases()); }
TEST_CASE("conv3d") { check(conv3d_cases()); }
TEST_CASE("conv_transpose3d") { check(conv_transpose3d_cases()); }
// They are convolutions of planes, for which conv2d.cpp forces each solver.
TEST_CASE("conv3d by each solver", "[sweep]") { check(conv3d_cases(), {"conv2d", "conv2d_backward_data"}); }
TEST_CASE("conv_transpose3d by each solver", "[sweep]") { check(conv_transpose3d_cases(), {"conv2d", "conv2d_backward_data"}); }

TEST_CASE("conv3d: a layer's training takes few kernels beside those of its convolution") {
  const Tensor x = rand({2, 4, 5, 8, 8}), weight = rand({6, 4, 3, 3, 3}), g = rand({2, 6, 5, 8, 8});
  const Tensor image = rand({10, 12, 8, 8}), filters = rand({6, 12, 3, 3}), image_g = rand({10, 6, 8, 8});
  eval({x, weight, g, image, filters, image_g});
  const auto kernels = [](const Tensor& y, const Tensor& gradient, const std::vector<Tensor>& inputs) {
    const std::vector<Tensor> from{y}, with{gradient};
    auto all = gradients(from, with, inputs);
    all.push_back(y);
    const auto before = exec::statistics().kernels;
    eval(all);
    return exec::statistics().kernels - before;
  };
  const auto volume = kernels(conv3d(x, weight, {}, {.padding = 1}), g, {x, weight});
  const auto images = kernels(conv2d(image, filters, {}, {.padding = 1}), image_g, {image, filters});
  // Unfolding, its adjoint, and the gradient with the depth before the channels.
  CHECK(volume <= images + 3);
}

TEST_CASE("convolutions of a sample without a batch") {
  const auto same = [](const Tensor& x, const auto& f) {
    const Tensor y = f(x), batch = f(unsqueeze(x, 0));
    CHECK(y.shape() == squeeze(batch, 0).shape());
    CHECK(y.to_vector<float>() == batch.to_vector<float>());
    CHECK(gradients(sum(square(y)), {x})[0].to_vector<float>() == gradients(sum(square(batch)), {x})[0].to_vector<float>());
  };
  const Tensor line = make_tensor({2, 7}), image = make_tensor({2, 4, 5}), volume = make_tensor({2, 3, 4, 5});
  const Tensor of_line = make_tensor({2, 2, 3}), of_image = make_tensor({2, 2, 3, 2}), of_volume = make_tensor({2, 2, 2, 3, 2});
  same(line, [&](const Tensor& x) { return conv1d(x, of_line, ones({2}), {.padding = 1}); });
  same(image, [&](const Tensor& x) { return conv2d(x, of_image, ones({2}), {.padding = 1}); });
  same(volume, [&](const Tensor& x) { return conv3d(x, of_volume, {}, {.padding = 1}); });
  same(line, [&](const Tensor& x) { return conv_transpose1d(x, of_line, {}, {.stride = 2}); });
  same(image, [&](const Tensor& x) { return conv_transpose2d(x, of_image, ones({2})); });
  same(volume, [&](const Tensor& x) { return conv_transpose3d(x, of_volume); });
}

TEST_CASE("convolutions of lines and volumes: wrong shapes name the operation and both shapes") {
  const Tensor line = ones({1, 4, 9}), volume = ones({1, 4, 3, 4, 5}), of_line = ones({6, 4, 3}),
               of_volume = ones({6, 4, 3, 3, 3});
  CHECK_THROWS_WITH(conv1d(line, ones({6, 3, 3})),
                    "conv1d: input f32[1, 4, 9] has 4 channels, but weight f32[6, 3, 3] with 1 groups takes 3");
  CHECK_THROWS_WITH(conv1d(ones({1, 4, 0}), of_line, {}, {.padding = 4}), "conv1d: input f32[1, 4, 0] is empty");
  CHECK_THROWS_WITH(conv1d(ones({9}), of_line), "conv1d: the input must be {N, C, L} or {C, L}, got f32[9]");
  CHECK_THROWS_WITH(conv1d(line, of_line, {}, {.dilation = 5}),
                    "conv1d: weight f32[6, 4, 3], dilated by 5, is larger than the padded input f32[1, 4, 9] (padding {0, 0})");
  CHECK_THROWS_WITH(conv1d(ones({4, 9}), ones({6, 3, 3})),
                    "conv1d: input f32[4, 9] has 4 channels, but weight f32[6, 3, 3] with 1 groups takes 3");
  CHECK_THROWS_WITH(conv1d(ones({4, 2}), of_line),
                    "conv1d: weight f32[6, 4, 3], dilated by 1, is larger than the padded input f32[4, 2] (padding {0, 0})");
  CHECK_THROWS_WITH(conv_transpose1d(ones({4, 9}), ones({3, 2, 3})),
                    "conv_transpose1d: input f32[4, 9] has 4 channels, but weight f32[3, 2, 3] with 1 groups takes 3");
  CHECK_THROWS_WITH(conv3d(volume, of_volume, {}, {.stride = {1, 0, 1}}), "conv3d: stride 1x0x1 must be at least 1");
  CHECK_THROWS_WITH(conv3d(volume, of_volume, {}, {.padding = {0, 0, 0, -1, 0, 0}}),
                    "conv3d: padding {0, 0, 0, -1, 0, 0} must not be negative; slice() crops");
  CHECK_THROWS_WITH(conv3d(volume, of_line), Contains("the weight must be 5-dimensional"));
  CHECK_THROWS_WITH(conv3d(volume, of_volume, ones({5})), Contains("conv3d: bias f32[5]"));
  CHECK_THROWS_WITH(conv3d(volume, ones({6, 4, 4, 3, 3})), Contains("is larger than the padded input"));
  CHECK_THROWS_WITH(conv3d(volume, ones({6, 4, 0, 3, 3})), Contains("empty kernel"));
  CHECK_THROWS_AS(conv3d(cast(volume, Dtype::i32), cast(of_volume, Dtype::i32)), DtypeError);
  CHECK_THROWS_WITH(conv_transpose1d(line, ones({3, 2, 3})), Contains("conv_transpose1d: input f32[1, 4, 9] has 4 channels"));
  CHECK_THROWS_WITH(conv_transpose1d(line, ones({4, 2, 3}), {}, {.stride = 2, .output_padding = 2}),
                    Contains("conv_transpose1d: output padding 2"));
  CHECK_THROWS_WITH(conv_transpose3d(volume, ones({4, 2, 1, 1, 1}), {}, {.padding = 2}), Contains("give an empty -1x0x1 output"));
  CHECK_THROWS_WITH(conv_transpose3d(volume, ones({4, 2, 3, 3, 3}), {}, {.groups = 3}), Contains("3 groups"));
}

TEST_CASE("convolutions of lines and volumes: numbers beyond bounds are refused") {
  constexpr auto huge = std::numeric_limits<std::int64_t>::max();
  const Tensor line = ones({1, 1, 9}), volume = ones({1, 1, 3, 3, 3}), of_line = ones({1, 1, 3}),
               of_volume = ones({1, 1, 3, 3, 3});
  CHECK_THROWS_AS(conv1d(line, of_line, {}, {.stride = huge}), ShapeError);
  CHECK_THROWS_AS(conv1d(line, of_line, {}, {.padding = huge}), ShapeError);
  CHECK_THROWS_AS(conv1d(line, of_line, {}, {.dilation = huge}), ShapeError);
  CHECK_THROWS_AS(conv1d(line, of_line, {}, {.groups = huge}), ShapeError);
  CHECK_THROWS_AS(conv1d(line, of_line, {}, {.padding = 1 << 30}), ShapeError);
  CHECK_THROWS_AS(conv3d(volume, of_volume, {}, {.padding = {1 << 29, 0, 0}}), ShapeError);
  CHECK_THROWS_WITH(conv3d(ones({1, 1, 64, 1, 1}), ones({1, 1, 60000, 2, 2}), {}, {.padding = {60000, 1, 1}}),
                    Contains("more than 2147483647 elements"));
  CHECK_THROWS_AS(conv_transpose1d(line, of_line, {}, {.stride = 1 << 30}), ShapeError);
  CHECK_THROWS_AS(conv_transpose3d(volume, of_volume, {}, {.padding = {1 << 30, 0, 0}, .output_padding = {1 << 29, 0, 0}}),
                  ShapeError);
}

TEST_CASE("padding that keeps the extents") {
  CHECK(Padding1d::same(4, 3) == Padding1d(4, 5));
  CHECK(Padding::same({3, 2}) == Padding(1, 0, 1, 1));
  CHECK(Padding3d::same({3, 2, 1}, {2, 1, 1}) == Padding3d(2, 0, 0, 2, 1, 0));
  CHECK(conv1d(ones({1, 2, 10}), ones({3, 2, 4}), {}, {.padding = Padding1d::same(4)}).shape() == Shape{1, 3, 10});
}
