#include "tests/cases/pool/max_pool2d.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "lib/exec/choose/solver.h"
#include "tests/ops/check.h"

namespace clnet::testing {

TEST_CASE("max_pool2d") { check(max_pool2d_cases(), {"max_pool2d", "max_pool2d_backward"}); }

TEST_CASE("max_pool2d: NaN wins, the first of equals takes the gradient, -infinity is a value") {
  const float nan = std::nanf(""), least = -INFINITY;
  const auto x = Tensor::from<float>({1, 2, 2, 3, nan, 0, 5, 9, least, least, least, least}, {1, 1, 2, 6});
  const auto y = max_pool2d(x, 2);
  const auto values = y.to_vector<float>();
  CHECK(values[0] == 9);
  CHECK(values[1] == 3);
  CHECK(std::isnan(values[2]));
  const auto equal = full({1, 1, 2, 4}, least);
  const auto pooled = max_pool2d(equal, 2);
  CHECK(pooled.to_vector<float>() == std::vector<float>(2, least));
  const auto g = ones(pooled.shape());
  const auto dx = gradients(std::vector{pooled}, std::vector{g}, std::vector{equal})[0];
  CHECK(dx.to_vector<float>() == std::vector<float>{1, 0, 1, 0, 0, 0, 0, 0});
}

TEST_CASE("max_pool2d: every solver takes the same elements") {
  const float nan = std::nanf("");
  const auto filled = [&](const Shape& shape) {
    std::vector<float> values(static_cast<std::size_t>(shape.numel()));
    std::uint32_t state = 1;
    for (auto& value : values) {
      state = state * 1664525 + 1013904223;
      const auto draw = state >> 24;
      value = draw < 4 ? nan : draw < 40 ? -INFINITY : static_cast<float>(draw % 5);
    }
    return Tensor::from(values, shape);
  };
  const auto same = [](const Tensor& a, const Tensor& b) {
    const auto x = a.to_vector<float>(), y = b.to_vector<float>();
    return std::equal(x.begin(), x.end(), y.begin(), y.end(),
                      [](float p, float q) { return p == q || (std::isnan(p) && std::isnan(q)); });
  };
  struct Pool {
    Shape shape;
    Pair kernel;
    MaxPool2dOptions options;
  };
  const std::vector<Pool> pools{{{2, 3, 9, 66}, 3, {.stride = 2, .padding = 1}},
                                {{1, 3, 8, 40}, 2, {}},
                                {{1, 2, 7, 37}, {4, 3}, {.stride = 1, .padding = {2, 1}}},
                                {{1, 2, 11, 45}, 3, {.stride = Pair{3, 2}, .padding = 1, .dilation = {2, 1}, .ceil_mode = true}},
                                {{1, 2, 5, 2300}, 2, {}},
                                {{1, 1, 4, 1500}, {2, 3}, {.stride = 1, .padding = {0, 1}}}};
  for (const auto& [shape, kernel, options] : pools) {
    INFO(to_string(shape));
    const auto x = filled(shape);
    const auto expected = [&, &kernel = kernel, &options = options] {
      const exec::ForceSolver direct("max_pool2d", "direct");
      const auto found = max_pool2d_with_indices(x, kernel, options);
      eval({found.y, found.indices});
      return found;
    }();
    const auto both = max_pool2d_with_indices(x, kernel, options);
    eval({both.y, both.indices});
    CHECK(same(both.y, expected.y));
    CHECK(both.indices.to_vector<std::int32_t>() == expected.indices.to_vector<std::int32_t>());
    CHECK(same(max_pool2d(x, kernel, options), expected.y));
  }
}

TEST_CASE("max_pool2d's places are there when they are asked for after its values") {
  const auto x = Tensor::from<float>({1, 2, 8, 4, 5, 6, 7, 3}, {1, 1, 2, 4});
  for (int run = 0; run < 3; ++run) {
    const auto [y, indices] = max_pool2d_with_indices(x, 2);
    CHECK(y.to_vector<float>() == std::vector<float>{6, 8});
    CHECK(indices.to_vector<std::int32_t>() == std::vector<std::int32_t>{5, 2});
    const auto z = square(max_pool2d(x, 2));
    CHECK(z.to_vector<float>() == std::vector<float>{36, 64});
    const auto dx = gradients(sum(z), {x})[0];
    CHECK(dx.to_vector<float>() == std::vector<float>{0, 0, 16, 0, 0, 12, 0, 0});
  }
}

TEST_CASE("max_pool2d's gradient has a gradient") {
  const auto x = Tensor::from<float>({1, 2, 8, 4, 5, 6, 7, 3}, {1, 1, 2, 4}), g = full({1, 1, 1, 2}, 3);
  const auto again = Tensor::from<float>({1, 2, 3, 4, 5, 6, 7, 8}, {1, 1, 2, 4});
  const auto y = max_pool2d(x, 2);
  const auto dx = gradients(std::vector{y}, std::vector{g}, std::vector{x})[0];
  CHECK(dx.to_vector<float>() == std::vector<float>{0, 0, 3, 0, 0, 3, 0, 0});
  CHECK(gradients(std::vector{dx}, std::vector{again}, std::vector{g})[0].to_vector<float>() == std::vector<float>{6, 3});
}

TEST_CASE("global_max_pool2d of a large plane takes the first of equals") {
  auto values = std::vector<float>(300 * 300, 1);
  values[70'000] = values[70'001] = values[80'000] = 2;
  const auto x = Tensor::from(values, {1, 1, 300, 300});
  const auto y = global_max_pool2d(x);
  CHECK(y.shape() == Shape{1, 1, 1, 1});
  CHECK(y.item<float>() == 2);
  const auto g = ones(y.shape());
  const auto dx = gradients(std::vector{y}, std::vector{g}, std::vector{x})[0].to_vector<float>();
  CHECK(dx[70'000] == 1);
  CHECK(std::count(dx.begin(), dx.end(), 0.0F) == 300 * 300 - 1);
}

TEST_CASE("max_pool2d refuses what does not fit") {
  const auto x = ones({1, 2, 4, 4});
  CHECK_THROWS_WITH(max_pool2d(x, 5),
                    "max_pool2d: height: a window of extent 5 does not fit into [1, 2, 4, 4] with padding 0 and 0");
  // In ceil_mode one that reaches beyond the end by less than a stride does, as in PyTorch.
  CHECK(max_pool2d(x, 5, {.stride = 2, .ceil_mode = true}).shape() == Shape{1, 2, 1, 1});
  CHECK_THROWS_WITH(max_pool2d(x, 6, {.stride = 2, .ceil_mode = true}),
                    "max_pool2d: height: a window of extent 6 does not fit into [1, 2, 4, 4] with padding 0 and 0");
  CHECK_THROWS_AS(max_pool2d(x, 5, {.stride = 1, .ceil_mode = true}), ShapeError);
  CHECK_THROWS_AS(max_pool2d(ones({1, 2, 0, 4}), 1, {.stride = 2, .ceil_mode = true}), ShapeError);
  CHECK_THROWS_WITH(max_pool2d(x, 2, {.padding = 2}),
                    "max_pool2d: height: padding 2 and 2 must be between 0 and half the window's extent 2");
  CHECK_THROWS_AS(max_pool2d(x, 2, {.stride = 0}), ShapeError);
  CHECK_THROWS_AS(max_pool2d(x, 0), ShapeError);
  CHECK_THROWS_AS(max_pool2d(x, 2, {.dilation = 0}), ShapeError);
  CHECK_THROWS_AS(max_pool2d(x, 2, {.padding = -1}), ShapeError);
  CHECK_THROWS_AS(max_pool2d(ones({4, 4}), 2), ShapeError);
  CHECK_THROWS_AS(max_pool2d(ones({1, 2, 4, 4}, Dtype::i32), 2), DtypeError);
  CHECK_THROWS_AS(adaptive_max_pool2d(x, 0), ShapeError);
}

}  // namespace clnet::testing
