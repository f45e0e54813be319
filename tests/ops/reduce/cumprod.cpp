#include <catch2/catch.hpp>

#include "clnet/clnet.h"

using namespace clnet;

TEST_CASE("derivatives of running products are right with any number of zeros") {
  const Tensor x = Tensor::from({2.F, 0.F, -3.F, 0.F, 5.F}), g = Tensor::from({1.F, 2.F, 3.F, 4.F, 5.F});
  const Tensor y = cumprod(x, 0);
  CHECK(y.to_vector<float>() == std::vector<float>{2, 0, 0, 0, 0});
  const Tensor slope = gradients(sum(y * g), {x})[0];
  // By x[1]: 2 (2 + 3 x[2] + 4 x[2] x[3] + ...).
  CHECK(slope.to_vector<float>() == std::vector<float>{1, -14, 0, 0, 0});
  // Of that, by x[0] and x[3]: (2 + 3 x[2]) and 2 (4 x[2] + 5 x[2] x[4]).
  const Tensor second = gradients(narrow(slope, 0, 1, 1), {x})[0];
  CHECK(second.to_vector<float>() == std::vector<float>{-7, 0, 6, -174, 0});
}

TEST_CASE("running products of integers are i64, and wrap") {
  const auto y = cumprod(Tensor::from<std::int64_t>({3, 1LL << 40, 5, 1LL << 30}), 0).to_vector<std::int64_t>();
  CHECK(y[2] == 15 * (1LL << 40));
  CHECK(y[3] == static_cast<std::int64_t>(15ULL << 40 << 30));
  CHECK(cumprod(ones({3}, Dtype::boolean), 0).dtype() == Dtype::i64);
}

TEST_CASE("more factors than a launch takes, which hands its product on") {
  const auto x = where(eq(arange(120'000), 60'000.0), 3.0, ones({120'000}));
  const auto y = cumprod(x, 0).to_vector<float>();
  CHECK(y[59'999] == 1);
  CHECK(y.back() == 3);
  CHECK(gradients(sum(cumprod(x, 0)), {x})[0].to_vector<float>()[0] == 60'000 + 3 * 60'000);
}

TEST_CASE("cumprod refuses wrong dimensions") { CHECK_THROWS_AS(cumprod(zeros({2, 3}), 2), ShapeError); }
