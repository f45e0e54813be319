#include "tests/cases/index/sort.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "tests/ops/check.h"

using namespace clnet;
using namespace clnet::testing;
using Catch::Matchers::Contains;

TEST_CASE("sort and topk") { check(sort_cases(), {"argsort", "topk"}); }

TEST_CASE("NaN is the largest, and zeros are equal") {
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  const Tensor x = Tensor::from<float>({0, nan, -0.0F, infinity, -infinity, nan, 1});
  using Places = std::vector<std::int64_t>;
  CHECK(argsort(x).to_vector<std::int64_t>() == Places{4, 0, 2, 6, 3, 1, 5});
  CHECK(argsort(x, 0, true).to_vector<std::int64_t>() == Places{1, 5, 3, 6, 0, 2, 4});
  CHECK(topk(x, 3, -1, false).indices.to_vector<std::int64_t>() == Places{4, 0, 2});
}

TEST_CASE("topk of long lines finds NaN, equal elements and both zeros where sorting does") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const std::int64_t extent : {64, 65, 300, 1000})
    for (const int nans : {0, 2, 12}) {
      std::vector<float> values(static_cast<std::size_t>(3 * extent));
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>((i * 37) % 91) - 45.0F;
      for (std::size_t i = 0; i < values.size(); i += 53)
        if (values[i] == 0) values[i] = -0.0F;
      for (int i = 0; i < nans; ++i) values[static_cast<std::size_t>(extent - 1 - 5 * i)] = nan;
      const Tensor x = Tensor::from(values, {3, extent});
      for (const bool largest : {false, true}) {
        INFO(extent << " with " << nans << " NaN, largest: " << largest);
        CHECK(topk(x, 7, 1, largest).indices.to_vector<std::int64_t>() ==
              slice(argsort(x, 1, largest), 1, 0, 7).to_vector<std::int64_t>());
      }
    }
}

TEST_CASE("orders of scalars and of nothing") {
  CHECK(sort(full({}, 3)).values.item<float>() == 3);
  CHECK(argsort(full({}, 3)).item<std::int64_t>() == 0);
  CHECK(topk(full({}, 3), 1).values.shape() == Shape{});
  CHECK(sort(zeros({0, 3}), 0).values.shape() == Shape{0, 3});
  CHECK(sort(zeros({0, 3}), 1).indices.shape() == Shape{0, 3});
  CHECK(argsort(Tensor::from<std::int64_t>({(1LL << 40) + 1, 1LL << 40})).to_vector<std::int64_t>() ==
        std::vector<std::int64_t>{1, 0});
}

TEST_CASE("sort and topk refuse what is not there") {
  CHECK_THROWS_WITH(sort(zeros({2, 3}), 2), "sort: dimension 2 is out of range for shape [2, 3]");
  CHECK_THROWS_WITH(argsort(zeros({}), 1), Contains("argsort: dimension 1"));
  CHECK_THROWS_WITH(topk(zeros({2, 3}), 4), "topk: 4 of 3 elements along dimension -1");
  CHECK_THROWS_AS(topk(zeros({2, 3}), -1), ShapeError);
}
