#include "tests/cases/pool/avg_pool2d.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <utility>

#include "lib/exec/choose/solver.h"
#include "tests/ops/check.h"

namespace clnet::testing {

TEST_CASE("avg_pool2d") { check(avg_pool2d_cases(), {"avg_pool2d", "avg_pool2d_backward"}); }

TEST_CASE("avg_pool2d's gradient has a gradient") {
  const auto x = ones({1, 2, 4, 4}), g = full({1, 2, 2, 2}, 3), again = full({1, 2, 4, 4}, 2);
  const auto y = avg_pool2d(x, 2);
  const auto dx = gradients(std::vector{y}, std::vector{g}, std::vector{x})[0];
  CHECK(dx.to_vector<float>() == std::vector<float>(32, 0.75F));
  const auto dg = gradients(std::vector{dx}, std::vector{again}, std::vector{g})[0];
  CHECK(dg.to_vector<float>() == std::vector<float>(8, 2));
}

TEST_CASE("windows of more elements than an int counts are averaged over their number, and padding costs no time") {
  const auto x = ones({1, 1, 1, 1});
  const AvgPool2dOptions options{.stride = 46342, .padding = 23171};
  const auto y = avg_pool2d(x, 46342, options);
  CHECK(y.item<float>() == Approx(1.0 / 46342 / 46342));
  CHECK(gradients(y, {x})[0].item<float>() == Approx(1.0 / 46342 / 46342));
  CHECK(avg_pool1d(ones({1, 1, 1}), 1 << 29, {.padding = 1 << 28, .count_include_pad = false}).item<float>() == 1);
}

TEST_CASE("rows of more than lies in local memory are averaged in blocks") {
  manual_seed(8);
  const auto compared = [](const Shape& shape, const std::function<Tensor(const Tensor&)>& pool) {
    const Tensor x = rand(shape).detach(), weights = rand(pool(x).shape()).detach();
    const auto values = [&] {
      const Tensor y = pool(x);
      return concat({flatten(y, 0), flatten(gradients(sum(y * weights), {x})[0], 0)}, 0).to_vector<float>();
    };
    const auto got = values();
    const exec::ForceSolver direct("avg_pool2d", "direct"), back("avg_pool2d_backward", "direct");
    const auto want = values();
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < want.size(); ++i)
      if (!(std::abs(got[i] - want[i]) <= 1e-5F * std::abs(want[i]) + 1e-7F)) ++wrong;
    CHECK(wrong == 0);
  };
  compared({1, 2, 2, 9001}, [](const Tensor& x) { return avg_pool2d(x, {2, 5}, {.stride = Pair(1, 3), .padding = {0, 2}}); });
  compared({1, 2, 2, 20000}, [](const Tensor& x) { return avg_pool2d(x, {1, 3000}, {.stride = Pair(1, 1000)}); });
  // A window that fits no block: another solver has it.
  compared({1, 1, 1, 20000}, [](const Tensor& x) { return avg_pool2d(x, {1, 7000}, {.stride = Pair(1, 6000)}); });
  for (const auto& [w, out] : {std::pair{9001, 1200}, {9001, 10000}, {4500, 9100}, {9001, 2}})
    compared({1, 1, 3, w}, [out = out](const Tensor& x) { return adaptive_avg_pool2d(x, {2, out}); });
}

TEST_CASE("avg_pool2d refuses what does not fit") {
  const auto x = ones({1, 2, 4, 4});
  CHECK_THROWS_AS(avg_pool2d(x, 5), ShapeError);
  CHECK_THROWS_AS(avg_pool2d(x, 3, {.padding = 2}), ShapeError);
  CHECK_THROWS_AS(avg_pool2d(ones({4, 4}), 2), ShapeError);
  CHECK_THROWS_AS(adaptive_avg_pool2d(x, Pair(2, -2)), ShapeError);
}

}  // namespace clnet::testing
