#include <catch2/catch.hpp>
#include <cmath>

#include "clnet/clnet.h"

using namespace clnet;

using Places = std::vector<std::int64_t>;

TEST_CASE("searchsorted of equal elements, NaN and nothing") {
  const Tensor line = Tensor::from({1.F, 2.F, 2.F, 5.F, NAN}), x = Tensor::from({0.F, 2.F, 5.F, 9.F, NAN});
  CHECK(searchsorted(line, x).to_vector<std::int64_t>() == Places{0, 1, 3, 4, 4});
  CHECK(searchsorted(line, x, true).to_vector<std::int64_t>() == Places{0, 3, 4, 4, 5});
  CHECK(bucketize(x, Tensor::from({1.F, 2.F, 5.F})).to_vector<std::int64_t>() == Places{0, 1, 2, 3, 3});
  CHECK(searchsorted(zeros({0}), x).to_vector<std::int64_t>() == Places{0, 0, 0, 0, 0});
  CHECK(searchsorted(line, full({}, 3)).item<std::int64_t>() == 3);
  CHECK(searchsorted(Tensor::from<std::int64_t>({1LL << 60, (1LL << 60) + 1}), Tensor::from<std::int64_t>({(1LL << 60) + 1}))
            .item<std::int64_t>() == 1);
  CHECK_THROWS_WITH(searchsorted(zeros({2, 3}), zeros({3, 4})),
                    "searchsorted: sorted [2, 3] is neither one line, nor a line for each of those of [3, 4]");
  CHECK_THROWS_AS(searchsorted(zeros({3}), zeros({3}, Dtype::i32)), DtypeError);
  CHECK_THROWS_AS(searchsorted(full({}, 1), zeros({3})), ShapeError);
  CHECK_THROWS_AS(bucketize(zeros({3}), zeros({1, 3})), ShapeError);
}

TEST_CASE("isin of NaN and nothing") {
  const Tensor x = Tensor::from({1.F, NAN, 3.F});
  CHECK(isin(x, Tensor::from({NAN, 3.F})).to_vector<std::int32_t>() == std::vector<std::int32_t>{0, 0, 1});
  CHECK(isin(x, Tensor::from({NAN, 3.F}), true).to_vector<std::int32_t>() == std::vector<std::int32_t>{1, 1, 0});
  CHECK(isin(x, zeros({0})).to_vector<std::int32_t>() == std::vector<std::int32_t>{0, 0, 0});
  CHECK_THROWS_AS(isin(x, zeros({3}, Dtype::i32)), DtypeError);
}

TEST_CASE("bincount as long as its input says, or as it is told") {
  const Tensor x = Tensor::from<std::int64_t>({1, 3, 1, 0});
  CHECK(bincount(x).to_vector<std::int64_t>() == Places{1, 2, 0, 1});
  CHECK(bincount(x, {}, 6).to_vector<std::int64_t>() == Places{1, 2, 0, 1, 0, 0});
  CHECK(bincount(x, {}, 0, 2).to_vector<std::int64_t>() == Places{1, 2});
  CHECK(bincount(x, Tensor::from({1, 2, 3, 4})).to_vector<std::int32_t>() == std::vector<std::int32_t>{4, 4, 0, 2});
  CHECK(bincount(zeros({0}, Dtype::i32)).shape() == Shape{0});
  const auto counted = compile([](const Tensor& in) { return bincount(in, {}, 0, 4); });
  CHECK(counted(x).to_vector<std::int64_t>() == Places{1, 2, 0, 1});
  const auto open = compile([](const Tensor& in) { return bincount(in); });
  CHECK_THROWS_WITH(open(x), "bincount: the shape depends on values; not inside compile()");
  CHECK_THROWS_WITH(bincount(Tensor::from<std::int64_t>({1, -3})), "bincount: element -3 is negative");
  CHECK_THROWS_AS(bincount(ones({2, 2}, Dtype::i32)), ShapeError);
  CHECK_THROWS_AS(bincount(x, ones({3})), ShapeError);
  CHECK_THROWS_AS(bincount(ones({3})), DtypeError);
}

TEST_CASE("histc of equal elements and at the ends") {
  CHECK(histc(ones({5}), 4).to_vector<float>() == std::vector<float>{0, 0, 5, 0});
  CHECK(histc(Tensor::from({0.F, 1.F, 2.F, 3.F, 4.F, NAN, -1.F}), 4, 0, 4).to_vector<float>() == std::vector<float>{1, 1, 1, 2});
  CHECK(histc(Tensor::from({1.F, 2.F, 3.F, 4.F}), 4, 2, 2).to_vector<float>() == std::vector<float>(4, 1));
  CHECK(histc(Tensor::from({1.F, INFINITY}), 2).to_vector<float>() == std::vector<float>{1, 0});
  CHECK(histc(zeros({0}), 3).to_vector<float>() == std::vector<float>{0, 0, 0});
  CHECK_THROWS_WITH(histc(ones({3}), 0), "histc: 0 bins");
  CHECK_THROWS_WITH(histc(ones({3}), 4, 2, 1), "histc: the range 2 to 1 does not ascend");
  CHECK_THROWS_WITH(histc(ones({3}), 4, 0, INFINITY), "histc: the range 0 to inf is not finite");
}
