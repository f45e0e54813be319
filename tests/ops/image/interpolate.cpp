#include "tests/cases/image/interpolate.h"

#include <catch2/catch.hpp>
#include <limits>

#include "tests/ops/check.h"

using namespace clnet;
using namespace clnet::testing;
using Catch::Matchers::Contains;

TEST_CASE("interpolate") { check(interpolate_cases(), {"resample"}); }

TEST_CASE("interpolate's gradient has a gradient") {
  const Tensor x = reshape(arange(6, 0, 1, Dtype::f32), {1, 1, 2, 3});
  const auto enlarged = [](const Tensor& t) { return interpolate(t, {.size = {5, 4}, .mode = Interpolation::bilinear}); };
  // d/dx of |U^T U x|^2 / 2 is (U^T U)^2 x.
  const auto turned = [&](const Tensor& t) { return gradients(sum(square(enlarged(t))) * 0.5, {t})[0]; };
  const auto got = gradients(sum(square(turned(x))) * 0.5, {x})[0].to_vector<float>(),
             want = turned(turned(x)).to_vector<float>();
  for (std::size_t i = 0; i < want.size(); ++i) CHECK(got[i] == Approx(want[i]).epsilon(1e-4));
}

TEST_CASE("interpolate rounds a volume to a narrow dtype once") {
  for (auto mode : {Interpolation::trilinear, Interpolation::area})
    for (auto dtype : {Dtype::f16, Dtype::bf16}) {
      const auto x = cast(make_tensor({1, 2, 5, 6, 7}, 3, 1, 2), dtype);
      const InterpolateOptions options{.size = {7, 4, 11}, .mode = mode};
      const auto want = cast(interpolate(cast(x, Dtype::f32), options), dtype);
      CHECK(interpolate(x, options).to_vector<float>() == want.to_vector<float>());
    }
}

TEST_CASE("interpolate of volumes takes first what leaves less") {
  // The other way, what lies between has too many elements for a tensor.
  for (auto mode : {Interpolation::trilinear, Interpolation::nearest}) {
    CHECK(sum(interpolate(ones({1, 1, 2, 1100, 1000}), {.size = {2000, 10, 10}, .mode = mode})).item<float>() == 2e5F);
    CHECK(sum(interpolate(ones({1, 1, 2000, 10, 10}), {.size = {2, 1100, 1000}, .mode = mode})).item<float>() == 2.2e6F);
  }
}

TEST_CASE("interpolate with antialiasing gives PyTorch's numbers") {
  // torch.nn.functional.interpolate(torch.arange(10.)[None, None, None] ** 2, size=(1, 3), mode=..., antialias=True)
  const Tensor x = reshape(square(arange(10, 0, 1, Dtype::f32)), {1, 1, 1, 10});
  const auto to_three = [&](Interpolation mode) {
    return interpolate(x, {.size = {1, 3}, .mode = mode, .antialias = true}).to_vector<double>();
  };
  const double linear[] = {3.525424, 22.07576, 57.677963}, cubic[] = {1.878197, 21.009417, 60.539185};
  const auto by_line = to_three(Interpolation::bilinear), by_curve = to_three(Interpolation::bicubic);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(by_line[i] == Approx(linear[i]).epsilon(1e-5));
    CHECK(by_curve[i] == Approx(cubic[i]).epsilon(1e-5));
  }
}

TEST_CASE("interpolate leaves infinities where they are, and nothing to nothing") {
  const float infinity = std::numeric_limits<float>::infinity();
  const auto y = interpolate(Tensor::from<float>({infinity, 1, 2}, {1, 1, 3}), {.size = {6}});
  CHECK(y.to_vector<float>() == std::vector<float>{infinity, infinity, 1, 1, 2, 2});
  CHECK(interpolate(zeros({0, 2, 3}), {.size = {1 << 30}}).shape() == Shape{0, 2, 1 << 30});
}

TEST_CASE("interpolate refuses what contradicts itself") {
  const Tensor x = zeros({1, 2, 4, 4});
  using enum Interpolation;
  const auto refused = [&](const InterpolateOptions& options, const char* why) {
    CHECK_THROWS_WITH(interpolate(x, options), Contains("interpolate: ") && Contains(why));
  };
  refused({}, "either size or scale_factor");
  refused({.size = {2}, .scale_factor = {2}}, "either size or scale_factor");
  refused({.size = {2, 2, 2}}, "3 numbers for 2 dimensions");
  refused({.size = {2}, .mode = linear}, "linear does not interpolate f32[1, 2, 4, 4]");
  refused({.size = {2}, .mode = trilinear}, "trilinear does not interpolate");
  refused({.size = {2}, .align_corners = true}, "align_corners does not go with nearest");
  refused({.size = {2}, .mode = area, .antialias = true}, "antialias does not go with area");
  refused({.size = {2}, .recompute_scale_factor = true}, "recompute_scale_factor");
  refused({.size = {0}}, "0 is no extent");
  refused({.size = {-3}}, "-3 is no extent");
  refused({.scale_factor = {0.1}}, "4 times 0.1 is no extent");
  refused({.scale_factor = {-2}}, "4 times -2 is no extent");
  refused({.scale_factor = {std::numeric_limits<double>::quiet_NaN()}}, "no extent");
  refused({.scale_factor = {1e300}}, "no extent");
  CHECK_THROWS_AS(interpolate(x, {.size = {1 << 20}}), ShapeError);
  CHECK_THROWS_AS(interpolate(zeros({2, 3}), {.size = {2}}), ShapeError);
  CHECK_THROWS_AS(interpolate(zeros({1, 2, 0, 3}), {.size = {2}}), ShapeError);
  CHECK_THROWS_AS(interpolate(cast(x, Dtype::i32), {.size = {2}}), DtypeError);
}
