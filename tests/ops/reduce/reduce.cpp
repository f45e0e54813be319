#include "tests/cases/reduce/reduce.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "tests/ops/check.h"
#include "tests/ops/each_solver.h"

using namespace clnet;
using namespace clnet::testing;
using Catch::Matchers::Contains;

namespace {

const float nan_value = std::nanf("");

void probe_sum() { sum(ones({8})).item<float>(); }
void probe_argmax() { argmax(ones({8}), 0).item<float>(); }

}  // namespace

TEST_CASE("reduce") { check(reduce_cases(), {"reduce"}); }
TEST_CASE("argmax and argmin") { check(arg_reduce_cases(), {"arg_reduce"}); }

TEST_CASE("long sums are accurate") {
  with_each_solver("reduce", probe_sum, [] {
    const std::int64_t n = 10'000'000;
    CHECK(sum(ones({n})).item<float>() == 10'000'000.f);
    CHECK(sum(full({n}, 0.1)).item<float>() / (double{0.1f} * 1e7) == Approx(1.0).epsilon(1e-6));
    std::mt19937 random(1);
    std::vector<float> values(3'000'000);
    double want = 0;
    for (auto& value : values) want += value = std::uniform_real_distribution<float>(0, 1)(random);
    const auto count = static_cast<double>(values.size());
    const Tensor x = Tensor::from(values, {3'000'000});
    CHECK(mean(x).item<float>() == Approx(want / count).epsilon(1e-6));
    CHECK(sum(mean(reshape(x, Shape{300'000, 10}), {0})).item<float>() == Approx(want / count * 10).epsilon(1e-6));
  });
}

TEST_CASE("reductions give the same bits at every run") {
  std::mt19937 random(2);
  std::vector<float> values(500'009);
  for (auto& value : values) value = std::uniform_real_distribution<float>(-1, 1)(random);
  const auto once = [&] { return sum(Tensor::from(values, {500'009})).item<float>(); };
  const float first = once();
  for (int i = 0; i < 5; ++i) CHECK(once() == first);
}

TEST_CASE("reductions of nothing") {
  with_each_solver("reduce", probe_sum, [] {
    const Tensor none = zeros({0, 3});
    CHECK(sum(none).item<float>() == 0);
    CHECK(sum(none, {0}).to_vector<float>() == std::vector<float>{0, 0, 0});
    CHECK(prod(none, {0}).to_vector<float>() == std::vector<float>{1, 1, 1});
    CHECK(std::isnan(mean(none).item<float>()));
    CHECK(sum(none, {1}).to_vector<float>().empty());
    CHECK(sum(zeros({0, 2, 0}), {0, 2}).to_vector<float>() == std::vector<float>{0, 0});
  });
  CHECK_THROWS_WITH(max(zeros({0, 3}), {0}), Contains("max: there is no element to choose from in f32[0, 3]"));
  CHECK_THROWS_AS(min(zeros({0})), ShapeError);
  CHECK_THROWS_WITH(argmax(zeros({3, 0}), 1), Contains("argmax: there is no element"));
  CHECK(max(zeros({0, 3}), {1}).shape() == Shape{0});
}

TEST_CASE("NaN goes through sums and extrema, and is the first largest and smallest") {
  with_each_solver("reduce", probe_sum, [] {
    for (std::size_t position : {0U, 5U, 1000U, 2999U}) {
      std::vector<float> values(3000);
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 77);
      values[position] = nan_value;
      const Tensor row = Tensor::from(values, {3000}), columns = reshape(row, Shape{100, 30});
      for (auto call : {max, min, sum, mean}) {
        CHECK(std::isnan(call(row, {}, false).item<float>()));
        const auto per_column = call(columns, {0}, false).to_vector<float>();
        for (std::size_t c = 0; c < 30; ++c) CHECK(std::isnan(per_column[c]) == (c == position % 30));
      }
    }
    CHECK(max(Tensor::from({-INFINITY, -INFINITY})).item<float>() == -INFINITY);
    CHECK(sum(Tensor::from({INFINITY, 1.f})).item<float>() == INFINITY);
  });
  with_each_solver("arg_reduce", probe_argmax, [] {
    const Tensor x = Tensor::from({1.f, nan_value, 9.f, nan_value});
    CHECK(argmax(x, 0).item<std::int64_t>() == 1);
    CHECK(argmin(x, 0).item<std::int64_t>() == 1);
    CHECK(argmax(Tensor::from({1.f, 5.f, 5.f}), 0).item<std::int64_t>() == 1);
    CHECK(argmin(zeros({1000}), 0).item<std::int64_t>() == 0);
    CHECK(argmax(zeros({0, 5}), 1).to_vector<std::int64_t>().empty());
    // Many equal values, and NaN, on all lanes of vectors, in rows of chunks and a rest.
    manual_seed(9);
    const Tensor few = cast(randint(0, 1000, {3, 69999}), Dtype::f32), some = where(less(few, 1.0), nan_value, few);
    for (const auto& rows : {few, some}) {
      const auto values = rows.to_vector<float>();
      const auto greatest = argmax(rows, 1).to_vector<std::int64_t>(), least = argmin(rows, 1).to_vector<std::int64_t>();
      for (std::int64_t row = 0; row < 3; ++row) {
        const auto first = values.begin() + row * 69999, last = first + 69999;
        const auto wrong = std::find_if(first, last, [](float value) { return std::isnan(value); });
        const auto at = [&](auto found) { return (wrong == last ? found : wrong) - first; };
        CHECK(greatest[static_cast<std::size_t>(row)] == at(std::max_element(first, last)));
        CHECK(least[static_cast<std::size_t>(row)] == at(std::min_element(first, last)));
      }
    }
  });
}

TEST_CASE("integers and bool sum to i64; extrema keep their dtype") {
  CHECK(sum(Tensor::from({2'000'000'000, 2'000'000'000})).item<std::int64_t>() == 4'000'000'000);
  CHECK(sum(greater(Tensor::from({1.f, 0.f, 3.f}), 0.5)).item<std::int64_t>() == 2);
  CHECK(sum(ones({3}, Dtype::u8)).dtype() == Dtype::i64);
  CHECK(max(ones({3}, Dtype::i32)).dtype() == Dtype::i32);
  CHECK(sum_to(ones({3, 2}, Dtype::i32), {2}).dtype() == Dtype::i32);
  CHECK_THROWS_AS(mean(ones({3}, Dtype::i32)), DtypeError);
}

TEST_CASE("ties of max and min share the gradient") {
  const Tensor x = Tensor::from({3.f, 1.f, 3.f, 0.f, 0.f, 0.f}, {2, 3});
  const auto of_max = gradients(sum(max(x, {1})), {x})[0].to_vector<float>();
  CHECK(of_max == std::vector<float>{0.5f, 0, 0.5f, 1 / 3.f, 1 / 3.f, 1 / 3.f});
  const auto of_min = gradients(sum(min(x, {1})), {x})[0].to_vector<float>();
  CHECK(of_min == std::vector<float>{0, 1, 0, 1 / 3.f, 1 / 3.f, 1 / 3.f});
}

TEST_CASE("the gradient of prod where values are zero") {
  const Tensor x = Tensor::from({2.f, 0.f, 5.f, 0.f, 3.f, 0.f, 2.f, 3.f, 4.f}, {3, 3});
  CHECK(gradients(sum(prod(x, {1})), {x})[0].to_vector<float>() == std::vector<float>{0, 10, 0, 0, 0, 0, 12, 8, 6});
}

TEST_CASE("reductions refuse wrong dimensions") {
  const Tensor x = zeros({2, 3});
  CHECK_THROWS_WITH(sum(x, {2}), Contains("sum: dimension 2 is out of range for shape [2, 3]"));
  CHECK_THROWS_WITH(mean(x, {1, -1}), Contains("mean: dimension -1 is given twice"));
  CHECK_THROWS_AS(argmax(x, -3), ShapeError);
  CHECK_THROWS_WITH(sum_to(x, {2}), Contains("sum_to"));
  CHECK_THROWS_AS(sum_to(x, {1, 2, 3}), ShapeError);
}
