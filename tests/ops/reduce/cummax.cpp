#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <string>

#include "clnet/clnet.h"
#include "tests/ops/each_solver.h"

using namespace clnet;
using namespace clnet::testing;

using Places = std::vector<std::int64_t>;

namespace {

void with_each_running_solver(const std::string& op, const std::function<void()>& test) {
  with_each_solver(
      op, [&] { op == "cummax" ? cummax(ones({2}), 0).values.eval() : logcumsumexp(ones({2}), 0).eval(); }, test);
}

}  // namespace

TEST_CASE("running extremes take the last of equals, and NaN stays") {
  const Tensor x = Tensor::from({1.F, 3.F, 3.F, NAN, 9.F, NAN, 0.F});
  with_each_running_solver("cummax", [&] {
    const auto most = cummax(x, 0), least = cummin(x, 0);
    CHECK(most.indices.to_vector<std::int64_t>() == Places{0, 1, 2, 3, 3, 5, 5});
    CHECK(least.indices.to_vector<std::int64_t>() == Places{0, 0, 0, 3, 3, 5, 5});
    CHECK(std::isnan(most.values.to_vector<float>()[4]));
  });
  const Tensor numbers = Tensor::from({2.F, 1.F, 2.F, 5.F}), g = Tensor::from({1.F, 2.F, 3.F, 4.F});
  CHECK(gradients(sum(cummax(numbers, 0).values * g), {numbers})[0].to_vector<float>() == std::vector<float>{3, 0, 3, 4});
  CHECK(cummax(full({}, 3), 0).values.item<float>() == 3);
  CHECK_THROWS_AS(cummin(x, 1), ShapeError);
}

TEST_CASE("running extremes and logarithms of sums of more elements than a launch takes") {
  constexpr std::int64_t count = 120'000;
  const Tensor numbers = arange(count, 0, 1, Dtype::f32);
  with_each_running_solver("cummax", [&] {
    CHECK(cummax(where(less(numbers, 70'000.0), numbers, numbers * 0.0), 0).indices.to_vector<std::int64_t>().back() == 69'999);
    CHECK(cummin(numbers, 0).indices.to_vector<std::int64_t>().back() == 0);
    CHECK(cummin(numbers * 0.0, 0).indices.to_vector<std::int64_t>()[60'000] == 60'000);
  });
  with_each_running_solver(
      "logcumsumexp", [&] { CHECK(logcumsumexp(zeros({count}), 0).to_vector<float>().back() == Approx(std::log(1.0 * count))); });
}

TEST_CASE("logcumsumexp of infinities, and far apart") {
  const float none = -INFINITY;
  const Tensor x = Tensor::from({none, none, 1.F, none, 90.F, -90.F});
  with_each_running_solver("logcumsumexp", [&] {
    const Tensor y = logcumsumexp(x, 0);
    CHECK(y.to_vector<float>() == std::vector<float>{none, none, 1, 1, 90, 90});
    const auto slopes = gradients(sum(slice(y, 0, 2)), {x})[0].to_vector<float>();
    CHECK(slopes[0] == 0);
    CHECK(slopes[2] == Approx(2));
    CHECK(slopes[3] == 0);
    CHECK(slopes[4] == Approx(2));
    CHECK(slopes[5] == Approx(0).margin(1e-30));
    CHECK(logcumsumexp(Tensor::from({INFINITY, 1.F}), 0).to_vector<float>()[1] == INFINITY);
    CHECK(std::isnan(logcumsumexp(Tensor::from({1.F, NAN, 2.F}), 0).to_vector<float>()[2]));
  });
  CHECK_THROWS_AS(logcumsumexp(ones({3}, Dtype::i32), 0), DtypeError);
}
