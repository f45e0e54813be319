#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "clnet/clnet.h"

namespace clnet::testing {

namespace {

struct Moments {
  double mean = 0, deviation = 0;
};

Moments moments(const std::vector<float>& values) {
  Moments m;
  for (float value : values) m.mean += value;
  m.mean /= static_cast<double>(values.size());
  for (float value : values) m.deviation += (value - m.mean) * (value - m.mean);
  m.deviation = std::sqrt(m.deviation / static_cast<double>(values.size()));
  return m;
}

}  // namespace

TEST_CASE("rand is uniform in [0, 1)") {
  manual_seed(1);
  for (const auto dtype : {Dtype::f32, Dtype::f16, Dtype::bf16}) {
    INFO(to_string(dtype));
    const auto values = rand({100'000}, dtype).to_vector<float>();
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    CHECK(*low >= 0);
    CHECK(*high < 1);
    CHECK(*high > 0.99F);
    const auto m = moments(values);
    CHECK(m.mean == Approx(0.5).margin(0.005));
    CHECK(m.deviation == Approx(std::sqrt(1 / 12.0)).margin(0.003));
  }
  CHECK_THROWS_AS(rand({3}, Dtype::i32), DtypeError);
}

TEST_CASE("randn is standard normal") {
  manual_seed(2);
  const auto values = randn({100'000}).to_vector<float>();
  const auto m = moments(values);
  CHECK(m.mean == Approx(0).margin(0.015));
  CHECK(m.deviation == Approx(1).margin(0.01));
  const auto within = std::count_if(values.begin(), values.end(), [](float value) { return std::abs(value) < 1; });
  CHECK(static_cast<double>(within) / 1e5 == Approx(0.6827).margin(0.006));
}

TEST_CASE("The same seed gives the same bits, and no two tensors the same numbers") {
  manual_seed(3);
  const auto first = rand({1000}).to_vector<float>(), second = rand({1000}).to_vector<float>();
  CHECK(first != second);
  manual_seed(3);
  CHECK(rand({1000}).to_vector<float>() == first);
  const auto kept = random_state();
  CHECK(kept.seed == 3);
  CHECK(kept.offset == 1);
  CHECK(rand({1000}).to_vector<float>() == second);
  set_random_state(kept);
  CHECK(rand({1000}).to_vector<float>() == second);
  manual_seed(4);
  CHECK(rand({1000}).to_vector<float>() != first);
  // Evaluating twice, or later than another, changes nothing: a tensor's numbers are chosen when it is made.
  manual_seed(3);
  const auto a = rand({1000}), b = rand({1000});
  CHECK(b.to_vector<float>() == second);
  CHECK((a + 0.0).to_vector<float>() == first);
}

}  // namespace clnet::testing
