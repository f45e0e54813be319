#include "tests/cases/matmul/einsum.h"

#include <catch2/catch.hpp>

#include "tests/ops/check.h"

using namespace clnet;
using namespace clnet::testing;
using Catch::Matchers::Contains;

TEST_CASE("einsum") { check(einsum_cases()); }

TEST_CASE("einsum over no elements") {
  CHECK(einsum("ij,jk->ik", {ones({2, 0}), ones({0, 3})}).to_vector<float>() == std::vector<float>(6, 0));
  CHECK(einsum("ij,jk->ik", {ones({0, 2}), ones({2, 3})}).shape() == Shape{0, 3});
}

TEST_CASE("einsum refuses what is no equation or does not fit") {
  const Tensor x = ones({2, 3}), y = ones({3, 4});
  const auto refused = [&](const char* equation, const std::vector<Tensor>& operands, const char* why) {
    CHECK_THROWS_WITH(einsum(equation, operands), Contains(std::string("einsum: '") + equation + "': ") && Contains(why));
  };
  refused("ij,jk->ik", {x}, "it names 2 operands, 1 were given");
  refused("ij->ij", {x, y}, "it names 1 operands, 2 were given");
  refused("ijk", {x}, "'ijk' does not name the 2 dimensions of operand 0");
  refused("i", {x}, "'i' does not name the 2 dimensions of operand 0");
  refused("ijk...", {x}, "does not name the 2 dimensions");
  refused("ij,kj->ik", {x, y}, "'j' has extents 3 and 4");
  refused("ii->i", {ones({1, 3})}, "'i' has extents 1 and 3");
  refused("ij,jii->", {x, ones({3, 2, 1})}, "'i' has extents 2 and 1");
  refused("ij->ik", {x}, "'k' of the result is in no operand");
  refused("ij->ii", {x}, "'i' is twice in the result");
  refused("i1->i", {x}, "has something other than letters and one '...'");
  refused("i..->i", {x}, "has something other than letters and one '...'");
  refused("......->", {x}, "has something other than letters and one '...'");
  refused("ij->ij->", {x}, "has something other than letters and one '...'");
  refused("...i,...i", {ones({2, 3}), ones({5, 3})}, "'...' has extents 2 and 5");
  refused("", {x}, "does not name the 2 dimensions");
  CHECK_THROWS_WITH(einsum("", {}), "einsum: no operands were given");
  CHECK_THROWS_AS(einsum("ij,jk", {x, cast(y, Dtype::f16)}), DtypeError);
  CHECK_THROWS_WITH(einsum("ij", {cast(x, Dtype::i32)}), Contains("einsum: needs f32"));
  CHECK(einsum("", {full({}, 3)}).item<float>() == 3);
}
