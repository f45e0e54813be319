#include "tests/cases/shape/permute.h"

#include <catch2/catch.hpp>

#include "tests/ops/check.h"

namespace clnet::testing {

TEST_CASE("permute") { check(permute_cases(), {"strided_copy"}); }

TEST_CASE("transpose exchanges two dimensions of any dtype") {
  for (const auto dtype : {Dtype::i32, Dtype::i64, Dtype::u8}) {
    const auto x = reshape(arange(6, 0, 1, dtype), {2, 3});
    CHECK(transpose(x, 0, -1).to_vector<std::int64_t>() == std::vector<std::int64_t>{0, 3, 1, 4, 2, 5});
  }
  const auto odd = transpose(Tensor::from<bool>({true, false, false, true, true, true}, {2, 3}), 0, 1);
  CHECK(odd.to_vector<std::uint8_t>() == std::vector<std::uint8_t>{1, 1, 0, 1, 0, 1});
}

TEST_CASE("permute refuses what is no permutation") {
  const auto x = ones({2, 3});
  CHECK_THROWS_WITH(permute(x, {0, 0}), "permute: [0, 0] does not name each dimension of [2, 3] once");
  CHECK_THROWS_AS(permute(x, {0}), ShapeError);
  CHECK_THROWS_AS(permute(x, {0, 2}), ShapeError);
  CHECK_THROWS_AS(transpose(x, 0, 2), ShapeError);
}

}  // namespace clnet::testing
