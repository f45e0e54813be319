// Random tensors of other distributions: their means and deviations, bounds, and errors.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "clnet/clnet.h"

using namespace clnet;
using Catch::Matchers::Contains;

namespace {

constexpr std::int64_t many = 40'000;

void check_moments(const Tensor& x, double mean_of_it, double deviation) {
  CHECK(mean(x).item<double>() == Approx(mean_of_it).margin(0.03));
  CHECK(stddev(x).item<double>() == Approx(deviation).margin(0.03));
}

}  // namespace

TEST_CASE("distributions have their means and deviations") {
  manual_seed(5);
  check_moments(normal(2, 0.5, {many}), 2, 0.5);
  check_moments(exponential({many}, 2), 0.5, 0.5);
  // Of one deviation on both sides: sqrt(1 - 2 phi(1) / 0.6827).
  const Tensor cut = truncated_normal({many}, 1, 1, 0, 2);
  check_moments(cut, 1, 0.5397);
  CHECK(min(cut).item() >= 0);
  CHECK(max(cut).item() <= 2);
  CHECK(min(exponential({many})).item() > 0);
  const Tensor x = zeros({3, 4}, Dtype::f16);
  CHECK(rand_like(x).spec() == x.spec());
  CHECK(randn_like(x).spec() == x.spec());
}

TEST_CASE("distributions refuse parameters by name") {
  CHECK_THROWS_WITH(normal(0, -1, {2}), Contains("normal: there is no mean 0"));
  CHECK_THROWS_WITH(exponential({2}, 0), Contains("exponential: the rate 0"));
  CHECK_THROWS_WITH(truncated_normal({2}, 0, 1, 2, 1), Contains("truncated_normal: next to nothing"));
  CHECK_THROWS_WITH(truncated_normal({2}, 0, 1, 30, 40), Contains("truncated_normal: next to nothing"));
  CHECK_THROWS_AS(exponential({2}, 1, Dtype::i32), DtypeError);
  CHECK_THROWS_WITH(rand_like(arange(3)), Contains("rand_like: needs"));
}
