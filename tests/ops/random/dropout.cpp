#include <algorithm>
#include <catch2/catch.hpp>

#include "clnet/clnet.h"

namespace clnet::testing {

TEST_CASE("dropout zeroes with its probability and scales the rest") {
  manual_seed(5);
  for (const auto dtype : {Dtype::f32, Dtype::f16, Dtype::bf16}) {
    const auto y = dropout(ones({200, 500}, dtype), 0.2).to_vector<float>();
    const auto zero = std::count(y.begin(), y.end(), 0.0F);
    CHECK(static_cast<double>(zero) / 1e5 == Approx(0.2).margin(0.006));
    CHECK(*std::max_element(y.begin(), y.end()) == Approx(1.25).epsilon(0.004));
    CHECK(std::count(y.begin(), y.end(), y[static_cast<std::size_t>(std::max_element(y.begin(), y.end()) - y.begin())]) ==
          100'000 - zero);
  }
}

TEST_CASE("dropout's gradient goes through the same mask") {
  manual_seed(6);
  const auto x = full({1000}, 3);
  const auto y = dropout(x, 0.5);
  const auto g = full({1000}, 3);
  const auto dx = gradients(std::vector{y}, std::vector{g}, std::vector{x})[0];
  CHECK(dx.to_vector<float>() == y.to_vector<float>());
  const auto again = gradients(std::vector{dx}, std::vector{x}, std::vector{g})[0];
  CHECK(again.to_vector<float>() == y.to_vector<float>());
  manual_seed(6);
  CHECK(dropout(x, 0.5).to_vector<float>() == y.to_vector<float>());
  CHECK(dropout(x, 0.5).to_vector<float>() != y.to_vector<float>());
}

TEST_CASE("dropout's limits") {
  const auto x = full({4}, 2);
  CHECK(dropout(x, 0).same(x));
  CHECK(dropout(x, 1).to_vector<float>() == std::vector<float>(4, 0));
  CHECK_THROWS_AS(dropout(x, -0.1), Error);
  CHECK_THROWS_AS(dropout(x, 1.5), Error);
  CHECK_THROWS_AS(dropout(ones({2}, Dtype::i32), 0.5), DtypeError);
}

}  // namespace clnet::testing
