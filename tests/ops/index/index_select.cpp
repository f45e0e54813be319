#include "tests/cases/index/index_select.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "tests/ops/check.h"

namespace clnet::testing {

TEST_CASE("index_select, gather and embedding") { check(index_select_cases(), {"index_add"}); }

TEST_CASE("An index out of range gives NaN and no gradient") {
  const auto x = Tensor::from<float>({1, 2, 3, 4}, {2, 2});
  const auto y = index_select(x, 0, Tensor::from<std::int64_t>({2, -2, -3, 1LL << 32}));
  const auto values = y.to_vector<float>();
  for (std::size_t i : {0U, 1U, 4U, 5U, 6U, 7U}) CHECK(std::isnan(values[i]));
  CHECK(values[2] == 1);
  const auto g = ones(y.shape());
  const auto dx = gradients(std::vector{y}, std::vector{g}, std::vector{x})[0];
  CHECK(dx.to_vector<float>() == std::vector<float>{1, 1, 0, 0});
  const auto again = ones(x.shape());
  const auto dg = gradients(std::vector{dx}, std::vector{again}, std::vector{g})[0];
  CHECK(dg.to_vector<float>() == std::vector<float>{0, 0, 1, 1, 0, 0, 0, 0});
  const auto whole = gather(Tensor::from<std::int32_t>({5, 6}), 0, Tensor::from<std::int32_t>({1, 7, 0}));
  CHECK(whole.to_vector<std::int32_t>() == std::vector<std::int32_t>{6, 0, 5});
}

TEST_CASE("A gather of too few places leaves the others' gradient 0, and its gradient has one") {
  const auto x = ones({3, 3}), g = full({2, 1}, 2), again = full({3, 3}, 5);
  const auto y = gather(x, 1, Tensor::from<std::int32_t>({2, 0}, {2, 1}));
  const auto dx = gradients(std::vector{y}, std::vector{g}, std::vector{x})[0];
  CHECK(dx.to_vector<float>() == std::vector<float>{0, 0, 2, 2, 0, 0, 0, 0, 0});
  CHECK(gradients(std::vector{dx}, std::vector{again}, std::vector{g})[0].to_vector<float>() == std::vector<float>{5, 5});
}

TEST_CASE("More indices than a loop of llvmpipe may have") {
  const auto x = ones({3, 2});
  const auto y = index_select(x, 0, cast(rand({100'000}) * 3.0, Dtype::i32));
  const auto g = ones(y.shape());
  const auto dx = gradients(std::vector{y}, std::vector{g}, std::vector{x})[0].to_vector<float>();
  CHECK(dx[0] == dx[1]);
  CHECK(dx[0] == Approx(100'000 / 3.0).epsilon(0.02));
  CHECK(dx[0] + dx[2] + dx[4] == 100'000);
}

TEST_CASE("one_hot") {
  const auto y = one_hot(Tensor::from<std::int64_t>({1, 0, 3, -1}, {2, 2}), 3);
  CHECK(y.shape() == Shape{2, 2, 3});
  CHECK(y.to_vector<float>() == std::vector<float>{0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0});
  CHECK(one_hot(Tensor::from<std::int32_t>({1}), 2, Dtype::i64).to_vector<std::int64_t>() == std::vector<std::int64_t>{0, 1});
}

TEST_CASE("Indices are refused by dtype and shape") {
  const auto x = ones({2, 3});
  CHECK_THROWS_AS(index_select(x, 0, ones({2})), DtypeError);
  CHECK_THROWS_AS(gather(x, 0, ones({2, 2})), DtypeError);
  CHECK_THROWS_AS(gather(x, 0, zeros({2}, Dtype::i32)), ShapeError);
  CHECK_THROWS_AS(gather(x, 0, zeros({2, 4}, Dtype::i32)), ShapeError);
  CHECK_THROWS_WITH(embedding(zeros({2}, Dtype::i32), ones({3, 2}), 3),
                    Catch::Matchers::Contains("padding index 3") && Catch::Matchers::Contains("3 rows"));
  CHECK_THROWS_AS(embedding(zeros({2}, Dtype::i32), ones({3})), ShapeError);
  CHECK_THROWS_AS(one_hot(x, 3), DtypeError);
}

TEST_CASE("nn::Embedding names an index from the host that is outside of its rows") {
  nn::Embedding layer(4, 2);
  CHECK_THROWS_WITH(layer(Tensor::from({0, 1, 3, 4}, {2, 2})), "Embedding: index 4 of sample 1 at [1] is outside of the 4 rows");
  CHECK_THROWS_WITH(layer(arange(6)), "Embedding: index 4 of sample 4 is outside of the 4 rows");
  CHECK_THROWS_WITH(layer(Tensor::from<std::int64_t>({-5})), "Embedding: index -5 of sample 0 is outside of the 4 rows");
  CHECK(layer(Tensor::from<std::int64_t>({-4, 3})).shape() == Shape{2, 2});
}

TEST_CASE("no gradient flows to the padding's row of an embedding") {
  const Tensor weight = ones({3, 2}), indices = Tensor::from({0, 1, -2, 2, 1, 0});
  const auto gradient = [&](std::optional<std::int64_t> padding) {
    return gradients(sum(embedding(indices, weight, padding)), {weight})[0].to_vector<float>();
  };
  CHECK(gradient(std::nullopt) == std::vector<float>{2, 2, 3, 3, 1, 1});
  CHECK(gradient(1) == std::vector<float>{2, 2, 0, 0, 1, 1});
  CHECK(gradient(-1) == std::vector<float>{2, 2, 3, 3, 0, 0});
}

}  // namespace clnet::testing
