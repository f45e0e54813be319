#include "tests/cases/shape/unfold.h"

#include <catch2/catch.hpp>
#include <limits>

#include "tests/ops/check.h"

using namespace clnet;
using namespace clnet::testing;
using Catch::Matchers::Contains;

TEST_CASE("unfold and fold") { check(unfold_cases(), {"index_add"}); }

TEST_CASE("a convolution is a product of unfolded images") {
  const Tensor x = rand({2, 3, 6, 7}), weight = rand({4, 3, 3, 2});
  const Tensor columns = unfold(x, {3, 2}, {.padding = 1, .stride = {1, 2}});
  const Tensor product = matmul(reshape(weight, {4, 18}), columns);
  const Tensor want = conv2d(x, weight, {}, {.stride = {1, 2}, .padding = 1});
  compare("y", to_array(reshape(product, want.shape())), to_array(want), 1e-5);
}

TEST_CASE("unfold and fold of one sample") {
  const Tensor x = rand({2, 4, 4});
  const Tensor columns = unfold(x, 2);
  CHECK(columns.shape() == Shape{8, 9});
  CHECK(columns.to_vector<float>() == unfold(unsqueeze(x, 0), 2).to_vector<float>());
  CHECK(fold(columns, 4, 2).shape() == x.shape());
  CHECK(unfold(zeros({0, 2, 4, 4}), 2).shape() == Shape{0, 8, 9});
}

TEST_CASE("unfold and fold refuse what does not fit") {
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  const Tensor x = zeros({1, 2, 4, 4});
  CHECK_THROWS_WITH(unfold(zeros({4, 4}), 2), "unfold: f32[4, 4] is not {N, C, H, W} or {C, H, W}");
  CHECK_THROWS_WITH(unfold(x, 5), "unfold: windows of 5 x 5 do not fit into the padded 4 x 4");
  CHECK_THROWS_WITH(unfold(x, 2, {.stride = 0}), "unfold: kernel, dilation and stride must be positive");
  CHECK_THROWS_WITH(unfold(x, 2, {.padding = -1}), "unfold: padding and size must not be negative");
  CHECK_THROWS_AS(unfold(x, most), ShapeError);
  CHECK_THROWS_AS(unfold(x, 2, {.dilation = most}), ShapeError);
  CHECK_THROWS_AS(unfold(x, 2, {.padding = most}), ShapeError);
  CHECK_THROWS_AS(unfold(cast(x, Dtype::i32), 2), DtypeError);
  CHECK_THROWS_WITH(fold(zeros({1, 7, 9}), 4, 2), "fold: f32[1, 7, 9] is not {N, C 4, 9}, columns of 9 windows");
  CHECK_THROWS_AS(fold(zeros({1, 8, 8}), 4, 2), ShapeError);
  CHECK_THROWS_AS(fold(zeros({1, 8, 9}, Dtype::boolean), 4, 2), DtypeError);
}
