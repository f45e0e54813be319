#include "tests/cases/reduce/cumsum.h"

#include <catch2/catch.hpp>

#include "tests/ops/check.h"

using namespace clnet;
using namespace clnet::testing;

TEST_CASE("cumsum") { check(cumsum_cases(), {"cumsum"}); }

TEST_CASE("running sums of integers are i64, and exact beyond what floats hold") {
  const auto y = cumsum(Tensor::from<std::int64_t>({1LL << 60, 1, -3, 1LL << 40}), 0);
  CHECK(y.to_vector<std::int64_t>() ==
        std::vector<std::int64_t>{1LL << 60, (1LL << 60) + 1, (1LL << 60) - 2, (1LL << 60) - 2 + (1LL << 40)});
  const auto counts = cumsum(ones({3, 2}, Dtype::boolean), 0);
  CHECK(counts.dtype() == Dtype::i64);
  CHECK(counts.to_vector<std::int64_t>() == std::vector<std::int64_t>{1, 1, 2, 2, 3, 3});
  CHECK(cumsum(full({300}, 200, Dtype::u8), 0).to_vector<std::int64_t>().back() == 60'000);
  // More than a launch takes, which hands its sum on.
  const auto many = cumsum(full({120'000}, 1 << 24, Dtype::i32) + 1.0, 0).to_vector<std::int64_t>();
  CHECK(many.back() == 120'000LL * ((1 << 24) + 1));
  CHECK(many[50'000] == 50'001LL * ((1 << 24) + 1));
}

TEST_CASE("cumsum refuses wrong dimensions") { CHECK_THROWS_AS(cumsum(zeros({2, 3}), 2), ShapeError); }
