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

TEST_CASE("poisson has its rate as mean and variance, and its probabilities") {
  manual_seed(3);
  for (const double rate : {0.3, 4.0, 7.9, 8.1, 30.0, 1000.0, 2e5}) {
    const Tensor counts = poisson(full({many}, rate));
    INFO("rate " << rate);
    CHECK(mean(counts).item<double>() == Approx(rate).margin(5 * std::sqrt(rate / many)));
    CHECK(var(counts).item<double>() == Approx(rate).epsilon(0.04));
    CHECK(min(counts).item() >= 0);
  }
  // Each count by its probability, to five deviations.
  for (const double rate : {2.0, 12.0}) {
    const auto found = bincount(cast(poisson(full({many}, rate)), Dtype::i64)).to_vector<double>();
    for (std::size_t k = 0; k < found.size(); ++k) {
      const double count = static_cast<double>(k), share = std::exp(count * std::log(rate) - rate - std::lgamma(count + 1));
      INFO("rate " << rate << ", count " << k);
      CHECK(std::fabs(found[k] - share * many) <= 5 * std::sqrt(share * many) + 1);
    }
  }
  const auto ends = poisson(Tensor::from({0.F, -1.F, NAN})).to_vector<float>();
  CHECK(ends[0] == 0);
  CHECK(std::isnan(ends[1]));
  CHECK(std::isnan(ends[2]));
  CHECK_THROWS_AS(poisson(ones({2}, Dtype::i32)), DtypeError);
}

TEST_CASE("distributions refuse parameters by name") {
  CHECK_THROWS_WITH(normal(0, -1, {2}), Contains("normal: there is no mean 0"));
  CHECK_THROWS_WITH(exponential({2}, 0), Contains("exponential: the rate 0"));
  CHECK_THROWS_WITH(truncated_normal({2}, 0, 1, 2, 1), Contains("truncated_normal: next to nothing"));
  CHECK_THROWS_WITH(truncated_normal({2}, 0, 1, 30, 40), Contains("truncated_normal: next to nothing"));
  CHECK_THROWS_AS(exponential({2}, 1, Dtype::i32), DtypeError);
  CHECK_THROWS_WITH(rand_like(arange(3)), Contains("rand_like: needs"));
}
