// Comparisons as they are typed: operators, two integer dtypes, and equal(), which is one bool.
#include <catch2/catch.hpp>
#include <limits>
#include <type_traits>
#include <vector>

#include "clnet/error.h"
#include "clnet/ops.h"

using namespace clnet;

namespace {

using Bools = std::vector<bool>;

// `if (a == b)` must not compile: what would it mean?
static_assert(!std::is_constructible_v<bool, Tensor>);
static_assert(std::is_same_v<decltype(Tensor() == Tensor()), Tensor>);
static_assert(std::is_same_v<decltype(!Tensor()), Tensor>);

Bools bools(const Tensor& x) { return x.to_vector<bool>(); }

}  // namespace

TEST_CASE("operators compare elements") {
  const Tensor a = Tensor::from({1, 2, 3}), b = Tensor::from({1, 3, 2});
  CHECK(bools(a == b) == Bools{true, false, false});
  CHECK(bools(a != b) == Bools{false, true, true});
  CHECK(bools(a == 2) == Bools{false, true, false});
  CHECK(bools(2 == a) == Bools{false, true, false});
  CHECK(bools(a != 2) == Bools{true, false, true});
  CHECK(bools(2 != a) == Bools{true, false, true});
  CHECK(bools(!(a == b)) == bools(a != b));
  CHECK(bools(a > 1 && b > 2) == Bools{false, true, false});
  CHECK(bools(a > 2 || b > 2) == Bools{false, true, true});
}

TEST_CASE("operators beside NaN are IEEE's") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Tensor a = Tensor::from({nan, 1.0});
  CHECK(bools(a == a) == Bools{false, true});
  CHECK(bools(a != a) == Bools{true, false});
  CHECK(bools(!(a == a)) == Bools{true, false});
}

TEST_CASE("two integer dtypes are compared by their values") {
  const auto ints = Tensor::from(std::vector<std::int32_t>{-1, 7, 2'000'000'000});
  const auto longs = Tensor::from(std::vector<std::int64_t>{-1, 8, 4'000'000'000'000});
  CHECK(bools(ints == longs) == Bools{true, false, false});
  CHECK(bools(longs > ints) == Bools{false, true, true});
  CHECK(bools(ints <= longs) == Bools{true, true, true});
  // Neither has all values of the other.
  const auto bytes = Tensor::from(std::vector<std::uint8_t>{255, 7, 200}),
             signs = Tensor::from(std::vector<std::int8_t>{-1, 7, 100});
  CHECK(bools(bytes == signs) == Bools{false, true, false});
  CHECK(bools(signs < bytes) == Bools{true, false, true});
  const auto truths = Tensor::from(Bools{true, false, true});
  CHECK(bools(truths == signs) == Bools{false, false, false});
  CHECK(bools(truths != Tensor::from(std::vector<std::int64_t>{1, 0, 2})) == Bools{false, false, true});
  // The line of every tutorial: the largest score's place, i64, beside labels of i32.
  const auto scores = Tensor::from({0.1, 0.9, 0.8, 0.2}, {2, 2});
  CHECK(bools(argmax(scores, 1) == Tensor::from(std::vector<std::int32_t>{1, 1})) == Bools{true, false});
  // Which dtype a float and an integer meet in is the program's to say.
  CHECK_THROWS_AS(ints == ones({3}), DtypeError);
  CHECK_THROWS_AS(maximum(ints, longs), DtypeError);
}

TEST_CASE("equal() is one bool") {
  const Tensor a = Tensor::from({1.0, 2.0, 3.0}), b = Tensor::from({1.0, 2.0, 4.0});
  CHECK(equal(a, a + 0.0));
  CHECK_FALSE(equal(a, b));
  CHECK_FALSE(equal(a, reshape(a, {3, 1})));
  CHECK_FALSE(equal(a, ones({4})));
  CHECK(equal(zeros({0, 2}), zeros({0, 2})));
  CHECK_FALSE(equal(a / 0.0 - a / 0.0, a / 0.0 - a / 0.0));
  CHECK(equal(Tensor::from(std::vector<std::int32_t>{1, 2}), Tensor::from(std::vector<std::int64_t>{1, 2})));
  CHECK_THROWS_AS(equal(a, Tensor::from(std::vector<std::int32_t>{1, 2, 3})), DtypeError);
}
