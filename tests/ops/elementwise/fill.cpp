#include <catch2/catch.hpp>
#include <numeric>

#include "clnet/clnet.h"

namespace clnet::testing {

TEST_CASE("full, zeros and ones of every dtype") {
  for (const auto dtype : {Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::i32, Dtype::i64, Dtype::u8}) {
    INFO(to_string(dtype));
    CHECK(full({2, 150}, 3, dtype).to_vector<float>() == std::vector<float>(300, 3));
    CHECK(zeros({3}, dtype).to_vector<float>() == std::vector<float>(3, 0));
    CHECK(ones_like(zeros({3}, dtype)).to_vector<float>() == std::vector<float>(3, 1));
    CHECK(ones_like(zeros({3}, dtype)).dtype() == dtype);
  }
  CHECK(full({2}, 7, Dtype::boolean).to_vector<std::uint8_t>() == std::vector<std::uint8_t>{1, 1});
  CHECK(full({2}, -5'000'000'000.0, Dtype::i64).to_vector<std::int64_t>() == std::vector<std::int64_t>(2, -5'000'000'000));
  CHECK(full({}, 2.5).item<float>() == 2.5F);
  CHECK(zeros({0, 4}).to_vector<float>().empty());
  CHECK_THROWS_AS(zeros({-1}), ShapeError);
}

TEST_CASE("arange") {
  CHECK(arange(4).to_vector<std::int64_t>() == std::vector<std::int64_t>{0, 1, 2, 3});
  CHECK(arange(3, 5, -2, Dtype::i32).to_vector<std::int32_t>() == std::vector<std::int32_t>{5, 3, 1});
  CHECK(arange(2, 1e10, 1e10).to_vector<std::int64_t>() == std::vector<std::int64_t>{10'000'000'000, 20'000'000'000});
  CHECK(arange(3, 0.5, 0.25, Dtype::f16).to_vector<float>() == std::vector<float>{0.5F, 0.75F, 1.0F});
  std::vector<float> many(1000);
  std::iota(many.begin(), many.end(), 0.0F);
  CHECK(arange(1000, 0, 1, Dtype::f32).to_vector<float>() == many);
  CHECK(arange(0).to_vector<std::int64_t>().empty());
  CHECK_THROWS_WITH(arange(-1), "arange: -1 values");
  CHECK_THROWS_AS(arange(3, 0.5), Error);
  CHECK_THROWS_AS(arange(2, 0, 1, Dtype::boolean), DtypeError);
}

}  // namespace clnet::testing
