#include <catch2/catch.hpp>
#include <cmath>

#include "clnet/clnet.h"

using namespace clnet;

using Places = std::vector<std::int64_t>;

TEST_CASE("the median is the lower one, and NaN where there is one") {
  const Tensor x = Tensor::from({4.F, 1.F, 3.F, 2.F, NAN, 7.F, NAN, 1.F}, {2, 4});
  const auto [values, indices] = median(x, 1);
  CHECK(values.to_vector<float>()[0] == 2);
  CHECK(std::isnan(values.to_vector<float>()[1]));
  CHECK(indices.to_vector<std::int64_t>() == Places{3, 0});
  const auto numbers = nanmedian(x, 1, true);
  CHECK(numbers.values.shape() == Shape{2, 1});
  CHECK(numbers.values.to_vector<float>() == std::vector<float>{2, 1});
  CHECK(numbers.indices.to_vector<std::int64_t>() == Places{3, 3});
  CHECK(std::isnan(nanmedian(full({3}, NAN), 0).values.item<float>()));
  CHECK(median(Tensor::from({5, 1, 4, 2}, {2, 2})).item<std::int32_t>() == 2);
  CHECK(median(full({}, 3), 0).values.item<float>() == 3);
}

TEST_CASE("the mode is the smallest of the most frequent elements, at its last place") {
  const Tensor x = Tensor::from({3, 1, 3, 1, 2, 5, 5, 5, 0, 0}, {2, 5});
  const auto [values, indices] = mode(x);
  CHECK(values.to_vector<std::int32_t>() == std::vector<std::int32_t>{1, 5});
  CHECK(indices.to_vector<std::int64_t>() == Places{3, 2});
  CHECK(mode(Tensor::from({NAN, 2.F, NAN, 2.F})).values.item<float>() == 2);
  CHECK(mode(ones({3}, Dtype::boolean), 0, true).indices.shape() == Shape{1});
}

TEST_CASE("quantiles of all elements, of NaN, and of infinities") {
  const Tensor x = Tensor::from({1.F, 2.F, 3.F, 4.F}, {2, 2});
  CHECK(quantile(x, 0.5).item<float>() == 2.5F);
  CHECK(quantile(x, 0.5, std::nullopt, true).shape() == Shape{1, 1});
  CHECK(quantile(x, std::vector{0.0, 1.0}).to_vector<float>() == std::vector<float>{1, 4});
  CHECK(quantile(x, std::vector{0.25, 0.75}, 0, true).shape() == Shape{2, 1, 2});
  CHECK(quantile(x, 0.5, 1).to_vector<float>() == std::vector<float>{1.5F, 3.5F});
  const Tensor some = Tensor::from({NAN, 2.F, 3.F, NAN});
  CHECK(std::isnan(quantile(some, 0.5).item<float>()));
  CHECK(nanquantile(some, 0.5).item<float>() == 2.5F);
  CHECK(nanquantile(some, std::vector{0.0, 1.0}).to_vector<float>() == std::vector<float>{2, 3});
  CHECK(std::isnan(nanquantile(full({2}, NAN), 0.5).item<float>()));
  const Tensor ends = Tensor::from({-INFINITY, 1.F, INFINITY, INFINITY});
  CHECK(quantile(ends, 1).item<float>() == INFINITY);
  CHECK(quantile(ends, 1.0 / 3).item<float>() == Approx(1));
  CHECK(quantile(full({}, 3), 0.5, 0).item<float>() == 3);
  CHECK(quantile(cast(x, Dtype::f16), 0.5).dtype() == Dtype::f16);
}

TEST_CASE("quantiles beside infinities go from the nearer end, as PyTorch's") {
  CHECK(quantile(Tensor::from({-INFINITY, 1.0F}), 0.5).item() == -INFINITY);
  CHECK(quantile(Tensor::from({1.0F, INFINITY}), 0.25).item() == INFINITY);
}

TEST_CASE("medians and quantiles refuse what is not there") {
  CHECK_THROWS_WITH(kthvalue(ones({3}), 0), "kthvalue: element 0 of 3 along dimension -1");
  CHECK_THROWS_AS(kthvalue(ones({3}), 4), ShapeError);
  CHECK_THROWS_WITH(median(zeros({2, 0}), 1), "median: there are no elements along dimension 1 of [2, 0]");
  CHECK_THROWS_AS(mode(zeros({0})), ShapeError);
  CHECK_THROWS_WITH(quantile(ones({3}), 1.5), "quantile: q 1.5 is not within 0..1");
  CHECK_THROWS_AS(quantile(ones({3}, Dtype::i32), 0.5), DtypeError);
  CHECK_THROWS_AS(nanquantile(ones({3}), 0.5, 1), ShapeError);
}
