#include <catch2/catch.hpp>
#include <cmath>

#include "clnet/clnet.h"

using namespace clnet;
using Catch::Matchers::Contains;

TEST_CASE("take, gather_nd and scatter_nd of what is out of range") {
  const Tensor x = Tensor::from({1, 2, 3, 4}, {2, 2}), at = Tensor::from<std::int32_t>({1, -1, 2, 0, -2, 1}, {3, 2});
  CHECK(take(x, Tensor::from<std::int64_t>({-1, 4, 0})).to_vector<std::int32_t>() == std::vector<std::int32_t>{4, 0, 1});
  CHECK(gather_nd(x, at).to_vector<std::int32_t>() == std::vector<std::int32_t>{4, 0, 2});
  const auto missing = gather_nd(cast(x, Dtype::f32), at).to_vector<float>();
  CHECK(std::isnan(missing[1]));
  CHECK(scatter_nd(x, at, Tensor::from({7, 8, 9})).to_vector<std::int32_t>() == std::vector<std::int32_t>{1, 9, 3, 7});
  // Of several at one place the last.
  CHECK(scatter_nd(x, zeros({3, 1}, Dtype::i64), Tensor::from({1, 1, 2, 2, 7, 8}, {3, 2})).to_vector<std::int32_t>() ==
        std::vector<std::int32_t>{7, 8, 3, 4});
  const Tensor values = cast(x, Dtype::f32), source = ones({3});
  const auto slopes = gradients(sum(scatter_nd(values, at, source) * values), {values, source});
  CHECK(slopes[1].to_vector<float>() == std::vector<float>{4, 0, 2});
}

TEST_CASE("take_along_dim without a dimension, and of a scalar") {
  const Tensor x = Tensor::from({3.F, 1.F, 2.F, 9.F}, {2, 2});
  CHECK(take_along_dim(x, argsort(reshape(x, {4}))).to_vector<float>() == std::vector<float>{1, 2, 3, 9});
  CHECK(take_along_dim(x, argsort(x, 1), 1).to_vector<float>() == std::vector<float>{1, 3, 2, 9});
  CHECK(take_along_dim(full({}, 3), zeros({}, Dtype::i64), 0).shape() == Shape{});
}

TEST_CASE("index_fill and index_copy of whole numbers and scalars") {
  const Tensor x = Tensor::from({1, 2, 3}), at = Tensor::from<std::int64_t>({2, 0, -1});
  CHECK(index_fill(x, 0, at, -4).to_vector<std::int32_t>() == std::vector<std::int32_t>{-4, 2, -4});
  CHECK(index_copy(x, 0, at, Tensor::from({7, 8, 9})).to_vector<std::int32_t>() == std::vector<std::int32_t>{8, 2, 9});
  CHECK(index_fill(full({}, 3), 0, Tensor::scalar(0, Dtype::i64), 5).item<float>() == 5);
  CHECK_THROWS_AS(index_fill(x, 0, at, 1e12), DtypeError);
  CHECK_THROWS_WITH(index_fill(zeros({3}, Dtype::u8), 0, at, 0.5), "index_fill: 0.5 does not fit in u8");
}

TEST_CASE("picking and placing refuse what does not fit") {
  const Tensor x = ones({2, 3}), at = zeros({4, 2}, Dtype::i64);
  CHECK_THROWS_WITH(take_along_dim(x, at, 1), "take_along_dim: indices [4, 2] do not broadcast with [2, 3] outside dimension 1");
  CHECK_THROWS_AS(take(x, x), DtypeError);
  CHECK_THROWS_WITH(gather_nd(x, zeros({4, 3}, Dtype::i64)), Contains("gather_nd: the last dimension of indices [4, 3]"));
  CHECK_THROWS_AS(gather_nd(x, at, 1), ShapeError);
  CHECK_THROWS_AS(gather_nd(x, Tensor::scalar(0, Dtype::i64)), ShapeError);
  CHECK_THROWS_WITH(scatter_nd(x, at, ones({3})), Contains("scatter_nd: source [3] is not [4]"));
  CHECK_THROWS_AS(scatter_nd(cast(x, Dtype::i32), at, ones({4}, Dtype::i32), ScatterReduction::mean), DtypeError);
  CHECK_THROWS_AS(index_fill(x, 0, at, 1), ShapeError);
  CHECK_THROWS_WITH(index_copy(x, 0, zeros({2}, Dtype::i64), x[0]), Contains("index_copy: source [3] is not [2, 3]"));
}
